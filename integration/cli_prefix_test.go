//go:build integration

package integration

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// prefixed is a command line made of what `dockerbox prefix --json` printed and the words behind it, with nothing but PATH in its
// environment, as Hermes runs it.
type prefixed struct {
	t    *testing.T
	argv []string
}

func prefix(t *testing.T, box string, flags ...string) prefixed {
	t.Helper()
	out, err := exec.Command(dockerboxBinary(t), append(append([]string{"prefix", "--json"}, flags...), box)...).Output()
	if err != nil {
		t.Fatalf("prefix %v: %v", flags, err)
	}
	var answer struct {
		Schema int
		Argv   []string
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Schema != 1 || len(answer.Argv) == 0 || !filepath.IsAbs(answer.Argv[0]) {
		t.Fatalf("prefix %v printed %s: %v", flags, out, err)
	}
	return prefixed{t, answer.Argv}
}

func (p prefixed) command(words ...string) *exec.Cmd {
	all := append(append([]string{}, p.argv...), words...)
	c := exec.CommandContext(p.t.Context(), all[0], all[1:]...)
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	return c
}

// run returns stdout of words that must work.
func (p prefixed) run(stdin io.Reader, words ...string) string {
	p.t.Helper()
	c := p.command(words...)
	c.Stdin = stdin
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		p.t.Fatalf("%.80q: %v\n%s", words, err, stderr.Bytes())
	}
	return string(out)
}

// prefixBox makes a sandbox for one test.
func prefixBox(t *testing.T) string {
	t.Helper()
	box := freshName("prefix")
	t.Cleanup(func() { removeSandboxes(t, box) })
	if out, err := exec.Command(dockerboxBinary(t), "up", box).CombinedOutput(); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	return box
}

func TestPrefixKeepsScriptsWhole(t *testing.T) {
	p := prefix(t, prefixBox(t))
	for name, tc := range map[string]struct{ script, want string }{
		"quotes":         {`echo "a 'b' \"c\""; echo 'd "e" \'`, "a 'b' \"c\"\nd \"e\" \\\n"},
		"newlines":       {"echo one\n\nif true; then\n\techo two\nfi\n", "one\ntwo\n"},
		"dollar":         {`X='a  b'; echo "$X" $X '$X' $(echo $((6*7))) "${#X}" \$X`, "a  b a b $X 42 4 $X\n"},
		"here document":  {"cat <<'EOF'\n$HOME `x` \\n\nEOF\n", "$HOME `x` \\n\n"},
		"non-ASCII":      {"printf '%s' 'をテ€ üß 🙂' | od -An -tx1 | tr -d ' \\n'; echo; echo をテ€", "e38292e38386e282ac20c3bcc39f20f09f9982\nをテ€\n"},
		"trailing space": {"printf '<%s>' 'x '  ", "<x >"},
		"empty word":     {`printf '<%s>' ''`, "<>"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (prefixed{t, p.argv}).run(nil, "bash", "-c", tc.script); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("120 kB", func(t *testing.T) {
		filler := strings.Repeat("q", 120_000)
		if got := (prefixed{t, p.argv}).run(nil, "bash", "-c", "x="+filler+"; echo ${#x}"); got != "120000\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("words after the script", func(t *testing.T) {
		if got := (prefixed{t, p.argv}).run(nil, "bash", "-c", `printf '[%s]' "$@"`, "name", "a b", "", "$c"); got != "[a b][][$c]" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("status", func(t *testing.T) {
		c := (prefixed{t, p.argv}).command("bash", "-c", "exit 42")
		if err := c.Run(); err == nil || c.ProcessState.ExitCode() != 42 {
			t.Errorf("got %v", err)
		}
	})
}

func TestPrefixUsers(t *testing.T) {
	box := prefixBox(t)
	for user, want := range map[string]string{"": "1000:1000", "pn": "1000:1000", "root": "0:0", "4242": "4242:0", "4242:4343": "4242:4343"} {
		var flags []string
		if user != "" {
			flags = []string{"--user", user}
		}
		if got := prefix(t, box, flags...).run(nil, "bash", "-c", `echo "$(id -u):$(id -g)"`); got != want+"\n" {
			t.Errorf("user %q: %q, want %s", user, got, want)
		}
	}
}

func TestPrefixCarriesBinaryBothWays(t *testing.T) {
	const size = 64 << 20
	p := prefix(t, prefixBox(t))
	in, out := sha256.New(), sha256.New()
	c := p.command("bash", "-c", "cat")
	c.Stdin = io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{7}), size), in)
	c.Stdout = out
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(in.Sum(nil), out.Sum(nil)) {
		t.Fatal("64 MiB came back with another hash")
	}
}

// The end of standard input alone ends cat, while its output is still open.
func TestPrefixHalfClosedInputEndsCat(t *testing.T) {
	p := prefix(t, prefixBox(t))
	c := p.command("bash", "-c", "cat; echo end")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(stdin, "some\n"); err != nil {
		t.Fatal(err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case err := <-done:
		if err != nil || out.String() != "some\nend\n" {
			t.Fatalf("%q, %v", out.String(), err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("cat did not end with its input")
	}
}

func TestPrefixWithoutInput(t *testing.T) {
	p := prefix(t, prefixBox(t), "--no-interactive")
	for _, word := range p.argv {
		if word == "-i" {
			t.Errorf("%q still connects standard input", p.argv)
		}
	}
	if got := p.run(strings.NewReader("unread"), "bash", "-c", "cat; echo end"); got != "end\n" {
		t.Errorf("got %q", got)
	}
}
