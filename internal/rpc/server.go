package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

const (
	// defaultLimit is how many requests of one connection may be in flight.
	defaultLimit = 256
	// settleTime bounds how long Serve waits at its end for commands to be dead, and then for sandboxes to be let go.
	settleTime = 10 * time.Second
	// probeTime bounds a probe. It is run while a status display waits, for 2 s as a rule, and its answer must come before that.
	probeTime = 1500 * time.Millisecond
)

// Server puts a provider behind the protocol. Set the fields before the first Serve; it may serve several connections at once.
type Server struct {
	// Provider does the work.
	Provider contract.Provider
	// Version is dockerbox's own version, named in the hello.
	Version string
	// Limit is how many requests of one connection may be in flight; 0 means 256. One more is answered with an error.
	Limit int

	mu    sync.Mutex
	conns map[*conn]struct{} // guarded by mu
}

// Serve speaks with one client until in ends, out breaks or ctx ends. Then it kills the commands still running, lets go of the
// sandboxes as Cleanup does without remove, and returns: nil when in ended and all of that worked. in is closed at the end if it can be,
// which ends a read that still waits.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	// The calls outlive ctx by as long as it takes to end them, each with a cause of its own.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	c := &conn{
		server: s, in: newLineReader(in, MaxLine), out: newLineWriter(out), limit: s.Limit,
		calls: map[int64]*call{}, envs: map[string]contract.Environment{},
	}
	if c.limit <= 0 {
		c.limit = defaultLimit
	}
	s.track(c, true)
	defer s.track(c, false)

	if err := c.out.notify(methodHello, s.hello()); err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	read := make(chan error, 1)
	go func() { read <- c.readAll(work) }()
	var err error
	select {
	case err = <-read:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.out.broken:
		err = errors.New("write to the client: stream is broken")
	}
	cancel(contract.ErrInterrupted)
	if closer, ok := in.(io.Closer); ok {
		err = errors.Join(err, closer.Close())
	}
	return errors.Join(err, c.settle(context.WithoutCancel(ctx)))
}

func (s *Server) hello() helloParams {
	return helloParams{
		Name: s.Provider.Name(), Protocol: Protocol, Version: s.Version,
		Features: features(s.Provider), DefaultCwd: s.Provider.DefaultCwd(),
	}
}

// Warn sends a sentence for the log to every connected client and reports whether there was one.
func (s *Server) Warn(text string) bool {
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	sent := false
	for _, c := range conns {
		sent = c.out.notify(methodWarning, warningParams{text}) == nil || sent
	}
	return sent
}

func (s *Server) track(c *conn, live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = map[*conn]struct{}{}
	}
	if live {
		s.conns[c] = struct{}{}
	} else {
		delete(s.conns, c)
	}
}

// settle waits for the calls, which were cancelled, then lets go of every sandbox.
func (c *conn) settle(ctx context.Context) error {
	c.mu.Lock()
	c.draining = true // from here on no goroutine is added
	c.mu.Unlock()
	done := make(chan struct{})
	go func() { c.running.Wait(); close(done) }()
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	var errs []error
	select {
	case <-done:
	case <-timer.C:
		errs = append(errs, fmt.Errorf("commands did not end within %s", settleTime))
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	c.mu.Lock()
	envs := c.envs
	c.envs = nil
	c.mu.Unlock()
	for _, env := range envs {
		if err := env.Cleanup(ctx, false); err != nil {
			errs = append(errs, fmt.Errorf("let go of sandbox %s: %w", env.Info().Name, err))
		}
	}
	return errors.Join(errs...)
}
