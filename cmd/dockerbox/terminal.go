package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"sync"
	"sync/atomic"

	"github.com/moby/term"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// onTerminal runs one request in a living sandbox on a terminal of its own, which is joined to the caller's. interactive joins what is typed
// too: every key then reaches the program, and the terminal is as it was when this returns, however it does.
func onTerminal(ctx context.Context, std streams, open opener, name string, req contract.Request, interactive bool) (contract.Result, error) {
	if kind, ok := os.LookupEnv("TERM"); ok && kind != "" {
		named := map[string]string{"TERM": kind}
		maps.Copy(named, req.Env)
		req.Env = named
	}
	var own bytes.Buffer // dockerbox's own words would not find the beginning of a line before the terminal is given back
	out := &lastByte{w: std.out}
	req.Stdout, req.Stderr = out, &own
	res, err := attached(ctx, open, name, &req, func(ctx context.Context, env contract.Environment) (contract.Result, error) {
		ctx, hangUp := context.WithCancelCause(ctx)
		defer hangUp(nil)
		sizes, still := watchSize(sizeOf(std))
		defer still()
		size, _ := sizeOf(std)() // behind the beginning of the watch: one that changes now is seen, or heard of
		req.Terminal = &contract.Terminal{Size: size, Resize: sizes}
		if interactive {
			raw, err := makeRaw(std)
			if err != nil {
				return contract.Result{}, err
			}
			defer raw.giveBack()
			req.Stdin = keys{std.in, hangUp}
		}
		return env.Execute(ctx, req)
	})
	if (err != nil || res.Interrupted || res.TimedOut) && len(out.last) > 0 && out.last[0] != '\n' {
		_, _ = io.WriteString(std.out, "\n") // what follows is a line of its own; a terminal that is gone shows neither
	}
	if _, failed := std.err.Write(own.Bytes()); failed != nil && err == nil {
		err = unwritten(failed)
	}
	return res, err
}

// sizeOf returns a function for the size of the terminal that std shows things on, 0 by 0 when there is none.
func sizeOf(std streams) func() (size contract.TerminalSize, ok bool) {
	for _, stream := range []any{std.out, std.in} {
		if fd, terminal := term.GetFdInfo(stream); terminal {
			return func() (contract.TerminalSize, bool) {
				s, err := term.GetWinsize(fd)
				if err != nil {
					return contract.TerminalSize{}, false
				}
				return contract.TerminalSize{Rows: s.Height, Cols: s.Width}, true
			}
		}
	}
	return func() (size contract.TerminalSize, ok bool) { return size, false }
}

// newest keeps the last of what it was given until somebody takes it. One goroutine may give.
type newest chan contract.TerminalSize

func (n newest) give(s contract.TerminalSize) {
	select {
	case <-n:
	default:
	}
	n <- s
}

// keys reads what is typed. Its end is the end of the terminal: nobody is there any more to end the program.
type keys struct {
	r      io.Reader
	hangUp func(cause error)
}

func (k keys) Read(p []byte) (int, error) {
	n, err := k.r.Read(p)
	if err != nil {
		k.hangUp(contract.ErrInterrupted)
	}
	return n, err
}

// rawMode is a terminal that passes every key on as it is.
type rawMode struct {
	undo  []func() error
	once  sync.Once
	leave func() // ends the watch for signals, once
}

// inRawMode is the process's terminal while it is, nil else. Every way out of the process must put it right, also those that do not come back
// to whoever changed it.
var inRawMode atomic.Pointer[rawMode]

// restoreTerminal is for those ways out. Safe at any time.
func restoreTerminal() {
	if raw := inRawMode.Load(); raw != nil {
		raw.restore()
	}
}

// makeRaw changes the terminal behind std until giveBack.
func makeRaw(std streams) (*rawMode, error) {
	raw := &rawMode{}
	prepareConsole()
	for _, side := range []struct {
		stream any
		set    func(fd uintptr) (*term.State, error)
	}{{std.in, term.SetRawTerminal}, {std.out, term.SetRawTerminalOutput}} {
		fd, terminal := term.GetFdInfo(side.stream)
		if !terminal {
			continue
		}
		state, err := side.set(fd)
		if err != nil {
			raw.restore()
			return nil, &contract.BackendError{
				Reason: "the terminal cannot be made to pass every key on: " + cause(err), Hint: "leave out -t, or try another terminal", Err: err,
			}
		}
		if state != nil {
			raw.undo = append(raw.undo, func() error { return term.RestoreTerminal(fd, state) })
		}
	}
	inRawMode.Store(raw)
	raw.leave = sync.OnceFunc(handleQuit(raw.restore))
	return raw, nil
}

// restore puts the terminal right, once.
func (r *rawMode) restore() {
	r.once.Do(func() {
		for _, f := range r.undo {
			_ = f() // it worked the other way round; a terminal that is gone need not be put right
		}
	})
}

// giveBack is restore for whoever called makeRaw. Idempotent.
func (r *rawMode) giveBack() {
	r.restore()
	inRawMode.Store(nil)
	r.leave()
}

// checkKeys wants standard input to be a terminal, before anything is started.
func checkKeys(std streams, hint string) error {
	if _, terminal := term.GetFdInfo(std.in); !terminal {
		return &usageError{problem: "standard input is not a terminal", hint: hint}
	}
	return nil
}
