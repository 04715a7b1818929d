//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// atTerminal gives a command's streams a terminal, of 3 lines and 7 columns, and what somebody at it would use.
func atTerminal(t *testing.T) (std streams, device, screen *os.File) {
	t.Helper()
	screen, device, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = device.Close(), screen.Close() })
	if err := pty.Setsize(device, &pty.Winsize{Rows: 3, Cols: 7}); err != nil {
		t.Fatal(err)
	}
	return streams{device, device, device}, device, screen
}

func stty(t *testing.T, device *os.File) string {
	t.Helper()
	c := exec.Command("stty", "-a")
	c.Stdin = device
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("stty: %v: %s", err, out)
	}
	return string(out)
}

func TestRawModeIsUndone(t *testing.T) {
	std, device, _ := atTerminal(t)
	before := stty(t, device)
	for name, undo := range map[string]func(*rawMode){
		"given back": (*rawMode).giveBack,
		"given back twice": func(r *rawMode) {
			r.giveBack()
			r.giveBack()
		},
		"on the way out":               func(*rawMode) { restoreTerminal() },
		"on the way out and afterward": func(r *rawMode) { restoreTerminal(); r.giveBack() },
		"by a panic": func(r *rawMode) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			defer r.giveBack()
			panic("somewhere")
		},
	} {
		raw, err := makeRaw(std)
		if err != nil {
			t.Fatal(err)
		}
		if now := stty(t, device); !strings.Contains(now, "-isig") || !strings.Contains(now, "-icanon") || !strings.Contains(now, "-echo ") || !strings.Contains(now, "-ixon") {
			t.Errorf("%s: keys are kept: %s", name, now)
		}
		undo(raw)
		if after := stty(t, device); after != before {
			t.Errorf("%s: before %s\nafter %s", name, before, after)
		}
		raw.giveBack()
	}
	restoreTerminal() // nothing is to be undone any more
}

func TestSizeOfWhatThereIs(t *testing.T) {
	std, device, _ := atTerminal(t)
	for name, s := range map[string]streams{
		"both": std, "output alone": {strings.NewReader(""), device, io.Discard}, "input alone": {device, io.Discard, io.Discard},
	} {
		if size, ok := sizeOf(s)(); !ok || size != (contract.TerminalSize{Rows: 3, Cols: 7}) {
			t.Errorf("%s: %+v, %v", name, size, ok)
		}
	}
	if size, ok := sizeOf(streams{strings.NewReader(""), io.Discard, io.Discard})(); ok || size != (contract.TerminalSize{}) {
		t.Errorf("none: %+v, %v", size, ok)
	}
}

// Whoever comes late finds the last size alone.
func TestSizesAreWatched(t *testing.T) {
	std, device, _ := atTerminal(t)
	sizes, stop := watchSize(sizeOf(std))
	defer stop()
	const last = 9
	for rows := uint16(4); rows <= last; rows++ {
		if err := pty.Setsize(device, &pty.Winsize{Rows: rows, Cols: 7}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil { // it is not this process's own terminal
			t.Fatal(err)
		}
	}
	const patience = 10 * time.Second
	for limit := time.After(patience); ; {
		select {
		case s := <-sizes:
			if s == (contract.TerminalSize{Rows: last, Cols: 7}) {
				return
			}
		case <-limit:
			t.Fatal("the last size does not come")
		}
	}
}

func TestKeysEndWithTheirTerminal(t *testing.T) {
	var cause error
	k := keys{strings.NewReader("x"), func(err error) { cause = err }}
	if b, err := io.ReadAll(k); err != nil || string(b) != "x" || !errors.Is(cause, contract.ErrInterrupted) {
		t.Errorf("%q, %v, %v", b, err, cause)
	}
}
