package conformance

import (
	"context"
	"fmt"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func statusCases() []Case {
	const (
		own    = "contract.Result.ExitCode: the command's own status is a result, not an error"
		signal = "contract.Signalled: 128+n for a command that signal n ended"
	)
	return []Case{
		{"status/zero", own, script(step{sh: "true"})},
		{"status/any", own, script(step{sh: "exit 7", code: 7}, step{sh: "exit 255", code: 255}, step{sh: "(exit 124)", code: 124})},
		{"status/last-command", own, script(step{sh: "true; false", code: 1}, step{sh: "false; true"})},
		{"status/not-found", "contract.ExitNotFound: 127 for a program that does not exist", onAny(programs(contract.ExitNotFound, "no-such-program-anywhere"))},
		{"status/not-executable", "contract.ExitNotExecutable: 126 for what cannot be executed", onAny(programs(contract.ExitNotExecutable, "/etc/passwd"))},
		{"status/a-directory", "contract.ExitNotExecutable: 126 for a directory", onAny(programs(contract.ExitNotExecutable, "/etc"))},
		{"status/not-found-as-words", "contract.ExitNotFound: the same for an Argv, and the output names it", onAny(words(contract.ExitNotFound, "no-such-program-anywhere"))},
		{"status/not-executable-as-words", "contract.ExitNotExecutable: the same for an Argv", onAny(words(contract.ExitNotExecutable, "/etc/passwd"))},
		{"status/killed-by-a-signal", signal, onAny(signals)},
	}
}

func programs(code int, name string) func(context.Context, *box) error {
	return func(ctx context.Context, b *box) error {
		r, err := b.Execute(ctx, contract.Request{Command: name})
		return outcome(name, r, err, code)
	}
}

func words(code int, name string) func(context.Context, *box) error {
	return func(ctx context.Context, b *box) error {
		r, err := b.Execute(ctx, contract.Request{Argv: []string{name, "x"}})
		return outcome(name, r, err, code)
	}
}

func outcome(name string, r contract.Result, err error, code int) error {
	switch {
	case err != nil:
		return wrap(name, err)
	case r.ExitCode != code || len(r.Output) == 0:
		return fmt.Errorf("%s: status %d and %q, want %d and a reason", name, r.ExitCode, clip(string(r.Output)), code)
	}
	return nil
}

func signals(ctx context.Context, b *box) error {
	const kill, term, usr1 = 9, 15, 10
	for _, sig := range []int{kill, term, usr1} {
		r, err := b.Execute(ctx, contract.Request{Command: fmt.Sprintf("kill -%d $$", sig)})
		if err != nil {
			return err
		}
		if err := want(fmt.Sprintf("the status after signal %d", sig), r.ExitCode, contract.Signalled(sig)); err != nil {
			return err
		}
	}
	return b.steps(ctx, step{sh: "echo on", out: "on\n"})
}
