package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func terminalCases() []Case {
	const (
		device = "contract.Request.Terminal: a pseudo-terminal instead of pipes"
		tree   = "contract.Environment.Execute: the whole process tree is dead before it returns"
	)
	return []Case{
		{"terminal/size-at-first-look", "contract.Terminal.Size: it is what the command finds at its very first look", onAny(firstSize)},
		{"terminal/resize", "contract.Terminal.Resize: later sizes reach the command, in order", onAny(laterSizes)},
		{"terminal/controls-the-session", device + ", the controlling one of the command's own session", onAny(controllingTerminal)},
		{"terminal/kind", "contract.Request.Terminal: TERM of Env, else xterm-256color", onAny(terminalKind)},
		{"terminal/status", "contract.Result.ExitCode: the command's own status", onAny(terminalStatus)},
		{"terminal/keys", "contract.Request.Terminal: Stdin is what is typed", onAny(terminalKeys)},
		{"terminal/raw-bytes", "contract.Request.Terminal: in raw mode bytes pass as they are, both ways", onAny(rawBytes)},
		{"terminal/end-of-input", "contract.Request.Terminal: the end of Stdin types nothing", onAny(endOfTyping)},
		{"terminal/background-does-not-delay", "contract.Environment.Execute: a background child that holds the terminal open does not hold the status back", onAny(terminalLeft)},
		{"terminal/whole-tree", tree, onAny(terminalTree)},
		{"terminal/not-for-commands", "contract.Request.Terminal: it is for Argv", onAny(noTerminal)},
	}
}

// screen keeps what a terminal shows, and calls then once, when that contains "up".
type screen struct {
	bytes.Buffer
	then func()
}

func (s *screen) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if s.then != nil && strings.Contains(s.String(), "up") {
		s.then()
		s.then = nil
	}
	return n, err
}

// size is none that anything has by itself.
var size = contract.TerminalSize{Rows: 41, Cols: 133}

// look runs a script on a terminal and wants exactly this on it, and a status.
func (b *box) look(ctx context.Context, req contract.Request, script, wanted string, code int, then func()) error {
	shown := &screen{then: then}
	req.Argv, req.Stdout = []string{"bash", "-c", script}, shown
	if req.Terminal == nil {
		req.Terminal = &contract.Terminal{Size: size}
	}
	r, err := b.Execute(ctx, req)
	if err != nil {
		return wrap(fmt.Sprintf("%q on a terminal", clip(script)), err)
	}
	if r.ExitCode != code || shown.String() != wanted {
		return fmt.Errorf("%q on a terminal: status %d and %q, want %d and %q", clip(script), r.ExitCode, clip(shown.String()), code, clip(wanted))
	}
	return nil
}

func firstSize(ctx context.Context, b *box) error {
	const times = 10
	for range times {
		if err := b.look(ctx, contract.Request{}, "stty size", "41 133\r\n", 0, nil); err != nil {
			return err
		}
	}
	return nil
}

func laterSizes(ctx context.Context, b *box) error {
	sizes := make(chan contract.TerminalSize, 1)
	req := contract.Request{Timeout: prompt, Terminal: &contract.Terminal{Size: size, Resize: sizes}}
	script := `n=0; trap 'stty size; n=1' WINCH; echo up; until ((n)); do sleep 0.05; done`
	return b.look(ctx, req, script, "up\r\n7 77\r\n", 0, func() { sizes <- contract.TerminalSize{Rows: 7, Cols: 77} })
}

func controllingTerminal(ctx context.Context, b *box) error {
	return b.look(ctx, contract.Request{}, `[[ -t 0 && -t 1 && -t 2 ]] && echo streams
		read -r _ _ _ _ group session terminal front _ </proc/$$/stat
		[[ $session == $$ && $terminal != 0 && $front == "$group" ]] && echo session
		echo through >/dev/tty
		[[ -O $(tty) ]] && echo own`, "streams\r\nsession\r\nthrough\r\nown\r\n", 0, nil)
}

func terminalKind(ctx context.Context, b *box) error {
	return errors.Join(
		b.look(ctx, contract.Request{}, "echo $TERM", "xterm-256color\r\n", 0, nil),
		b.look(ctx, contract.Request{Env: map[string]string{"TERM": "vt100"}}, "echo $TERM", "vt100\r\n", 0, nil),
	)
}

func terminalStatus(ctx context.Context, b *box) error {
	return errors.Join(
		b.look(ctx, contract.Request{}, "echo out; echo err >&2; exit 7", "out\r\nerr\r\n", 7, nil),
		b.look(ctx, contract.Request{}, "kill -KILL $$", "", 137, nil),
	)
}

// terminalKeys types a line, and what interrupts.
func terminalKeys(ctx context.Context, b *box) error {
	return errors.Join(
		b.typing(ctx, "a é\r", `stty -echo; echo up; read -r line; echo "[$line]"`, "up\r\n[a é]\r\n", 0),
		b.typing(ctx, "\x03", `trap 'echo interrupted; exit 3' INT; echo up; sleep 300`, "up\r\n^Cinterrupted\r\n", 3),
	)
}

// typing is look with keys that are pressed when the script is up.
func (b *box) typing(ctx context.Context, keys, script, wanted string, code int) error {
	in, press := io.Pipe()
	defer func() { _ = in.Close() }() // it has no error
	return b.look(ctx, contract.Request{Stdin: in, Timeout: prompt}, script, wanted, code, func() {
		go func() { _, _ = press.Write([]byte(keys)) }() // what does not arrive is missing on the screen; closing in ends it
	})
}

// rawBytes sends every kind of byte, more than any buffer of a terminal holds.
func rawBytes(ctx context.Context, b *box) error {
	const count = 300_000
	data := make([]byte, count)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(data) // it has no error
	script := fmt.Sprintf("stty raw -echo; echo up; head -c %d | sha256sum", count)
	return b.typing(ctx, string(data), script, fmt.Sprintf("up\n%x  -\n", sha256.Sum256(data)), 0)
}

func endOfTyping(ctx context.Context, b *box) error {
	script := `if read -r -t 1 line; then echo "got $line"; else echo status $?; fi`
	return b.look(ctx, contract.Request{Stdin: strings.NewReader("")}, script, "status 142\r\n", 0, nil)
}

func terminalLeft(ctx context.Context, b *box) error {
	// No longer than it may take: if it holds the status back, that is a time-out.
	return b.look(ctx, contract.Request{Timeout: prompt}, "trap '' HUP; sleep 60 & echo done", "done\r\n", 0, nil)
}

func terminalTree(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		file := dir + "/pids"
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		script := `trap '' HUP TERM INT; echo $$ >"$1"; setsid sleep 300 & echo $! >>"$1"; sleep 301 & echo $! >>"$1"; echo up; wait; sleep 302; echo never`
		shown := &screen{then: func() { cancel(contract.ErrInterrupted) }}
		r, err := b.Execute(ctx, contract.Request{
			Argv: []string{"bash", "-c", script, "bash", file}, Stdout: shown, Terminal: &contract.Terminal{Size: size}, Timeout: prompt,
		})
		if err != nil || r.ExitCode != contract.ExitInterrupted || !r.Interrupted {
			return fmt.Errorf("status %d, interrupted %v, %s; want %d", r.ExitCode, r.Interrupted, said(err), contract.ExitInterrupted)
		}
		if strings.Contains(shown.String(), "never") {
			return fmt.Errorf("it went on: %q", clip(shown.String()))
		}
		ctx = context.WithoutCancel(ctx)
		return b.steps(ctx, step{sh: "wc -l <" + quote(file), out: "3\n"}, step{sh: living(file)})
	})
}

func noTerminal(ctx context.Context, b *box) error {
	_, err := b.Execute(ctx, contract.Request{Command: "true", Terminal: &contract.Terminal{}})
	return backendError("a command with lasting state on a terminal", err)
}
