//go:build integration

package integration

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// ttyBox makes a sandbox for a test.
func ttyBox(t *testing.T) string {
	t.Helper()
	box := freshName("tty")
	t.Cleanup(func() { removeSandboxes(t, box) })
	if got := withEnv(t, nil, "up", box); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	return box
}

// In rows 39 and 40 of the field's cases a program sees the first size as 0 by 0, and Ctrl-P goes missing.
func TestTerminals(t *testing.T) {
	box := ttyBox(t)
	run := func(name string, test func(t *testing.T, box string)) {
		t.Run(name, func(t *testing.T) { test(t, box) })
	}
	run("row 39: the first size is right", firstSizes)
	run("row 40: a shell loses no key", shellKeys)
	run("sizes change", changingSizes)
	run("the kind of terminal", kindOfTerminal)
	run("characters", characters)
	run("a paste of 100 kB", pastes)
	run("raw bytes both ways", rawBothWays)
	run("full screens", fullScreens)
	run("other accounts", otherAccounts)
	run("a job left behind", jobLeftBehind)
	run("a terminal without keys", withoutKeys)
	run("a terminal to itself", shellStatus)
	run("somebody who is there", somebodyThere)
}

func firstSizes(t *testing.T, box string) {
	for range 20 {
		if shown := at(t, nil, "exec", "-it", box, "stty", "size").end(0); shown != "40 132\r\n" {
			t.Fatalf("%q", shown)
		}
	}
}

func shellKeys(t *testing.T, box string) {
	o := at(t, nil, "shell", box)
	o.prompt()
	o.typed("echo 'one''line'\r")
	o.await("\noneline\r")
	o.typed("\x10") // Ctrl-P once: the line before, at once
	o.until("no previous line", func(seen string) bool { return strings.Count(seen, "'one''line'") == 2 })
	o.typed("\r")
	o.until("no second run", func(seen string) bool { return strings.Count(seen, "\noneline\r") == 2 })
	o.typed("sleep 300\r")
	o.await("sleep 300\r\n")
	o.typed("\x1a")
	o.await("Stopped")
	o.typed("fg\r")
	o.until("it is not in front again", func(seen string) bool { return strings.Count(seen, "sleep 300\r\n") >= 3 })
	o.typed("\x03")
	o.typed("echo status=$?\r")
	o.await("status=130")
	// What else clients like to keep for themselves.
	o.typed("stty -ixon -isig; head -c 6 | od -An -c\r")
	o.await("-c\r\n")
	o.typed("\x10\x11\x1d~.\n")
	o.await("020 021 035   ~   .  \\n")
	o.typed("stty sane; exit 5\r")
	o.end(5)
}

func changingSizes(t *testing.T, box string) {
	// A trap that is at work when its signal comes again does not hear of it, so it is short.
	const script = "c=0; trap 'n=1' WINCH; echo up; until ((c == 3)); do if ((n)); then n=0; stty size; ((++c)); fi; sleep 0.05; done"
	for _, args := range [][]string{{"exec", "-it", box}, {"exec", "-t", box}} {
		o := at(t, nil, append(args, "bash", "-c", script)...)
		o.await("up")
		for _, size := range []pty.Winsize{{Rows: 30, Cols: 99}, {Rows: 100, Cols: 300}, {Rows: 40, Cols: 132}} {
			if err := pty.Setsize(o.device, &size); err != nil {
				t.Fatal(err)
			}
			o.await(fmt.Sprintf("%d %d\r", size.Rows, size.Cols))
		}
		o.end(0)
	}
}

func kindOfTerminal(t *testing.T, box string) {
	for _, row := range []struct {
		variable, want string
		args           []string
	}{
		{"TERM=screen-256color", "screen-256color\r\n", nil},
		{"TERM=", "xterm-256color\r\n", nil},
		{"TERM=screen", "vt100\r\n", []string{"-e", "TERM=vt100"}},
	} {
		args := append(append([]string{"exec", "-it"}, row.args...), box, "printenv", "TERM")
		if shown := at(t, []string{row.variable}, args...).end(0); shown != row.want {
			t.Errorf("%+v: %q", row, shown)
		}
	}
}

func characters(t *testing.T, box string) {
	const text = "aé漢字🙂😀𝔘e\u0301"
	o := at(t, nil, "exec", "-it", box, "bash", "-c", "echo up; head -n1")
	o.await("up\r\n")
	o.typed(text + "\n")
	if shown := o.end(0); shown != "up\r\n"+strings.Repeat(text+"\r\n", 2) {
		t.Errorf("%q", shown)
	}
	o = at(t, nil, "shell", box)
	o.prompt()
	o.typed("echo '" + text + "' | wc -m\r")
	o.await("\n10\r") // nine, one of which is drawn over another, and the end of the line
	o.typed("exit\r")
	o.end(0)
}

// pastes wants every line in order, each echoed and read.
func pastes(t *testing.T, box string) {
	const lines = 1600 // of 64 bytes
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "%06d %s\n", i, strings.Repeat("x", 56))
	}
	o := at(t, nil, "exec", "-it", box, "bash", "-c", fmt.Sprintf("stty -echo; echo up; head -n %d", lines))
	o.await("up\r\n")
	o.typed(text.String())
	if shown, want := o.end(0), "up\r\n"+strings.ReplaceAll(text.String(), "\n", "\r\n"); shown != want {
		t.Errorf("%d bytes came back, want %d and in order", len(shown), len(want))
	}
	// With the echo, each line comes twice, and the two streams of lines are each whole.
	o = at(t, nil, "exec", "-it", box, "bash", "-c", fmt.Sprintf("echo up; head -n %d | sha256sum", lines))
	o.await("up\r\n")
	o.typed(text.String())
	shown := o.end(0)
	if sum := fmt.Sprintf("%x  -", sha256.Sum256([]byte(text.String()))); !strings.Contains(shown, sum) {
		t.Errorf("no %s in %q", sum, tail([]byte(shown)))
	}
	if !strings.HasPrefix(shown, "up\r\n"+strings.ReplaceAll(text.String(), "\n", "\r\n")) {
		t.Errorf("the echo is not what was typed: %q", tail([]byte(shown)))
	}
}

func rawBothWays(t *testing.T, box string) {
	const size = 200_000
	data := make([]byte, size)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	o := at(t, nil, "exec", "-it", box, "bash", "-c", fmt.Sprintf("stty raw -echo; echo up; head -c %d; sleep 0.1", size))
	o.await("up\n")
	o.typed(string(data))
	if got := strings.TrimPrefix(o.end(0), "up\n"); !bytes.Equal([]byte(got), data) {
		t.Errorf("%d bytes came back of %d, or others", len(got), size)
	}
}

// fullScreens wants programs to fill 40 lines, from the first picture on.
func fullScreens(t *testing.T, box string) {
	o := at(t, nil, "exec", "-it", box, "bash", "-c", "seq 1000 | less")
	o.await("\r\n39\r\n")
	o.typed("G")
	o.await("1000\r\n")
	o.typed("q")
	if shown := o.end(0); strings.Contains(shown, "\n41\r") || !strings.Contains(shown, "\x1b[?1049h") || !strings.Contains(shown, "\x1b[?1049l") {
		t.Errorf("%q", tail([]byte(shown)))
	}
	o = at(t, nil, "exec", "-it", box, "top")
	o.await("PID USER")
	o.typed("q")
	shown := o.end(0)
	header := regexp.MustCompile(`PID USER[^\r\n\x1b]*`).FindString(shown)
	if len(header) < 100 { // it is as wide as the terminal
		t.Errorf("the header is %q", header)
	}
}

func otherAccounts(t *testing.T, box string) {
	for _, words := range [][]string{
		{"sudo", "bash", "-c", "id -un; tty; echo typed >/dev/tty"},
		{"sudo", "su", "-c", "id -un; tty; echo typed >/dev/tty"},
	} {
		if shown := at(t, nil, append([]string{"exec", "-it", box}, words...)...).end(0); !regexp.MustCompile(`^root\r\n/dev/pts/\d+\r\ntyped\r\n$`).MatchString(shown) {
			t.Errorf("%q: %q", words, shown)
		}
	}
	o := at(t, nil, "shell", "-u", "root", "-w", "/usr", box)
	o.await("# ")
	o.typed("id -un; pwd; stat -c %U $(tty)\r")
	o.await("root\r\n/usr\r\nroot\r\n")
	o.typed("su pn -c 'sudo id -u; id -un'\r")
	o.await("0\r\npn\r\n")
	o.typed("exit\r")
	o.end(0)
}

// jobLeftBehind has the shell end while something still has its terminal.
func jobLeftBehind(t *testing.T, box string) {
	o := at(t, nil, "shell", box)
	o.prompt()
	o.typed("nohup sleep 5252 >/dev/tty 2>&1 & disown\r")
	o.await("prompt:")
	o.typed("exit 3\r")
	o.end(3)
	if got := withEnv(t, nil, "exec", box, "pkill", "-f", "sleep 5252"); got.status != 0 {
		t.Errorf("the job is gone: %+v", got)
	}
}

// withoutKeys is -t alone, which needs no terminal here.
func withoutKeys(t *testing.T, box string) {
	got := withEnv(t, nil, "exec", "-t", box, "bash", "-c", "tty >/dev/null && stty size; echo err >&2; exit 4")
	if got.stdout != "0 0\r\nerr\r\n" || got.stderr != "" || got.status != 4 {
		t.Errorf("%+v", got)
	}
	o := at(t, nil, "exec", "-t", box, "bash", "-c", "echo up; sleep 300")
	o.await("up")
	o.typed("\x03")
	o.end(130)
}

func shellStatus(t *testing.T, box string) {
	o := at(t, nil, "shell", "-e", "GIVEN=yes", box)
	o.prompt()
	o.typed("shopt -q login_shell && echo login $GIVEN $PWD $TERM\r")
	o.await("login yes /home/pn xterm\r\n")
	o.typed("echo [$PATH]; env | grep -c 'DOCKERBOX_P\\|PROMPT_COMMAND'\r")
	o.await("[" + strings.TrimSpace(withEnv(t, nil, "exec", box, "printenv", "PATH").stdout) + "]\r\n0\r\n")
	o.typed("kill -KILL $$\r")
	o.end(137)
	o = at(t, nil, "exec", "-it", box, "no-such-program")
	if shown := o.end(127); shown != "dockerbox: cannot run \"no-such-program\": no such program on its PATH\r\n" {
		t.Errorf("%q", shown)
	}
	o = at(t, nil, "exec", "-it", "--timeout", "1s", box, "bash", "-c", "printf up; sleep 300")
	if shown := o.end(124); shown != "up\r\ndockerbox: the command was killed after 1s\r\n" {
		t.Errorf("%q", shown)
	}
}

// somebodyThere wants prune to leave a sandbox alone in which a shell waits for its next line.
func somebodyThere(t *testing.T, box string) {
	prune := func() said { return withEnv(t, nil, "prune", "--dry-run", "--idle", "1ms") }
	o := at(t, nil, "shell", box)
	o.prompt()
	if got := prune(); !strings.Contains(got.stderr, "sandbox "+box+" stays: a process runs in it (bash)") {
		t.Errorf("%+v", got)
	}
	o.typed("exit\r")
	o.end(0)
	if got := prune(); !strings.Contains(got.stdout, "would remove sandbox "+box+" ") {
		t.Errorf("%+v", got)
	}
}

// However a shell ends, the terminal is as it was, and what it ran is over.
func TestTerminalIsRestored(t *testing.T) {
	box := ttyBox(t)
	shell := func(t *testing.T, variables ...string) *outer {
		t.Helper()
		o := at(t, variables, "shell", box)
		o.prompt()
		o.typed("sleep 5353\r")
		o.await("sleep 5353\r\n")
		return o
	}
	gone := func(t *testing.T) {
		t.Helper()
		got := withEnv(t, nil, "exec", box, "bash", "-c", "for n in {1..100}; do pgrep -f 'sleep 535[3]' >/dev/null || exit 0; sleep 0.05; done; exit 1")
		if got.status != 0 {
			t.Errorf("what ran in it runs still: %+v", got)
		}
	}
	for _, row := range []struct {
		name    string
		signals []os.Signal
		status  int
	}{
		{"TERM", []os.Signal{syscall.SIGTERM}, 130},
		{"HUP", []os.Signal{syscall.SIGHUP}, 130},
		{"INT", []os.Signal{syscall.SIGINT}, 130},
		{"INT three times", []os.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGINT}, 130},
		{"QUIT", []os.Signal{syscall.SIGQUIT}, 2}, // Go shows what it was doing
	} {
		t.Run(row.name, func(t *testing.T) {
			o := shell(t)
			for _, s := range row.signals {
				o.signal(s)
			}
			o.end(row.status)
			gone(t)
		})
	}
	t.Run("nobody reads what it shows", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		o := atWith(t, func(c *exec.Cmd) { c.Stdout = w }, nil, "exec", "-it", box, "bash", "-c", "echo up; read -r; echo lost; sleep 5353")
		_ = w.Close() // dockerbox has its own
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		o.typed("\r")
		const said = "dockerbox: error: output could not be passed on: broken pipe\r\ndockerbox: hint: "
		if shown := o.end(125); !strings.HasPrefix(shown, said) {
			t.Errorf("%q", shown)
		}
		gone(t)
	})
	for name, words := range map[string][]string{
		"its window is closed":                         nil,
		"its window is closed, and it ignores signals": {"sh", "-c", `trap '' HUP; exec "$@"`, "sh"}, // as nohup does
	} {
		t.Run(name, func(t *testing.T) {
			o := atWith(t, func(c *exec.Cmd) {
				if words != nil {
					c.Path, c.Args = "/bin/sh", append(words, c.Args...)
				}
			}, nil, "shell", box)
			o.prompt()
			o.typed("sleep 5353\r")
			o.await("sleep 5353\r\n")
			o.close()
			select {
			case <-o.ended:
			case <-time.After(patience):
				t.Fatal("it goes on without its terminal")
			}
			// Keys that do not come any more interrupt; what cannot be shown any more is a failure, if it is noticed first.
			if got := o.command.ProcessState.ExitCode(); got != 130 && got != 125 {
				t.Errorf("status %d", got)
			}
			gone(t)
		})
	}
	t.Run("the connection is cut", func(t *testing.T) {
		r := newRelay(t)
		o := shell(t, "DOCKER_HOST="+r.address)
		r.cut()
		shown := o.end(125)
		if _, last, _ := strings.Cut(shown, "sleep 5353\r\n"); !regexp.MustCompile(`^(\^C)?(\r\n)?dockerbox: error: [^\r\n]+\r\ndockerbox: hint: [^\r\n]+\r\n$`).MatchString(last) {
			t.Errorf("%q", last)
		}
		gone(t)
	})
	t.Run("the container is killed", func(t *testing.T) {
		o := at(t, nil, "shell", box)
		o.prompt()
		o.typed("printf 'half a li''ne'; sleep 300\r")
		o.await("half a line")
		docker(t, "kill", objectName("dockerbox-", box))
		shown := o.end(125)
		want := "half a line\r\ndockerbox: error: the container of sandbox \"" + box + "\" went away while a command was running\r\ndockerbox: hint: "
		if !strings.Contains(shown, want) {
			t.Errorf("%q", tail([]byte(shown)))
		}
	})
}
