//go:build integration

package integration

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// outer is dockerbox at a terminal of 40 lines and 132 columns, as somebody has it in front of himself.
type outer struct {
	t       *testing.T
	command *exec.Cmd
	screen  *os.File // the side a person sees and types at
	device  *os.File // the side dockerbox has
	before  string   // stty -a
	more    chan struct{}
	ended   chan struct{}

	mu    sync.Mutex
	shown bytes.Buffer
}

// at starts dockerbox there, with variables besides the caller's. What is not over when the test ends is killed.
func at(t *testing.T, variables []string, args ...string) *outer {
	t.Helper()
	return atWith(t, func(*exec.Cmd) {}, variables, args...)
}

// atWith is at with a last word about the command.
func atWith(t *testing.T, edit func(*exec.Cmd), variables []string, args ...string) *outer {
	t.Helper()
	blocking, device, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	screen := unblocked(t, blocking)
	if err := pty.Setsize(device, &pty.Winsize{Rows: 40, Cols: 132}); err != nil {
		t.Fatal(err)
	}
	o := &outer{t: t, screen: screen, device: device, more: make(chan struct{}, 1), ended: make(chan struct{})}
	o.before = o.stty()
	o.command = exec.Command(dockerboxBinary(t), args...)
	o.command.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TERM=") }), append([]string{"TERM=xterm"}, variables...)...)
	o.command.Stdin, o.command.Stdout, o.command.Stderr = device, device, device
	o.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	edit(o.command)
	if err := o.command.Start(); err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		buf := make([]byte, 64<<10)
		for {
			n, err := screen.Read(buf)
			o.mu.Lock()
			o.shown.Write(buf[:n])
			o.mu.Unlock()
			select {
			case o.more <- struct{}{}:
			default:
			}
			if err != nil {
				return // nobody has the device any more
			}
		}
	}()
	go func() {
		defer close(o.ended)
		_ = o.command.Wait() // the status is in ProcessState
	}()
	t.Cleanup(func() {
		_ = o.command.Process.Kill() // it has ended, mostly
		<-o.ended
		_ = device.Close()
		<-seen
		_ = screen.Close()
	})
	return o
}

// unblocked is f, which is closed, as a file whose Close ends a Read under way.
func unblocked(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// close takes the terminal away, as closing its window does.
func (o *outer) close() {
	o.t.Helper()
	if err := o.screen.Close(); err != nil {
		o.t.Fatal(err)
	}
}

// stty is every setting of the terminal.
func (o *outer) stty() string {
	o.t.Helper()
	c := exec.Command("stty", "-a")
	c.Stdin = o.device
	out, err := c.CombinedOutput()
	if err != nil {
		o.t.Fatalf("stty -a: %v: %s", err, out)
	}
	return string(out)
}

func (o *outer) seen() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shown.String()
}

// await waits until the terminal has shown text.
func (o *outer) await(text string) {
	o.t.Helper()
	o.until("no "+text, func(seen string) bool { return strings.Contains(seen, text) })
}

func (o *outer) until(complaint string, ok func(seen string) bool) {
	o.t.Helper()
	limit := time.After(patience)
	for !ok(o.seen()) {
		select {
		case <-o.more:
		case <-limit:
			o.t.Fatalf("%s in %q", complaint, tail([]byte(o.seen())))
		}
	}
}

func (o *outer) typed(keys string) {
	o.t.Helper()
	if _, err := io.WriteString(o.screen, keys); err != nil {
		o.t.Fatal(err)
	}
}

// prompt makes the prompt of a shell one that nothing else shows, without the colours and titles of its usual one.
func (o *outer) prompt() {
	o.t.Helper()
	o.await("$ ")
	o.typed("unset PROMPT_COMMAND; PS1='pro''mpt:'; bind 'set enable-bracketed-paste off'\r")
	o.await("prompt:")
}

func (o *outer) signal(s os.Signal) {
	o.t.Helper()
	if err := o.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		o.t.Fatal(err)
	}
}

// end waits for dockerbox to end with a status, minus the signal that ended it, and wants the terminal to be as it was.
func (o *outer) end(status int) string {
	o.t.Helper()
	select {
	case <-o.ended:
	case <-time.After(patience):
		o.t.Fatalf("it does not end; so far %q", tail([]byte(o.seen())))
	}
	got := o.command.ProcessState.ExitCode()
	if ws, ok := o.command.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		got = -int(ws.Signal())
	}
	if got != status {
		o.t.Errorf("status %d, want %d; shown %q", got, status, tail([]byte(o.seen())))
	}
	if after := o.stty(); after != o.before {
		o.t.Errorf("the terminal is another:\n before %s\n after  %s", o.before, after)
	}
	// All it wrote is in the terminal; a mark behind it says when it is read.
	const mark = "\x1e\x1e"
	if _, err := io.WriteString(o.device, mark); err != nil {
		o.t.Fatal(err)
	}
	o.await(mark)
	return strings.TrimSuffix(o.seen(), mark)
}
