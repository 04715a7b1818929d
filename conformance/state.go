package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func stateCases() []Case {
	const (
		lasts    = "Hermes 2: cd, exported variables, functions and aliases last"
		survives = "contract.Request.Command: state survives however a command ends"
		alone    = "contract.Request.Env: these hold for one command alone"
	)
	return []Case{
		{"state/directory", lasts, script(step{sh: "cd /usr", dir: "~"}, step{sh: "pwd", out: "/usr\n"}, step{sh: "cd /; cd -", out: "/usr\n"}, step{sh: "pwd", out: "/usr\n"})},
		{"state/previous-directory", lasts, script(step{sh: "cd /; cd /usr", dir: "~"}, step{sh: "cd -", out: "/\n"})},
		{"state/export", lasts, script(step{sh: "export C_E='x  y'"}, step{sh: `echo "$C_E"`, out: "x  y\n"}, step{sh: "bash -c 'echo \"$C_E\"'", out: "x  y\n"}, step{sh: "unset C_E"})},
		{"state/export-of-any-value", lasts, script(
			step{sh: `export C_V=$'a\nb\'c"d\\e$f` + "`g`" + `\tä '`}, step{sh: `printf %s "$C_V"`, out: "a\nb'c\"d\\e$f`g`\tä "}, step{sh: "unset C_V"})},
		{"state/export-changed", lasts, script(step{sh: "export C_C=1"}, step{sh: "C_C=2"}, step{sh: "echo $C_C", out: "2\n"}, step{sh: "unset C_C"})},
		{"state/unset", lasts, script(step{sh: "export C_U=1"}, step{sh: "unset C_U"}, step{sh: `echo "[${C_U-none}]"`, out: "[none]\n"})},
		{"state/function", lasts, script(step{sh: "c_f() { echo \"f $1\"; }"}, step{sh: "c_f x", out: "f x\n"}, step{sh: "unset -f c_f"}, step{sh: "type c_f >/dev/null 2>&1", code: 1})},
		{"state/function-calls-function", lasts, script(step{sh: "c_g() { echo g; }; c_h() { c_g; }"}, step{sh: "c_h", out: "g\n"}, step{sh: "c_h", out: "g\n"}, step{sh: "unset -f c_g c_h"})},
		{"state/alias", lasts, script(step{sh: "alias c_a='echo aliased'"}, step{sh: "c_a", out: "aliased\n"}, step{sh: "unalias c_a"}, step{sh: "alias c_a >/dev/null 2>&1", code: 1})},
		{"state/exit-keeps-it", survives, script(step{sh: "export C_X=1; cd /usr; exit 3", dir: "~", code: 3}, step{sh: "echo $C_X; pwd", out: "1\n/usr\n"}, step{sh: "unset C_X"})},
		{"state/errexit-keeps-it", survives, script(step{sh: "set -e; export C_S=1; false; export C_S=2", code: 1}, step{sh: "echo $C_S", out: "1\n"}, step{sh: "unset C_S"})},
		{"state/options-do-not-last", "contract.Request.Command: strict mode is the command's own", script(
			step{sh: "set -euo pipefail; echo ok", out: "ok\n"}, step{sh: `echo "[$C_NOPE]"; false; echo on`, out: "[]\non\n"})},
		{"state/exit-trap", survives, script(step{sh: "trap 'echo bye' EXIT; export C_T=1; exit 4", out: "bye\n", code: 4}, step{sh: "echo $C_T", out: "1\n"}, step{sh: "unset C_T"})},
		{"state/broken-text", "contract.Request.Command: a text that is no program fails alone", onAny(brokenText)},
		{"state/long-text", "contract.Request.Command: it may have any length", onAny(longText)},
		{"state/concurrent-exports", "contract.Environment: concurrent commands merge their changes", onAny(concurrentExports)},
		{"state/variables-of-one-command", alone, onAny(variablesOfOneCommand)},
		{"state/transient-names", "contract.Request.Transient: these never enter lasting state, even exported", onAny(transientNames)},
		{"state/words-leave-it-alone", "contract.Request.Argv: words run without touching lasting state", onAny(wordsLeaveIt)},
		{"state/exact-words", "contract.Request.Argv: an exact list of words, run without a shell", onAny(exactWords)},
	}
}

func brokenText(ctx context.Context, b *box) error {
	for _, text := range []string{"echo 'open", "if true; then", "cat <<END\nx", ")"} {
		if _, err := b.Execute(ctx, contract.Request{Command: text}); err != nil {
			return wrap(fmt.Sprintf("%q", text), err)
		}
		if err := b.steps(ctx, step{sh: "echo on", out: "on\n"}); err != nil {
			return fmt.Errorf("after %q: %w", text, err)
		}
	}
	return nil
}

func longText(ctx context.Context, b *box) error {
	const length = 200_000
	return b.steps(ctx, step{sh: "echo " + strings.Repeat("q", length) + " | wc -c", out: fmt.Sprintln(length + 1)})
}

func concurrentExports(ctx context.Context, b *box) error {
	const commands = 4
	errs := make([]error, commands)
	var wait sync.WaitGroup
	for i := range commands {
		// Each stays until all have begun, or their changes would not meet.
		wait.Go(func() {
			errs[i] = b.steps(ctx, step{sh: fmt.Sprintf("export C_P%d=%d; touch ~/.c_p%d; for n in {1..600}; do set -- ~/.c_p?; (($# == %d)) && exit 0; sleep 0.05; done; exit 1", i, i, i, commands)})
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return b.steps(ctx, step{sh: "rm ~/.c_p?; echo $C_P0 $C_P1 $C_P2 $C_P3", out: "0 1 2 3\n"}, step{sh: "unset C_P0 C_P1 C_P2 C_P3"})
}

func variablesOfOneCommand(ctx context.Context, b *box) error {
	r, err := b.Execute(ctx, contract.Request{Command: `echo "$C_ONE"; export C_OTHER=o`, Env: map[string]string{"C_ONE": "a b'$\nc"}})
	if err != nil {
		return err
	}
	if err := want("the variable inside", string(r.Output), "a b'$\nc\n"); err != nil {
		return err
	}
	return b.steps(ctx, step{sh: `echo "[${C_ONE-none}] $C_OTHER"`, out: "[none] o\n"}, step{sh: "unset C_OTHER"})
}

func transientNames(ctx context.Context, b *box) error {
	_, err := b.Execute(ctx, contract.Request{
		Command: "export C_SECRET=1 C_S_X=2 C_KEPT=3", Transient: []string{"C_SECRET", "C_S_*"},
	})
	if err != nil {
		return err
	}
	return b.steps(ctx, step{sh: `echo "[${C_SECRET-}${C_S_X-}] $C_KEPT"`, out: "[] 3\n"}, step{sh: "unset C_KEPT"})
}

func wordsLeaveIt(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "cd /usr; export C_W=kept", dir: "~"}); err != nil {
		return err
	}
	if _, err := b.Execute(ctx, contract.Request{Argv: []string{"bash", "-c", "cd /; export C_W=lost"}}); err != nil {
		return err
	}
	return b.steps(ctx, step{sh: "pwd; echo $C_W", out: "/usr\nkept\n"}, step{sh: "unset C_W"})
}

func exactWords(ctx context.Context, b *box) error {
	r, err := b.Execute(ctx, contract.Request{Argv: []string{"printf", "<%s>", "a b", "", "$HOME", "*", "ü\n", `"'\`}})
	if err != nil {
		return err
	}
	return want("what words arrive as", string(r.Output), "<a b><><$HOME><*><ü\n><\"'\\>")
}
