package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func directoryCases() []Case {
	const (
		refused = "contract.Request.Dir: one that cannot be entered is status 126, names it and runs nothing"
		given   = "Hermes 3.6: a directory given for a command beats the recorded one"
		tilde   = "contract.Request.Dir: a leading \"~\" is the account's home inside"
	)
	return []Case{
		{"directory/given-wins", given, script(step{sh: "cd /usr", dir: "~"}, step{sh: "pwd", dir: "/", out: "/\n"})},
		{"directory/given-does-not-leak", "contract.Request.Dir: it is for one command; only a cd of the command's own lasts", script(
			step{sh: "cd /usr", dir: "~"}, step{sh: "true", dir: "/"}, step{sh: "pwd", out: "/usr\n"})},
		{"directory/tilde", tilde, script(step{sh: "cd /usr", dir: "~"}, step{sh: "pwd", dir: "~", out: "{home}\n"})},
		{"directory/below-tilde", tilde, onAny(belowTilde)},
		{"directory/unknown", refused, onAny(refusedDirectory("/no/such/place"))},
		{"directory/unknown-below-tilde", refused, onAny(refusedDirectory("~/no/such/place"))},
		{"directory/a-file", refused, onAny(refusedDirectory("/etc/passwd"))},
		{"directory/relative", "Hermes 3.2: a relative directory means nothing inside", onAny(refusedDirectory("usr"))},
		{"directory/windows-path", "Hermes 3.2: a Windows path means nothing inside", onAny(refusedDirectory(`D:\work`))},
		{"directory/deleted", "Hermes 2: a directory the sandbox reported and that is gone leads to the nearest parent, said once", onAny(deletedDirectory)},
		{"directory/no-better-idea", "Hermes 6: exactly /root that the account cannot enter means the home", onAny(rootDirectory)},
		{"directory/exact-name", "Hermes 2: the recorded directory is exact, spaces and newlines included", onAny(exactName)},
		{"directory/reported", "contract.Result.Cwd: the working directory this command left behind", onAny(reportedDirectory)},
		{"directory/of-words", "contract.Request.Dir: empty means the home for an Argv", onAny(directoryOfWords)},
	}
}

func belowTilde(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		home := b.Info().Home
		return b.steps(ctx, step{sh: "pwd", dir: "~" + dir[min(len(home), len(dir)):], out: dir + "\n"})
	})
}

// refusedDirectory wants 126, the directory's name in the output, no trace of the command, and an unharmed sandbox.
func refusedDirectory(dir string) func(context.Context, *box) error {
	return func(ctx context.Context, b *box) error {
		const trace = "it-ran"
		r, err := b.Execute(ctx, contract.Request{Command: "echo it-''ran", Dir: dir})
		if err != nil {
			return wrap("a command in "+dir, err)
		}
		name := strings.TrimPrefix(dir, "~")
		if out := string(r.Output); r.ExitCode != contract.ExitNotExecutable || !strings.Contains(out, name) || strings.Contains(out, trace) {
			return fmt.Errorf("a command in %s: status %d and %q, want %d, the name and no %q", dir, r.ExitCode, clip(out), contract.ExitNotExecutable, trace)
		}
		return b.steps(ctx, step{sh: "echo on", dir: "~", out: "on\n"})
	}
}

func deletedDirectory(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		gone := dir + "/a/b"
		r, err := b.Execute(ctx, contract.Request{Command: "mkdir -p " + quote(gone) + " && cd " + quote(gone)})
		if err != nil || r.Cwd != gone {
			return fmt.Errorf("cd %s: it reported %q, %s", gone, r.Cwd, said(err))
		}
		if err := b.steps(ctx, step{sh: "rm -r " + quote(dir+"/a"), dir: "~"}); err != nil {
			return err
		}
		first, err := b.Execute(ctx, contract.Request{Command: "pwd", Dir: gone})
		if err != nil {
			return err
		}
		out := string(first.Output)
		note, ok := strings.CutSuffix(out, dir+"\n")
		if first.ExitCode != 0 || !ok || !strings.Contains(note, gone) {
			return fmt.Errorf("the first command after %s is gone: status %d and %q, want a note that names it and %s", gone, first.ExitCode, out, dir)
		}
		return b.steps(ctx, step{sh: "pwd", dir: gone, out: dir + "\n"})
	})
}

func rootDirectory(ctx context.Context, b *box) error {
	enters, err := b.do(ctx, "cd /root 2>/dev/null && pwd || echo no")
	if err != nil {
		return err
	}
	out := "/root\n"
	if enters != out {
		out = "{home}\n"
	}
	return b.steps(ctx, step{sh: "pwd", dir: "/root", out: out})
}

func exactName(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		odd := dir + "/a  b \n "
		r, err := b.Execute(ctx, contract.Request{Command: "mkdir " + quote(odd) + " && cd " + quote(odd)})
		if err != nil {
			return err
		}
		if err := want("the directory reported", r.Cwd, odd); err != nil {
			return err
		}
		return b.steps(ctx, step{sh: "pwd", out: odd + "\n"}, step{sh: "pwd", dir: r.Cwd, out: odd + "\n"}, step{sh: "cd", dir: "~"})
	})
}

func reportedDirectory(ctx context.Context, b *box) error {
	for text, dir := range map[string]string{"cd /usr": "/usr", "cd /; exit 3": "/", "cd /usr; pwd": "/usr"} {
		r, err := b.Execute(ctx, contract.Request{Command: text, Dir: "~"})
		if err != nil {
			return err
		}
		if err := want(fmt.Sprintf("the directory reported after %q", text), r.Cwd, dir); err != nil {
			return err
		}
	}
	return nil
}

func directoryOfWords(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "cd /usr", dir: "~"}); err != nil {
		return err
	}
	r, err := b.Execute(ctx, contract.Request{Argv: []string{"pwd"}})
	if err != nil {
		return err
	}
	return want("where words run", string(r.Output), b.Info().Home+"\n")
}
