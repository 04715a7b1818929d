package environment

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipeStream is the host's end of an in-memory stream.
type pipeStream struct{ net.Conn }

func (pipeStream) Stderr() string { return "" }

// far is the agent's end, played by a test.
type far struct {
	net.Conn
	in  *wire.Reader
	out *wire.Writer
}

// box is a Container whose agents are played by play, one goroutine per Attach.
type testBox struct {
	play func(attach int, a *far)

	mu       sync.Mutex
	state    State
	attaches int
	playing  sync.WaitGroup
	ends     []net.Conn
}

func (b *testBox) Attach(context.Context) (Stream, error) {
	host, agent := net.Pipe()
	b.mu.Lock()
	b.attaches++
	n := b.attaches
	b.ends = append(b.ends, agent)
	b.mu.Unlock()
	b.playing.Go(func() {
		defer func() { _ = agent.Close() }()
		b.play(n, &far{agent, wire.NewReader(agent, wire.MaxFromHost), wire.NewWriter(agent)})
	})
	return pipeStream{host}, nil
}

func (b *testBox) State(context.Context) (State, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, nil
}

// hello does the agent's part of the handshake and answers the question for the account.
func (a *far) hello(boot string, features ...string) bool {
	if a.out.Write(wire.Encode(wire.TypeHello, 0, wire.Hello{Name: wire.AgentName, Protocol: wire.Protocol, Boot: boot, Features: features})) != nil {
		return false
	}
	if f, err := a.in.Next(); err != nil || f.Type != wire.TypeHello {
		return false
	}
	f, err := a.in.Next()
	if err != nil || f.Type != wire.TypeQuery {
		return false
	}
	return a.out.Write(wire.Encode(wire.TypeAnswer, f.ID, wire.Answer{Account: &wire.Account{Name: "pn", UID: 1000, GID: 1000, Home: "/home/pn"}})) == nil
}

// run waits for the next command, answering pings on the way.
func (a *far) run() (id uint32, run wire.Run, ok bool) {
	for {
		f, err := a.in.Next()
		if err != nil {
			return 0, run, false
		}
		switch f.Type {
		case wire.TypeQuery:
			if a.out.Write(wire.Encode(wire.TypeAnswer, f.ID, wire.Answer{})) != nil {
				return 0, run, false
			}
		case wire.TypeRun:
			run, err = wire.Decode[wire.Run](f)
			return f.ID, run, err == nil
		}
	}
}

// next waits for a frame of type t.
func (a *far) next(t wire.Type) (wire.Frame, bool) {
	for {
		f, err := a.in.Next()
		if err != nil || f.Type == t {
			return f, err == nil
		}
	}
}

func (a *far) send(frames ...wire.Frame) { _ = a.out.Write(frames...) } // the host may have hung up; the test sees that there

func (a *far) output(id uint32, data string) {
	a.send(wire.Frame{Type: wire.TypeOutput, ID: id, Payload: []byte(data)})
}

func (a *far) exit(id uint32, x wire.Exit) { a.send(wire.Encode(wire.TypeExit, id, x)) }

// drain reads until the host hangs up.
func (a *far) drain() {
	for {
		if _, err := a.in.Next(); err != nil {
			return
		}
	}
}

// connect opens an environment on a box whose agents are played by play, and ends both with the test.
func connect(t *testing.T, b *testBox) *Environment {
	t.Helper()
	e, err := Connect(t.Context(), Options{
		Container: b, Info: contract.Info{Name: "t"}, Account: "pn", Home: "/home/pn",
		Prefix: func(string) Prefix { return Prefix{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Cleanup(context.Background(), false); err != nil {
			t.Error(err)
		}
		b.playing.Wait()
	})
	return e
}

// backend fails the test unless err is a BackendError with a reason and a hint.
func backend(t *testing.T, err error) contract.BackendError {
	t.Helper()
	var b *contract.BackendError
	if !errors.As(err, &b) {
		t.Fatalf("got %v, want a BackendError", err)
	}
	if b.Reason == "" || b.Hint == "" {
		t.Fatalf("reason %q, hint %q", b.Reason, b.Hint)
	}
	return *b
}
