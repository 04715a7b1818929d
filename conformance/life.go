package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func lifeCases() []Case {
	const (
		detach = "contract.Environment.Cleanup: a persistent sandbox keeps running"
		remove = "contract.Environment.Cleanup: any sandbox goes when remove is set"
	)
	return []Case{
		{"life/created-once", "contract.Info.Created: true when this call made the container", onNew(createdOnce)},
		{"life/result-names-the-container", "contract.Result.ContainerID: the container that ran the command", onAny(resultNames)},
		{"life/one-name-one-sandbox", "contract.Provider.CreateEnvironment: it takes the living one of that name, also when many ask at once", oneName},
		{"life/handles-share-state", "contract.Environment: the state is the sandbox's", onAny(handlesShare)},
		{"life/handles-share-the-directory", "contract.Request.Dir: the lasting directory is part of that state", onAny(handlesShareDirectory)},
		{"life/cleanup-detaches", detach, onNew(cleanupDetaches)},
		{"life/cleanup-twice", "contract.Environment.Cleanup: idempotent", onNew(cleanupTwice)},
		{"life/cleanup-ends-the-handle", "contract.Environment.Cleanup: it lets go of the sandbox, so the handle is of no use any more", onAny(cleanupEnds)},
		{"life/cleanup-is-the-handles-own", detach + ", and so do other handles on it", onAny(cleanupOfOne)},
		{"life/cleanup-with-remove", remove, onNew(cleanupRemoves)},
		{"life/home-outlives-removal", "contract.Environment.Cleanup: the home of a persistent sandbox stays either way", onNew(homeOutlives)},
		{"life/ephemeral", "contract.Config.Persistent: without it, Cleanup removes the sandbox and its home", onNewWith(func(c *contract.Config) { c.Persistent = false }, ephemeral)},
	}
}

func createdOnce(ctx context.Context, b *box) error {
	if err := want("created, of the first handle,", b.Info().Created, true); err != nil {
		return err
	}
	id := b.Info().ContainerID
	return b.again(ctx, "", func(b *box) error {
		return errors.Join(want("created, of the second handle,", b.Info().Created, false), want("the second handle's container", b.Info().ContainerID, id))
	})
}

func resultNames(ctx context.Context, b *box) error {
	r, err := b.Execute(ctx, contract.Request{Command: "true"})
	if err != nil {
		return err
	}
	if id := b.Info().ContainerID; id == "" || r.ContainerID != id {
		return fmt.Errorf("it ran in container %q, and the handle names %q", r.ContainerID, id)
	}
	return nil
}

func oneName(ctx context.Context, s Subject) (err error) {
	const callers = 4
	cfg := s.Config()
	var (
		envs [callers]contract.Environment
		errs [callers]error
		wait sync.WaitGroup
	)
	for i := range callers {
		wait.Go(func() { envs[i], errs[i] = s.Provider.CreateEnvironment(ctx, cfg, "") })
	}
	wait.Wait()
	defer func() {
		for _, env := range envs {
			if env != nil {
				err = errors.Join(err, env.Cleanup(context.WithoutCancel(ctx), false))
			}
		}
		err = errors.Join(err, s.discard(ctx, cfg, nil))
	}()
	created := 0
	for i, env := range envs {
		if errs[i] != nil || env == nil {
			return fmt.Errorf("caller %d of %d: %w", i+1, callers, wrap("create", errors.Join(errs[i], noEnvironment(env))))
		}
		if env.Info().Created {
			created++
		}
		if a, b := env.Info().ContainerID, envs[0].Info().ContainerID; a != b {
			return fmt.Errorf("two callers got containers %s and %s", a, b)
		}
	}
	if err := want("how many callers made it", created, 1); err != nil {
		return err
	}
	return envs[0].Cleanup(ctx, true)
}

func noEnvironment(env contract.Environment) error {
	if env == nil {
		return errors.New("no environment")
	}
	return nil
}

func handlesShare(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "export C_H=1; c_l() { echo f; }; alias c_m='echo a'"}); err != nil {
		return err
	}
	if err := b.again(ctx, "", func(b *box) error {
		return b.steps(ctx, step{sh: "echo $C_H; c_l; c_m; export C_H=2", out: "1\nf\na\n"})
	}); err != nil {
		return err
	}
	return b.steps(ctx, step{sh: "echo $C_H; unset C_H; unset -f c_l; unalias c_m", out: "2\n"})
}

func handlesShareDirectory(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "cd /usr", dir: "~"}); err != nil {
		return err
	}
	return b.again(ctx, "", func(b *box) error { return b.steps(ctx, step{sh: "pwd", out: "/usr\n"}) })
}

func cleanupDetaches(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "export C_D=1"}); err != nil {
		return err
	}
	if err := b.Cleanup(ctx, false); err != nil {
		return wrap("cleanup", err)
	}
	return b.again(ctx, "", func(b *box) error {
		return errors.Join(want("created after a cleanup", b.Info().Created, false), b.steps(ctx, step{sh: "echo $C_D", out: "1\n"}))
	})
}

func cleanupTwice(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "echo alive", out: "alive\n"}); err != nil {
		return err
	}
	for _, remove := range []bool{false, false, true, true, false} {
		if err := b.Cleanup(ctx, remove); err != nil {
			return wrap(fmt.Sprintf("cleanup once more, remove %v", remove), err)
		}
	}
	return nil
}

func cleanupEnds(ctx context.Context, b *box) error {
	env, err := b.subject.Provider.CreateEnvironment(ctx, b.config, "")
	if err != nil {
		return err
	}
	if err := env.Cleanup(ctx, false); err != nil {
		return wrap("cleanup", err)
	}
	_, err = env.Execute(ctx, contract.Request{Command: "true"})
	return backendError("a command through a handle that was cleaned up", err)
}

func cleanupOfOne(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "export C_O=1"}); err != nil {
		return err
	}
	if err := b.again(ctx, "", func(*box) error { return nil }); err != nil {
		return err
	}
	return b.steps(ctx, step{sh: "echo $C_O; unset C_O", out: "1\n"})
}

func cleanupRemoves(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "export C_R=1"}); err != nil {
		return err
	}
	id := b.Info().ContainerID
	if err := b.Cleanup(ctx, true); err != nil {
		return wrap("cleanup with remove", err)
	}
	return b.again(ctx, "", func(b *box) error {
		if i := b.Info(); !i.Created || i.ContainerID == id {
			return fmt.Errorf("after a removal: created %v, container %s, want another one than %s", i.Created, i.ContainerID, id)
		}
		return b.steps(ctx, step{sh: `echo "[${C_R-none}]"`, out: "[none]\n"})
	})
}

func homeOutlives(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "echo kept >~/c_kept"}); err != nil {
		return err
	}
	if err := b.Cleanup(ctx, true); err != nil {
		return wrap("cleanup with remove", err)
	}
	return b.again(ctx, "", func(b *box) error { return b.steps(ctx, step{sh: "cat ~/c_kept", out: "kept\n"}) })
}

func ephemeral(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "echo lost >~/c_lost; cat ~/c_lost", out: "lost\n"}); err != nil {
		return err
	}
	id := b.Info().ContainerID
	if err := b.Cleanup(ctx, false); err != nil {
		return wrap("cleanup", err)
	}
	return b.again(ctx, "", func(b *box) error {
		if i := b.Info(); !i.Created || i.ContainerID == id {
			return fmt.Errorf("after the cleanup of one that is not persistent: created %v, container %s, want another one than %s", i.Created, i.ContainerID, id)
		}
		return b.steps(ctx, step{sh: "[[ -e ~/c_lost ]]", code: 1})
	})
}
