//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

const (
	// helloLimit is how long a host may take to say hello.
	helloLimit = 10 * time.Second
	// maxRuns bounds the commands of one connection at a time, maxForwards what it has dialled. Neither bound is for a host that means well.
	maxRuns     = 512
	maxForwards = 1024
)

// conn is one host. Its commands die with it; shell state and background jobs do not.
type conn struct {
	agent *Agent
	user  string // account of commands that name none
	w     *wire.Writer
	way   *oneWay       // what w writes to
	gone  chan struct{} // closed when the host is
	// looks says that it is not among the agent's clients, used that it counts as a use of the sandbox. Both are talk's.
	looks, used bool

	runs     sync.WaitGroup
	mu       sync.Mutex
	live     map[uint32]served
	forwards int // how many of live are such
}

// served is what a connection has under a number until its Exit: a command, or a connection to a port.
type served interface {
	// serve sees it through to its Exit, and forgets it.
	serve()
	// kill asks for its end. It returns at once; may be called more than once and at any time.
	kill()
	// flows are its output and its input; that is nil when none was announced.
	flows() (*output, *input)
}

// Serve speaks with one host until its stream ends or breaks a rule, then kills what it was running and returns when that is dead.
// user is the account of commands that name none; empty means the agent's own. Both streams are closed on return. Safe for concurrent
// use. The error says why the connection ended; nil is a clean end.
func (a *Agent) Serve(r io.ReadCloser, w io.WriteCloser, user string) error {
	hangUp := sync.OnceFunc(func() { // closing ends a Read or Write under way
		_ = r.Close()
		_ = w.Close()
	})
	way := newOneWay(w, hangUp)
	c := &conn{agent: a, user: user, w: wire.NewWriter(way), way: way, gone: make(chan struct{}), live: map[uint32]served{}}
	defer hangUp()
	if !a.admit(c, hangUp) {
		return errClosed
	}
	defer a.dismiss(c)
	if err := a.use.arrive(); err != nil {
		_ = c.greet(err.Error()) // a host that has gone again need not know
		return err
	}
	defer func() {
		if !c.looks { // else it has left the count already
			a.use.leave(c.used)
		}
	}()
	if user != "" {
		_, _, _ = a.account(user) // begins its login, so that the first command need not wait; an unknown user is that command's to report
	}
	err := c.talk(r, hangUp)
	close(c.gone)
	c.mu.Lock()
	for _, s := range c.live {
		s.kill()
	}
	c.mu.Unlock()
	hangUp() // before waiting: a command may be stuck in a write to a host that does not read
	c.runs.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// talk exchanges hellos and handles frames until the stream ends.
func (c *conn) talk(r io.Reader, hangUp func()) (err error) {
	defer func() {
		if p := recover(); p != nil { // a fault met on one connection is no reason to end the others
			err = fmt.Errorf("the agent failed: %v", p)
		}
	}()
	in := wire.NewReader(r, wire.MaxHello)
	timer := time.AfterFunc(c.agent.helloLimit, hangUp)
	defer timer.Stop()
	if err := c.greet(""); err != nil {
		return err
	}
	f, err := in.Next()
	if err != nil {
		return err
	}
	host, err := wire.Decode[wire.Hello](f)
	switch {
	case f.Type != wire.TypeHello:
		return fmt.Errorf("a %q frame came instead of the host's hello", f.Type)
	case err != nil:
		return err
	case host.Protocol != wire.Protocol:
		return fmt.Errorf("the host speaks protocol %d, this agent %d", host.Protocol, wire.Protocol)
	}
	timer.Stop()
	if c.looks = host.Looks; c.looks {
		c.agent.use.leave(false)
	} else {
		c.used = true
		c.agent.use.touch()
	}
	in.SetLimit(wire.MaxFromHost)
	for {
		f, err := in.Next()
		if err != nil {
			return err
		}
		if err := c.handle(f); err != nil {
			return err
		}
	}
}

// greet says hello, with the reason why that is all, or "".
func (c *conn) greet(refusal string) error {
	return c.w.Write(wire.Encode(wire.TypeHello, 0, wire.Hello{
		Name: wire.AgentName, Protocol: wire.Protocol, Version: Version, Features: []string{wire.FeatureTerminal, wire.FeatureDial}, Boot: c.agent.boot, UID: os.Geteuid(),
		Error: refusal,
	}))
}

// touch notes a use of the sandbox, unless the host only looks.
func (c *conn) touch() {
	if !c.looks {
		c.agent.use.touch()
	}
}

// handle acts on one frame. An error ends the connection. Frames for an unknown id have crossed with the end of their command; unknown
// types come from a later protocol.
func (c *conn) handle(f wire.Frame) error {
	switch f.Type {
	case wire.TypeRun:
		req, err := wire.Decode[wire.Run](f)
		if err != nil {
			return err
		}
		return c.start(f.ID, newRun(c, f.ID, req))
	case wire.TypeDial:
		req, err := wire.Decode[wire.Dial](f)
		if err != nil {
			return err
		}
		return c.start(f.ID, newForward(c, f.ID, req))
	case wire.TypeQuery:
		q, err := wire.Decode[wire.Query](f)
		if err != nil {
			return err
		}
		return c.w.Write(wire.Encode(wire.TypeAnswer, f.ID, c.answer(q)))
	case wire.TypeInput, wire.TypeEnd, wire.TypeKill, wire.TypeCredit, wire.TypeResize:
	default:
		return nil
	}
	if f.Type == wire.TypeInput && len(f.Payload) > wire.MaxData {
		return fmt.Errorf("input frame of %d bytes", len(f.Payload))
	}
	c.mu.Lock()
	s := c.live[f.ID]
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	out, in := s.flows()
	switch f.Type {
	case wire.TypeKill:
		s.kill()
	case wire.TypeCredit:
		n, err := wire.ParseCredit(f)
		if err != nil {
			return err
		}
		if !out.grant(n) {
			return errors.New("the host granted more output than a window can be")
		}
	case wire.TypeInput:
		if in != nil { // else it was not announced, and nobody will read it
			return in.add(f.Payload)
		}
	case wire.TypeEnd:
		if in != nil {
			in.end()
		}
	case wire.TypeResize:
		size, err := wire.Decode[wire.Size](f)
		if err != nil {
			return err
		}
		if r, command := s.(*run); command && r.terminal != nil { // else it was not announced
			r.terminal.resize(size)
		}
	}
	return nil
}

// start serves s under a number, in a goroutine of its own.
func (c *conn) start(id uint32, s served) error {
	if id == 0 {
		return errors.New("a command with number 0")
	}
	_, forward := s.(*forward)
	c.mu.Lock()
	defer c.mu.Unlock()
	var full error
	switch {
	case c.live[id] != nil:
		return fmt.Errorf("command %d is running already", id)
	case forward && c.forwards >= maxForwards:
		full = fmt.Errorf("%d ports are connected to already", maxForwards)
	case !forward && len(c.live)-c.forwards >= maxRuns:
		full = fmt.Errorf("%d commands are running on this connection already", maxRuns)
	}
	if full != nil {
		return c.w.Write(wire.Encode(wire.TypeExit, id, failure(full)))
	}
	if forward {
		c.forwards++
	}
	c.touch()
	c.live[id] = s
	c.runs.Go(s.serve)
	return nil
}

// forget makes frames for id ignored from now on.
func (c *conn) forget(id uint32) {
	c.touch()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, forward := c.live[id].(*forward); forward {
		c.forwards--
	}
	delete(c.live, id)
}

func (c *conn) answer(q wire.Query) wire.Answer {
	switch q.Op {
	case wire.OpPing:
		return wire.Answer{}
	case wire.OpAccount:
		user := q.User
		if user == "" {
			user = c.user
		}
		_, id, err := c.agent.account(user)
		if err != nil {
			x := failure(err)
			return wire.Answer{Error: x.Text, Reason: x.Reason}
		}
		account := id.wire()
		account.Temp = c.agent.files.temp()
		if account.Confinement, err = confinement(); err != nil {
			return wire.Answer{Error: err.Error(), Reason: wire.ReasonInternal}
		}
		return wire.Answer{Account: account}
	case wire.OpJobs:
		return c.agent.look()
	case wire.OpUsage:
		return wire.Answer{Usage: systemMeter.read()}
	case wire.OpRetire:
		return c.agent.retire(time.Duration(q.LimitMS) * time.Millisecond)
	case wire.OpEnd:
		c.agent.journal.say("everything is asked to end, and given %s", time.Duration(q.LimitMS)*time.Millisecond)
		return answerJobs(c.agent.endAll(time.Duration(q.LimitMS)*time.Millisecond), nil)
	default:
		return wire.Answer{Error: fmt.Sprintf("unknown question %.40q", q.Op)}
	}
}
