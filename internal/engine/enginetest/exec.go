//go:build linux

package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// stream is the connection of one exec.
type stream struct {
	host    net.Conn // our end of the agent's streams
	control *os.File // the attach that an agent waits for
	toAgent *io.PipeWriter
	done    func(*stream)
	once    sync.Once
	closed  chan struct{} // the copying goroutine ended

	mu   sync.Mutex
	left int64 // bytes it still gives; negative: all
}

var _ engine.Conn = (*stream)(nil)

// Exec implements the provider's engine for the one program it runs by itself: an attach to the agent. It connects to the resident as that
// program does.
func (e *Engine) Exec(ctx context.Context, id, _ string, argv []string) (engine.Conn, error) {
	if err := e.enter(ctx, OpExec); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.find(id)
	switch {
	case !ok:
		return nil, notFound("starting %s in container %s: there is none", argv[0], short(id))
	case b.paused || !b.running():
		return nil, failure(engine.ErrConflict, "starting %s in container %s: it is %s", argv[0], short(id), b.status())
	}
	if b.bare {
		return e.play(argv), nil
	}
	if attach := []string{agentDir + "/agent", "attach"}; !slices.Equal(argv, attach) && !slices.Equal(argv, append(attach, "--first")) {
		return nil, failure(nil, "starting %q in container %s: this engine only attaches to agents", argv, short(id))
	}
	program, err := e.program(b)
	if err != nil {
		return nil, err
	}
	s, err := attach(e.socket(b))
	if err != nil {
		log, _ := os.ReadFile(e.path("c", short(b.id), "log")) // it may say why; the error does in any case
		return nil, failure(err, "starting %s in container %s: %v; the agent says %q", argv[0], short(id), err, log)
	}
	s.left = e.faults.cut
	s.done = func(s *stream) {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(b.streams, s)
	}
	b.streams[s] = true
	var in *io.PipeReader
	in, s.toAgent = io.Pipe()
	go func() {
		defer close(s.closed)
		_ = in.CloseWithError(translate(in, s.host, program)) // the writer hears of it
	}()
	return s, nil
}

// attach hands one end of a new connection to the resident on a socket. Like the program it stands for it tries again when the resident lets
// go before it took the streams: a signal can interrupt it there.
func attach(socket string) (s *stream, err error) {
	const tries = 10
	for range tries {
		if s, err = attachOnce(socket); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func attachOnce(socket string) (*stream, error) {
	control, err := dial(socket)
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		_ = control.Close()
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	mine, theirs := os.NewFile(uintptr(pair[0]), "host"), os.NewFile(uintptr(pair[1]), "agent")
	defer mine.Close() // FileConn makes a copy
	defer theirs.Close()
	host, err := net.FileConn(mine)
	if err == nil {
		err = hand(control, theirs)
	}
	if err != nil {
		if host != nil {
			_ = host.Close()
		}
		_ = control.Close()
		return nil, err
	}
	return &stream{host: host, control: control, closed: make(chan struct{})}, nil
}

func dial(socket string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	control := os.NewFile(uintptr(fd), "attach")
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err != nil {
		_ = control.Close()
		return nil, fmt.Errorf("connect to %s: %w", socket, err)
	}
	return control, nil
}

// hand passes f as both streams and waits until the resident has taken them.
func hand(control, f *os.File) error {
	greeting, err := json.Marshal(struct {
		User string `json:"user"`
	}{User()})
	if err != nil {
		return err
	}
	fd := int(f.Fd())
	if err := unix.Sendmsg(int(control.Fd()), greeting, unix.UnixRights(fd, fd), nil, 0); err != nil {
		return fmt.Errorf("hand over the streams: %w", err)
	}
	answer := make([]byte, 1)
	if _, err := io.ReadFull(control, answer); err != nil || answer[0] != '+' {
		return fmt.Errorf("the agent answered %q: %w", answer, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return nil
}

// translate carries frames to the agent until either side ends. The agent's program, which commands name by its path in the container, is
// named by its path on this machine.
func translate(from io.Reader, to io.Writer, program string) error {
	in, out := wire.NewReader(from, wire.MaxFromHost), wire.NewWriter(to)
	for {
		f, err := in.Next()
		if err != nil {
			return err
		}
		if f.Type == wire.TypeRun {
			run, err := wire.Decode[wire.Run](f)
			if err != nil {
				return err
			}
			if len(run.Argv) > 0 && string(run.Argv[0]) == agentDir+"/agent" {
				run.Argv[0] = []byte(program)
				f = wire.Encode(wire.TypeRun, f.ID, run)
			}
		}
		if err := out.Write(f); err != nil {
			return err
		}
	}
}

// Read gives what the agent writes, up to the byte at which the stream is to break.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	left := s.left
	s.mu.Unlock()
	if left == 0 {
		s.hangUp()
		return 0, io.ErrUnexpectedEOF
	}
	if left > 0 {
		p = p[:min(int64(len(p)), left)]
	}
	n, err := s.host.Read(p)
	if left > 0 {
		s.mu.Lock()
		s.left -= int64(n)
		s.mu.Unlock()
	}
	return n, err
}

// Write feeds the agent.
func (s *stream) Write(p []byte) (int, error) { return s.toAgent.Write(p) }

// Stderr is empty: an attach says what is wrong in its hello.
func (*stream) Stderr() string { return "" }

// hangUp breaks the connection.
func (s *stream) hangUp() {
	_ = s.host.Close() // whatever comes of it, it is over
	_ = s.toAgent.Close()
}

// Close implements [engine.Conn].
func (s *stream) Close() error {
	s.once.Do(func() {
		s.hangUp()
		_ = s.control.Close()
		s.done(s)
	})
	<-s.closed
	return nil
}

// HangUp breaks all connections to a container's agent, as the end of the processes that hold them does.
func (e *Engine) HangUp(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.find(id); ok {
		for s := range b.streams {
			s.hangUp()
		}
	}
}
