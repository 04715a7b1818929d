package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func recreationCases() []Case {
	return []Case{
		{"recreation/next-command-works", "Hermes 2: a sandbox rebuilt while serving a command says so, once", vanishing(nextWorks)},
		{"recreation/home-is-kept", "contract.Config.Persistent: the home is kept in a volume", vanishing(homeIsKept)},
		{"recreation/state-is-gone", "contract.Result.Recreated: background jobs and shell state before it are gone", vanishing(stateIsGone)},
		{"recreation/start-directory", "Hermes 3.1: a new sandbox starts in default_cwd", vanishing(startsAtHome)},
		{"recreation/every-handle", "contract.Result.Recreated: every handle is told", vanishing(everyHandle)},
		{"recreation/prefix", "contract.Environment.ExecPrefix: the argv leads into the container there is now", vanishing(prefixFollows)},
	}
}

// vanishing makes a case of a new sandbox whose container goes away under it.
func vanishing(try func(context.Context, *box) error) run {
	return onNew(func(ctx context.Context, b *box) error {
		if b.subject.Vanish == nil {
			return errors.New("the runner has no way to take the container away")
		}
		return try(ctx, b)
	})
}

func (b *box) vanish(ctx context.Context) error {
	return wrap("take the container away", b.subject.Vanish(ctx, b.Environment))
}

// renewed runs a command that must tell of the recreation.
func (b *box) renewed(ctx context.Context, text, out string) error {
	r, err := b.Execute(ctx, contract.Request{Command: text})
	if err != nil {
		return wrap("the first command after the container went away", err)
	}
	if r.ExitCode != 0 || !r.Recreated || string(r.Output) != b.fill(out) {
		return fmt.Errorf("the first command after the container went away: status %d, recreated %v, %q; want 0, true and %q", r.ExitCode, r.Recreated, clip(string(r.Output)), b.fill(out))
	}
	if id := b.Info().ContainerID; r.ContainerID != id || id == "" {
		return fmt.Errorf("it ran in container %q, and the handle names %q", r.ContainerID, id)
	}
	return nil
}

func nextWorks(ctx context.Context, b *box) error {
	before := b.Info().ContainerID
	r, err := b.Execute(ctx, contract.Request{Command: "true"})
	if err != nil || r.Recreated {
		return fmt.Errorf("before anything happened: recreated %v, %s", r.Recreated, said(err))
	}
	if err := b.vanish(ctx); err != nil {
		return err
	}
	if err := b.renewed(ctx, "echo on", "on\n"); err != nil {
		return err
	}
	if b.Info().ContainerID == before {
		return fmt.Errorf("the container is still %s", before)
	}
	r, err = b.Execute(ctx, contract.Request{Command: "true"})
	if err != nil || r.Recreated {
		return fmt.Errorf("the second command: recreated %v, %s; want it said once", r.Recreated, said(err))
	}
	return nil
}

func homeIsKept(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "echo kept >~/c_kept"}); err != nil {
		return err
	}
	if err := b.vanish(ctx); err != nil {
		return err
	}
	return b.renewed(ctx, "cat ~/c_kept", "kept\n")
}

func stateIsGone(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "export C_GONE=1; c_gone() { :; }"}); err != nil {
		return err
	}
	if err := b.vanish(ctx); err != nil {
		return err
	}
	return b.renewed(ctx, `echo "[${C_GONE-none}]"; type -t c_gone || echo none`, "[none]\nnone\n")
}

func startsAtHome(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "cd /usr"}); err != nil {
		return err
	}
	if err := b.vanish(ctx); err != nil {
		return err
	}
	dir := contract.StartDirectory(b.subject.Provider.DefaultCwd(), b.Info().Home)
	return b.renewed(ctx, "pwd", dir+"\n")
}

func everyHandle(ctx context.Context, b *box) error {
	return b.again(ctx, "", func(second *box) error {
		if err := b.vanish(ctx); err != nil {
			return err
		}
		if err := b.renewed(ctx, "echo first", "first\n"); err != nil {
			return err
		}
		if err := second.renewed(ctx, "echo second", "second\n"); err != nil {
			return fmt.Errorf("another handle: %w", err)
		}
		return want("the other handle's container", second.Info().ContainerID, b.Info().ContainerID)
	})
}

func prefixFollows(ctx context.Context, b *box) error {
	if err := b.vanish(ctx); err != nil {
		return err
	}
	out, err := b.bash(ctx, "echo $((6 * 7))")
	if err != nil {
		return err
	}
	return want("what runs behind the prefix", out, "42\n")
}
