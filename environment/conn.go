package environment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// Stream is the byte stream to an agent. Close makes a Read or Write under way return.
type Stream interface {
	io.ReadWriteCloser
	// Stderr is what the far end complained about, for the message when the stream breaks.
	Stderr() string
}

// Bounds on an agent that does not do its part.
const (
	// helloLimit is how long an agent may take to say hello. It covers a login profile (5 s) on a busy machine.
	helloLimit = 20 * time.Second
	// killLimit is how long a tree may take to be dead after a Kill: the agent's own grace is 1 s.
	killLimit = 15 * time.Second
	// pingEvery and pingLimit find an agent that fell silent while commands run; a paused container is found after two pings.
	pingEvery = 2 * time.Second
	pingLimit = 15 * time.Second
)

// conn is one connection to an agent. Its reader goroutine ends when the stream does; everything that waits then returns err.
type conn struct {
	stream Stream
	out    *wire.Writer
	hello  wire.Hello
	ended  chan struct{} // closed by the reader, after err and all calls are settled

	mu      sync.Mutex
	nextID  uint32
	calls   map[uint32]*call
	answers map[uint32]chan wire.Answer
	err     error // why the connection ended; set once
}

// handshake reads the agent's hello, sends ours and starts the reader. It closes stream on failure. looks is [Options.Looks].
func handshake(ctx context.Context, stream Stream, version string, looks bool) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	// Closing the stream is what makes a blocked read return.
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	defer stop()

	heard := &recorder{r: stream}
	in := wire.NewReader(heard, wire.MaxHello)
	hello, err := readHello(in)
	out := wire.NewWriter(stream)
	if err == nil {
		err = out.Write(wire.Encode(wire.TypeHello, 0, wire.Hello{Name: wire.HostName, Protocol: wire.Protocol, Version: version, Looks: looks}))
	}
	if err != nil {
		_ = stream.Close() // the handshake's error says more than closing could
		return nil, refused(ctx, heard.text()+" "+stream.Stderr(), err)
	}
	if !stop() {
		return nil, refused(ctx, "", ctx.Err())
	}
	in.SetLimit(wire.MaxFromAgent)
	c := &conn{
		stream: stream, out: out, hello: hello, ended: make(chan struct{}),
		calls: map[uint32]*call{}, answers: map[uint32]chan wire.Answer{},
	}
	go c.read(in)
	return c, nil
}

func readHello(in *wire.Reader) (wire.Hello, error) {
	f, err := in.Next()
	if err != nil {
		return wire.Hello{}, err
	}
	if f.Type != wire.TypeHello {
		return wire.Hello{}, fmt.Errorf("a %q frame came instead of its hello", f.Type)
	}
	hello, err := wire.Decode[wire.Hello](f)
	switch {
	case err != nil:
		return hello, err
	case hello.Name != wire.AgentName:
		return hello, fmt.Errorf("it calls itself %q", clean(hello.Name))
	case hello.Error != "":
		return hello, errors.New(clean(hello.Error))
	case hello.Protocol != wire.Protocol:
		return hello, fmt.Errorf("it speaks protocol %d, this dockerbox %d", hello.Protocol, wire.Protocol)
	}
	return hello, nil
}

// refused says why a handshake failed. said is text that came instead of an agent.
func refused(ctx context.Context, said string, err error) error {
	reason := "the agent in the sandbox could not be reached: "
	switch text := clean(said); {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		reason += "it said nothing for " + helloLimit.String()
	case ctx.Err() != nil:
		reason += "the caller gave up"
	case strings.Contains(text, AgentPath) && strings.Contains(text, "no such file"):
		reason += "its program is not there"
	case exhausted(text):
		return &contract.BackendError{
			Reason: reason + "the processes or the memory that the sandbox may have are used up",
			Hint:   "dockerbox restart NAME ends what uses them and keeps the home; dockerbox up NAME with --pids and --memory gives it more", Err: err,
		}
	case text != "":
		reason += engine.Cause(text)
	case errors.Is(err, io.EOF):
		reason += "it ended before it said hello"
	default:
		reason += clean(err.Error())
	}
	return &contract.BackendError{
		Reason: reason,
		Hint:   "raise its limits if they are low (--memory, --pids); dockerbox up --recreate makes the sandbox anew and keeps its home", Err: err,
	}
}

// exhausted reports whether text is what a runtime, or Go's in the agent, says when it cannot have another process, thread or page.
func exhausted(text string) bool {
	for _, says := range []string{"failed to create new OS thread", "newosproc", "resource temporarily unavailable", "cannot allocate memory", "read init-p: connection reset by peer"} {
		if strings.Contains(text, says) {
			return true
		}
	}
	return false
}

// recorder keeps the beginning of what passes: a daemon that cannot start an exec writes its reason where the agent's hello should be.
type recorder struct {
	r     io.Reader
	first []byte
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if free := maxRecorded - len(r.first); free > 0 {
		r.first = append(r.first, p[:min(n, free)]...)
	}
	return n, err
}

const maxRecorded = 256

// text is what was kept if it is text, else nothing.
func (r *recorder) text() string {
	if !utf8.Valid(r.first) || bytes.IndexFunc(r.first, func(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }) >= 0 {
		return ""
	}
	return string(r.first)
}

// read dispatches frames until the stream ends. It never waits for a consumer: what may arrive is bounded by the credit given.
func (c *conn) read(in *wire.Reader) {
	for {
		f, err := in.Next()
		if err == nil {
			err = c.dispatch(f)
		}
		if err != nil {
			c.fail(err)
			c.settle()
			return
		}
	}
}

func (c *conn) dispatch(f wire.Frame) error {
	switch f.Type {
	case wire.TypeAnswer:
		a, err := wire.Decode[wire.Answer](f)
		if err != nil {
			return err
		}
		c.mu.Lock()
		ch := c.answers[f.ID]
		delete(c.answers, f.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- a // buffered, and the only send
		}
		return nil
	case wire.TypeOutput, wire.TypeErrors, wire.TypeCredit, wire.TypeEnd, wire.TypeExit:
	default:
		return nil // from a later protocol, or noise
	}
	c.mu.Lock()
	k := c.calls[f.ID]
	c.mu.Unlock()
	if k == nil {
		return nil // it crossed with the end of its command
	}
	switch f.Type {
	case wire.TypeCredit:
		n, err := wire.ParseCredit(f)
		if err != nil {
			return err
		}
		return k.grant(n)
	case wire.TypeEnd:
		k.end()
		return nil
	case wire.TypeExit:
		x, err := wire.Decode[wire.Exit](f)
		if err != nil {
			return err
		}
		c.mu.Lock()
		delete(c.calls, f.ID) // not before: settle must find the call of an exit that cannot be read
		c.mu.Unlock()
		k.finish(x, nil)
		return nil
	default:
		return k.deliver(f.Type, f.Payload)
	}
}

// fail ends the connection for reason. The first reason stays.
func (c *conn) fail(reason error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = reason
	}
	c.mu.Unlock()
	_ = c.stream.Close() // it is being given up
}

// settle gives every waiter the reason. Runs once, in the reader, when nothing more can arrive.
func (c *conn) settle() {
	c.mu.Lock()
	lost := c.lost()
	for id, k := range c.calls {
		delete(c.calls, id)
		k.finish(wire.Exit{}, lost)
	}
	for id, ch := range c.answers {
		delete(c.answers, id)
		close(ch)
	}
	c.mu.Unlock()
	close(c.ended)
}

// lost is the error for work that the end of the connection cut off. c.mu is held.
func (c *conn) lost() error {
	return &contract.BackendError{
		Reason: "the connection to the sandbox was lost while a command was running: " + c.why(),
		Hint:   "the command may have run in part; look before you run it again",
		Err:    errors.Join(errLost, c.err),
	}
}

// why says how the connection ended, which somebody has been told before.
func (c *conn) why() string {
	var call *os.SyscallError
	switch {
	case errors.Is(c.err, io.EOF):
		return "the stream ended"
	case errors.As(c.err, &call): // its addresses say nothing to anybody
		return call.Err.Error()
	}
	return clean(c.err.Error())
}

// errSilent is why a connection is given up whose agent neither answers nor ends.
var errSilent = errors.New("the agent does not answer")

// errLost marks errors after which the environment connects anew.
var errLost = errors.New("connection lost")

// alive reports whether the connection can still be used.
func (c *conn) alive() bool {
	select {
	case <-c.ended:
		return false
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.err == nil
	}
}

// close ends the connection and waits for its reader.
func (c *conn) close() {
	c.fail(errors.New("closed"))
	<-c.ended
}

// open begins a command. sent is false when nothing reached the agent.
func (c *conn) open(k *call, run wire.Run) (sent bool, err error) {
	return c.begin(k, nil, func(id uint32) wire.Frame { return wire.Encode(wire.TypeRun, id, run) })
}

// begin registers a call, and the channel for an answer to it if it gets one, and sends the frame that starts it. sent is false when
// nothing reached the agent.
func (c *conn) begin(k *call, answer chan wire.Answer, start func(id uint32) wire.Frame) (sent bool, err error) {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return false, c.lost()
	}
	c.nextID++
	k.id = c.nextID
	c.calls[k.id] = k
	if answer != nil {
		c.answers[k.id] = answer
	}
	c.mu.Unlock()
	if err := c.out.Write(start(k.id)); err != nil {
		c.fail(err)
		<-c.ended // the reader settles the call
		return false, k.err
	}
	return true, nil
}

// ask sends a query. The channel gives its answer, or is closed when the connection ends first.
func (c *conn) ask(q wire.Query) <-chan wire.Answer {
	ch := make(chan wire.Answer, 1)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		close(ch)
		return ch
	}
	c.nextID++
	id := c.nextID
	c.answers[id] = ch
	c.mu.Unlock()
	if err := c.out.Write(wire.Encode(wire.TypeQuery, id, q)); err != nil {
		c.fail(err) // the reader closes ch
	}
	return ch
}

// query asks the agent and waits for its answer. An agent that does not answer before ctx ends loses the connection.
func (c *conn) query(ctx context.Context, q wire.Query) (wire.Answer, error) {
	select {
	case a, ok := <-c.ask(q):
		if !ok {
			c.mu.Lock()
			defer c.mu.Unlock()
			return a, c.lost()
		}
		return a, nil
	case <-ctx.Done():
		c.fail(errSilent)
		return wire.Answer{}, &contract.BackendError{
			Reason: "the agent in the sandbox does not answer",
			Hint:   "if the sandbox is paused, dockerbox unpause NAME lets it go on; otherwise dockerbox up --recreate NAME", Err: ctx.Err(),
		}
	}
}

// clean makes text from inside the sandbox fit for a message: one line, printable, short.
func clean(text string) string {
	const most = 300
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
