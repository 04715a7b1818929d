package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func prefixCases() []Case {
	const (
		words = "Hermes 2: bash, -c and a script, appended as separate words, arrive untouched"
		inter = "contract.Environment.ExecPrefix: interactive keeps standard input open"
	)
	return []Case{
		{"prefix/list-with-an-absolute-program", "Hermes 2: exec_prefix is a list, the local argv; the host has only PATH to look further words up", onAny(prefixShape)},
		{"prefix/words-untouched", words, onAny(wordsUntouched)},
		{"prefix/long-word", words + ", up to the kernel's 128 KiB for one", onAny(longWord)},
		{"prefix/inside-the-sandbox", "Hermes 2: the words run inside the sandbox", onAny(insideSandbox)},
		{"prefix/same-account", "contract.Environment.ExecPrefix: no user is the sandbox's own account", onAny(sameAccount)},
		{"prefix/status", "Hermes 4: the program's status is the prefix's", onAny(prefixStatus)},
		{"prefix/streams-apart", "Hermes 4: stdout and stderr stay apart", onAny(streamsApart)},
		{"prefix/binary-both-ways", inter + ", for bytes of any kind", onAny(binaryBothWays)},
		{"prefix/end-of-input", inter + ", and its end reaches the program", onAny(endOfInput)},
		{"prefix/not-interactive", "Hermes 2: interactive=False keeps standard input out", onAny(notInteractive)},
		{"prefix/no-user-is-a-flag", "contract.ValidUser: what is no user name never becomes a word of the argv", onAny(noFlag)},
	}
}

// through runs words behind the prefix as a host does: locally, with nothing but PATH in the environment.
func (b *box) through(ctx context.Context, interactive bool, in io.Reader, words ...string) (stdout, stderr string, code int, err error) {
	argv, err := b.ExecPrefix(ctx, "", interactive)
	if err != nil {
		return "", "", 0, wrap("exec_prefix", err)
	}
	if len(argv) == 0 {
		return "", "", 0, errors.New("exec_prefix gives no words")
	}
	argv = append(slices.Clone(argv), words...)
	var out, complaints bytes.Buffer
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	command.Stdin, command.Stdout, command.Stderr = in, &out, &complaints
	command.WaitDelay = time.Second // what was started behind the prefix may keep our pipes open after a kill
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out.String(), complaints.String(), exit.ExitCode(), nil
	}
	return out.String(), complaints.String(), 0, wrap(argv[0], err)
}

// bash is through for a script that must succeed.
func (b *box) bash(ctx context.Context, script string, words ...string) (string, error) {
	out, complaints, code, err := b.through(ctx, true, nil, append([]string{"bash", "-c", script}, words...)...)
	if err == nil && code != 0 {
		err = fmt.Errorf("%q behind the prefix: status %d and %q", clip(script), code, clip(complaints))
	}
	return out, err
}

func prefixShape(ctx context.Context, b *box) error {
	for _, interactive := range []bool{true, false} {
		argv, err := b.ExecPrefix(ctx, "", interactive)
		if err != nil {
			return wrap("exec_prefix", err)
		}
		if len(argv) < 2 || !filepath.IsAbs(argv[0]) || slices.Contains(argv, "") {
			return fmt.Errorf("the argv is %q, want an absolute program and words that are not empty", argv)
		}
		if _, err := exec.LookPath(argv[0]); err != nil {
			return err
		}
	}
	return nil
}

func wordsUntouched(ctx context.Context, b *box) error {
	given := []string{"a b", "", "'", `"`, `\`, "$HOME `id`", "*", "-x", "--", "ü€😀", "two\nlines", "tab\t"}
	out, err := b.bash(ctx, `printf '<%s>' "$@"`, append([]string{"bash"}, given...)...)
	if err != nil {
		return err
	}
	return want("what the words arrive as", out, "<"+strings.Join(given, "><")+">")
}

func longWord(ctx context.Context, b *box) error {
	const length = 120_000
	out, err := b.bash(ctx, "x="+strings.Repeat("q", length)+"\necho ${#x}")
	if err != nil {
		return err
	}
	return want("the length of a long word", out, fmt.Sprintln(length))
}

func insideSandbox(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		if _, err := b.bash(ctx, `echo through >"$1"/f`, "bash", dir); err != nil {
			return err
		}
		return b.steps(ctx, step{sh: "cat " + quote(dir+"/f"), out: "through\n"})
	})
}

func sameAccount(ctx context.Context, b *box) error {
	here, err := b.do(ctx, "id -u; id -g")
	if err != nil {
		return err
	}
	there, err := b.bash(ctx, "id -u; id -g")
	if err != nil {
		return err
	}
	return want("the account behind the prefix", there, here)
}

func prefixStatus(ctx context.Context, b *box) error {
	for _, wanted := range []int{0, 7} {
		_, _, code, err := b.through(ctx, true, nil, "bash", "-c", fmt.Sprintf("exit %d", wanted))
		if err != nil {
			return err
		}
		if err := want("the status", code, wanted); err != nil {
			return err
		}
	}
	return nil
}

func streamsApart(ctx context.Context, b *box) error {
	out, complaints, _, err := b.through(ctx, true, nil, "bash", "-c", "echo out; echo err >&2")
	if err != nil {
		return err
	}
	return errors.Join(want("stdout", out, "out\n"), want("stderr", complaints, "err\n"))
}

func binaryBothWays(ctx context.Context, b *box) error {
	var all strings.Builder
	const rounds, values = 1000, 256
	for range rounds {
		for v := range values {
			all.WriteByte(byte(v))
		}
	}
	out, complaints, _, err := b.through(ctx, true, strings.NewReader(all.String()), "cat")
	if err != nil {
		return err
	}
	if out != all.String() {
		return fmt.Errorf("%d bytes went in and %d others came out (%q)", all.Len(), len(out), clip(complaints))
	}
	return nil
}

func endOfInput(ctx context.Context, b *box) error {
	out, _, _, err := b.through(ctx, true, strings.NewReader("abc"), "bash", "-c", "wc -c; echo after")
	if err != nil {
		return err
	}
	return want("the output", out, "3\nafter\n")
}

func notInteractive(ctx context.Context, b *box) error {
	out, _, _, err := b.through(ctx, false, strings.NewReader("not for you\n"), "bash", "-c", "cat; echo end")
	if err != nil {
		return err
	}
	return want("the output", out, "end\n")
}

func noFlag(ctx context.Context, b *box) error {
	for _, user := range []string{"-i", "--privileged", "a b", "a\n", "a:b:c"} {
		argv, err := b.ExecPrefix(ctx, user, true)
		if err == nil {
			return fmt.Errorf("the user %q gives %q, want none", user, argv)
		}
		if err := backendError(fmt.Sprintf("the user %q", user), err); err != nil {
			return err
		}
	}
	return nil
}
