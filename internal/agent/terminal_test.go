//go:build linux

package agent

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// onTerminal starts a program on a terminal of 40 lines and 132 columns.
func (c *client) onTerminal(words ...string) *answer {
	c.tb.Helper()
	return c.start(wire.Run{Argv: byteWords(words...), Stdin: true, Terminal: &wire.Size{Rows: 40, Cols: 132}})
}

func (a *answer) typed(text string) { a.client.tb.Helper(); a.send(wire.TypeInput, []byte(text)) }

func (a *answer) resize(rows, cols uint16) {
	a.client.tb.Helper()
	payload, err := json.Marshal(wire.Size{Rows: rows, Cols: cols})
	must(a.client.tb, err)
	a.send(wire.TypeResize, payload)
}

func TestTerminalIsNamedInTheHello(t *testing.T) {
	c := newWorld(t).connect(t)
	if f := c.hello.Features; !slices.Contains(f, wire.FeatureTerminal) {
		t.Errorf("features %q", f)
	}
}

// The size is there at the very first look, every time.
func TestTerminalHasItsSizeFromTheStart(t *testing.T) {
	c := newWorld(t).connect(t)
	for range 20 {
		c.onTerminal("stty", "size").wait().want("40 132\r\n", 0)
	}
	c.run(wire.Run{Argv: byteWords("stty", "size"), Terminal: &wire.Size{}}).want("0 0\r\n", 0)
}

// The program leads a session whose controlling terminal it is, in front; the device is the account's own and not for others.
func TestTerminalControlsTheSession(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	c.onTerminal("bash", "-c", `
		[[ -t 0 && -t 1 && -t 2 ]] && echo all three
		[[ $(tty) == /dev/pts/* ]] && echo named
		read -r _ _ _ _ pgrp session tty tpgid _ </proc/self/stat
		[[ $session == $$ && $tty != 0 ]] && echo leader
		[[ $(ps -o tpgid= -p $$ | tr -d ' ') == $$ ]] && echo in front
		echo through /dev/tty >/dev/tty
		[[ $(stat -c %u "$(tty)") == $UID ]] && echo own
		[[ $(stat -c %a "$(tty)") == 6[02]0 ]] && echo not for others`).wait().
		want("all three\r\nnamed\r\nleader\r\nin front\r\nthrough /dev/tty\r\nown\r\nnot for others\r\n", 0)
}

func TestTerminalTellsWhatItIs(t *testing.T) {
	w := newWorld(t)
	must(t, os.WriteFile(w.path("profile"), []byte("export TERM=of-the-login\n"), 0o644))
	c := w.connect(t)
	size := &wire.Size{Rows: 1, Cols: 1}
	c.run(wire.Run{Argv: byteWords("printenv", "TERM"), Terminal: size}).want("xterm-256color\r\n", 0)
	c.run(wire.Run{Argv: byteWords("printenv", "TERM"), Terminal: size, Env: map[string][]byte{"TERM": []byte("tmux")}}).want("tmux\r\n", 0)
	c.argv("printenv", "TERM").want("of-the-login\n", 0)
}

func TestTerminalResizes(t *testing.T) {
	c := newWorld(t).connect(t)
	a := c.onTerminal("bash", "-c", `c=0; trap 'n=1' WINCH; echo up; until ((c == 2)); do if ((n)); then n=0; stty size; ((++c)); fi; sleep 0.02; done`)
	a.until("up")
	a.resize(41, 133)
	a.until("41 133\r\n")
	a.resize(400, 1000)
	a.until("400 1000\r\n")
	a.wait().want("up\r\n41 133\r\n400 1000\r\n", 0)
	a.resize(1, 1) // crosses with the end
	b := c.start(wire.Run{Argv: byteWords("cat"), Stdin: true})
	b.resize(1, 1) // of what has no terminal
	b.send(wire.TypeEnd, nil)
	b.wait().want("", 0)
}

// A size that comes while the program is still on its way is the one it finds.
func TestTerminalResizesBeforeItIsOpen(t *testing.T) {
	w := newWorld(t)
	must(t, os.WriteFile(w.path("profile"), []byte("sleep 0.3\n"), 0o644))
	c := w.connect(t)
	a := c.onTerminal("stty", "size")
	a.resize(7, 77)
	a.wait().want("7 77\r\n", 0)
}

func TestTerminalKeys(t *testing.T) {
	c := newWorld(t).connect(t)
	// Ctrl-C ends what is in front, Ctrl-Z stops it, and the shell goes on with its jobs.
	a := c.onTerminal("bash", "--norc", "--noprofile", "-i")
	a.typed("PS1='pro''mpt>'; bind 'set enable-bracketed-paste off'; unset HISTFILE\r")
	a.until("prompt>")
	a.typed("echo go; sleep 86801\r")
	eventually(t, "it sleeps", func() bool { return alive("sleep", "86801") })
	a.typed("\x03")
	a.typed("echo status=$?\r")
	a.until("status=130")
	a.typed("sleep 86802\r")
	eventually(t, "it sleeps", func() bool { return alive("sleep", "86802") })
	a.typed("\x1a")
	a.until("Stopped")
	a.typed("kill %1; fg\r")
	a.until("Terminated")
	// Ctrl-P, Ctrl-Q and the other keys that clients like to take away arrive as any other.
	a.typed("printf '%s\\n' 'once''more'\r")
	a.until("oncemore")
	a.typed("\x10\r")
	eventually(t, "the previous line ran again", func() bool { return strings.Count(a.output(), "\noncemore\r") == 2 })
	a.typed("exit 7\r")
	a.wait()
	if a.code() != 7 {
		t.Errorf("%+v", a.exit)
	}
}

// Raw mode is raw in both directions, and nothing is lost, however much is under way.
func TestTerminalCarriesBytesInRawMode(t *testing.T) {
	c := newWorld(t).connect(t)
	const size = 2_000_000
	data := make([]byte, size)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	a := c.onTerminal("bash", "-c", fmt.Sprintf("stty raw -echo; echo up; head -c %d; sleep 0.1", size))
	a.until("up\n")
	a.feed(data)
	a.wait()
	if got := bytes.TrimPrefix(a.out.Bytes(), []byte("up\n")); sha256.Sum256(got) != sha256.Sum256(data) {
		t.Errorf("%d bytes came back of %d, or others", len(got), size)
	}
}

// What is pasted is read and echoed to its last byte, though the kernel drops echoes that find no room: also while somebody is slow to read.
func TestTerminalEchoesAPaste(t *testing.T) {
	c := newWorld(t).connect(t)
	var text, echo strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "%06d %s\n", i, strings.Repeat("x", 56))
	}
	echo.WriteString(strings.ReplaceAll(text.String(), "\n", "\r\n"))
	for range 3 {
		a := c.call(true, func(id uint32) wire.Frame {
			return wire.Encode(wire.TypeRun, id, wire.Run{
				Argv: byteWords("bash", "-c", "echo up; head -n 3000 | md5sum"), Stdin: true, Terminal: &wire.Size{Rows: 40, Cols: 132},
			})
		})
		a.until("up\r\n")
		a.feed([]byte(text.String()))
		a.wait().want(fmt.Sprintf("up\r\n%s%x  -\r\n", echo.String(), md5.Sum([]byte(text.String()))), 0)
	}
	// A program that repeats what it reads shows it twice, each time whole.
	a := c.onTerminal("bash", "-c", "echo up; head -n 3000")
	a.until("up\r\n")
	a.feed([]byte(text.String()))
	a.wait()
	if n := len(a.output()); n != len("up\r\n")+2*echo.Len() {
		t.Errorf("%d bytes, want twice %d", n, echo.Len())
	}
}

// Where there is no echo, or no end of it, typing is not held up for long.
func TestTerminalTakesALongLine(t *testing.T) {
	c := newWorld(t).connect(t)
	began := time.Now()
	a := c.onTerminal("bash", "-c", "echo up; head -c 4000 | wc -c")
	a.until("up\r\n")
	a.feed([]byte(strings.Repeat("y", 100_000) + "\n"))
	a.until("\n4000\r\n")
	a.wait()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

// The line editor of the kernel takes back whole characters.
func TestTerminalKnowsUTF8(t *testing.T) {
	c := newWorld(t).connect(t)
	a := c.onTerminal("head", "-n1")
	a.typed("aé\x7f🙂\x7f😀b\n")
	a.wait()
	if !strings.HasSuffix(a.output(), "\na😀b\r\n") {
		t.Errorf("%q", a.output())
	}
}

// The last bytes of a program that ends at once are there, and the Exit behind them.
func TestTerminalLosesNothingAtTheEnd(t *testing.T) {
	c := newWorld(t).connect(t)
	want := strings.Repeat("0123456789\r\n", 1000)
	for range 30 {
		c.onTerminal("bash", "-c", "printf '0123456789\\n%.0s' {1..1000}").wait().want(want, 0)
	}
}

// A flood is bounded by the credit like any output.
func TestTerminalKeepsToTheWindow(t *testing.T) {
	c := newWorld(t).connect(t)
	a := c.call(true, func(id uint32) wire.Frame {
		return wire.Encode(wire.TypeRun, id, wire.Run{Argv: byteWords("yes"), Terminal: &wire.Size{}})
	})
	eventually(t, "the window is filled", func() bool { return len(a.output()) == wire.Window })
	c.sh("echo quick").want("quick\n", 0)
	a.kill()
	a.wait()
	if n := len(a.output()); n > wire.Window || !a.exit.Killed {
		t.Errorf("%d bytes, %+v", n, a.exit)
	}
}

// The end of input sends nothing: neither an end-of-file character nor a hang-up.
func TestTerminalSurvivesTheEndOfInput(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	a := c.onTerminal("bash", "-c", `echo up; if read -r -t 1 line; then echo "got $line"; else echo "status $?"; fi`)
	a.until("up")
	a.send(wire.TypeEnd, nil)
	a.wait().want("up\r\nstatus 142\r\n", 0)
}

// What goes on in the background with the terminal open does not hold the Exit, and may still write.
func TestTerminalLeftToAJob(t *testing.T) {
	w := newWorld(t)
	must(t, writable(w.path("log")))
	c := w.connect(t)
	began := time.Now()
	a := c.onTerminal("bash", "-c", `trap '' HUP; (sleep 0.5; head -c 300000 /dev/zero && echo wrote >`+w.path("log")+`; exec sleep 86811) & echo done`)
	a.wait().want("done\r\n", 0)
	if took := time.Since(began); took > restless+2*time.Second {
		t.Errorf("took %s", took)
	}
	eventually(t, "the job has written and goes on", func() bool { return alive("sleep", "86811") })
	c.sh("cat "+w.path("log")).want("wrote\n", 0)
}

func TestKillOnATerminalEndsTheWholeTree(t *testing.T) {
	for i, text := range []string{
		"echo up; sleep {n}; echo never",
		"trap '' HUP TERM INT; echo up; setsid sleep {n} & sleep {n}; echo never",
		"setsid -f bash -c \"trap '' TERM INT HUP; while :; do sleep {n}; done\"; echo up; exec sleep {n}",
		"( ( setsid bash -c 'setsid sleep {n} & exit' & ) & ); echo up; sleep {n}; echo never",
		"exec bash --norc --noprofile -ic 'echo up; nohup sleep {n} & sleep {n}; echo never'",
		"set -m; sleep {n} & kill -STOP %1; echo up; sleep {n}; echo never",
		"exec script -qc 'echo up; sleep {n}' /dev/null",
	} {
		n := fmt.Sprint(86850 + i)
		t.Run(n, func(t *testing.T) {
			c := newWorld(t).connect(t)
			a := c.onTerminal("bash", "-c", strings.ReplaceAll(text, "{n}", n))
			a.until("up")
			eventually(t, "it sleeps", func() bool { return alive("sleep", n) })
			began := time.Now()
			a.kill()
			a.wait()
			if took := time.Since(began); took > endBound {
				t.Errorf("took %s", took)
			}
			if left := runningWith(n); len(left) > 0 || !a.exit.Killed {
				t.Errorf("left %q, exit %+v", left, a.exit)
			}
			if regexp.MustCompile(`(?m)^never`).MatchString(a.output()) {
				t.Errorf("went on: %q", a.output())
			}
		})
	}
}

// A program hears that its terminal is gone first, and only what does not mind is told to end.
func TestTerminalIsHungUpBeforeItIsEnded(t *testing.T) {
	c := newWorld(t).connect(t)
	a := c.onTerminal("bash", "-c", `trap 'echo hung up; exit 3' HUP; trap 'echo told to end; exit 4' TERM; echo up; sleep 86831 & wait`)
	a.until("up")
	a.kill()
	a.wait().want("up\r\nhung up\r\n", 3)
	a = c.onTerminal("bash", "-c", `trap '' HUP; trap 'echo told to end; exit 4' TERM; echo up; sleep 86832 & wait`)
	a.until("up")
	a.kill()
	a.wait().want("up\r\ntold to end\r\n", 4)
}

// A host that goes away hangs the terminal up.
func TestTerminalOfALostHost(t *testing.T) {
	w := newWorld(t)
	must(t, writable(w.path("log")))
	c := w.connect(t)
	a := c.onTerminal("bash", "-c", `trap 'echo hung up >`+w.path("log")+`; exit' HUP; echo up; sleep 86841 & wait`)
	a.until("up")
	c.close()
	select {
	case <-c.serve:
	case <-time.After(patience):
		t.Fatal("the connection is not over")
	}
	if b, err := os.ReadFile(w.path("log")); err != nil || string(b) != "hung up\n" {
		t.Errorf("%q, %v", b, err)
	}
	if left := runningWith("86841"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestTerminalIsForWordsAlone(t *testing.T) {
	c := newWorld(t).connect(t)
	for _, r := range []wire.Run{
		{Shell: []byte("true"), Terminal: &wire.Size{}}, {Argv: byteWords("true"), Terminal: &wire.Size{}, Split: true},
	} {
		if a := c.run(r); a.exit.Reason != wire.ReasonInternal || !strings.Contains(a.exit.Text, "terminal") {
			t.Errorf("%+v: %+v", r, a.exit)
		}
	}
}

// What cannot start says so as without a terminal.
func TestTerminalOfNothing(t *testing.T) {
	c := newWorld(t).connect(t)
	if a := c.onTerminal("no-such-program").wait(); a.exit.Reason != wire.ReasonNotFound || a.output() != "" {
		t.Errorf("%+v, %q", a.exit, a.output())
	}
	if a := c.run(wire.Run{Argv: byteWords("true"), Dir: []byte("/nope"), Terminal: &wire.Size{}}); a.exit.Reason != wire.ReasonDirectory {
		t.Errorf("%+v", a.exit)
	}
}

// Somebody at a terminal is somebody.
func TestTerminalIsAJob(t *testing.T) {
	c := newWorld(t).connect(t)
	a := c.onTerminal("bash", "--norc", "--noprofile", "-i")
	a.typed("echo he''re\r")
	a.until("here")
	if got := c.query(wire.Query{Op: wire.OpJobs}); got.Jobs != 1 || got.Example != "bash" || got.Error != "" {
		t.Errorf("%+v", got)
	}
	a.typed("exit\r")
	a.wait()
	if got := c.query(wire.Query{Op: wire.OpJobs}); got.Jobs != 0 {
		t.Errorf("%+v", got)
	}
}
