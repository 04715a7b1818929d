package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Client speaks to a [Server] and is a [contract.Provider] by it. Safe for concurrent use.
type Client struct {
	hello helloParams
	out   *lineWriter
	stop  io.Closer // ends the server's input
	warn  func(string)
	done  chan struct{} // closed when the reading goroutine ended

	mu      sync.Mutex
	lastID  int64
	waiting map[int64]*pending // guarded by mu: requests without an answer
	err     error              // guarded by mu: why the stream ended
}

var _ contract.Provider = (*Client)(nil)

// pending is a request that waits for its answer.
type pending struct {
	answer chan envelope // receives once; closed instead when the stream ends
	stdout *inbox        // of an execute with a window
	credit *allowance    // of an execute with streamed input
}

// errLost is the cause of failures after the stream ended.
var errLost = errors.New("connection to dockerbox serve ended")

// Connect waits for the server's hello on in and introduces the client as name and version. warn receives sentences for the log, nil
// drops them. ctx bounds the greeting only. [Client.Close] closes out; the client reads in until its end.
func Connect(ctx context.Context, in io.Reader, out io.WriteCloser, name, version string, warn func(string)) (*Client, error) {
	if warn == nil {
		warn = func(string) {}
	}
	c := &Client{out: newLineWriter(out), stop: out, warn: warn, done: make(chan struct{}), waiting: map[int64]*pending{}}
	hello := make(chan error, 1)
	go c.read(newLineReader(in, MaxLine), hello)
	select {
	case err := <-hello:
		if err != nil {
			return nil, errors.Join(lost(err), c.Close())
		}
	case <-ctx.Done():
		// The goroutine ends with in, which ends with out at the other side; waiting for that could be for ever.
		return nil, errors.Join(lost(context.Cause(ctx)), out.Close())
	}
	var r initializeResult
	if err := c.request(ctx, methodInitialize, initializeParams{Protocol: Protocol, Client: peer{name, version}}, &r); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close ends the connection and waits for the server to end its side. A second call does nothing more.
func (c *Client) Close() error {
	err := c.stop.Close()
	<-c.done
	return err
}

// Name is the served provider's name.
func (c *Client) Name() string { return c.hello.Name }

// DefaultCwd is the served provider's default directory.
func (c *Client) DefaultCwd() string { return c.hello.DefaultCwd }

// SupportsStreams reports whether the served provider offers exec_prefix.
func (c *Client) SupportsStreams() bool { return slices.Contains(c.hello.Features, featureExecPrefix) }

// Version is the version the server named.
func (c *Client) Version() string { return c.hello.Version }

// Probe asks the server; a server that cannot be reached is unavailable.
func (c *Client) Probe(ctx context.Context) contract.Health {
	var h contract.Health
	if err := c.request(ctx, methodProbe, nothing{}, &h); err != nil {
		var backend *contract.BackendError
		h = contract.Health{Status: contract.Unavailable, Detail: err.Error()}
		if errors.As(err, &backend) {
			h.Hint = backend.Hint
		}
	}
	return h
}

// CreateEnvironment asks the server for a handle on the sandbox that cfg names.
func (c *Client) CreateEnvironment(ctx context.Context, cfg contract.Config, cwd string) (contract.Environment, error) {
	raw, err := json.Marshal(cfg)
	if err != nil { // a number of cores that is none
		return nil, fault("config", err.Error())
	}
	var r createResult
	if err := c.request(ctx, methodCreate, createParams{raw, cwd}, &r); err != nil {
		return nil, err
	}
	return &remote{client: c, handle: r.Env, info: contract.Info{
		Name: r.Name, ContainerID: r.ContainerID, Image: r.Image, User: r.User, Home: r.Home, Cwd: r.Cwd, TempDir: r.TempDir,
		Created: r.Created, ForwardEnv: r.ForwardEnv, Mounts: r.Mounts, Warnings: r.Warnings,
	}}, nil
}

// read takes lines until the stream ends, then fails whatever waits.
func (c *Client) read(lines *lineReader, hello chan<- error) {
	defer close(c.done)
	err := c.readHello(lines)
	hello <- err
	for err == nil {
		var line []byte
		if line, err = lines.next(); err == nil {
			err = c.handle(line)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	for id, p := range c.waiting {
		delete(c.waiting, id)
		close(p.answer)
		if p.credit != nil {
			p.credit.end()
		}
	}
}

func (c *Client) readHello(lines *lineReader) error {
	line, err := lines.next()
	if err != nil {
		return err
	}
	var m envelope
	if err := json.Unmarshal(line, &m); err != nil || m.Method != methodHello {
		return fmt.Errorf("the first line is no hello: %.80q", line)
	}
	return json.Unmarshal(m.Params, &c.hello)
}

// handle routes one line. It never blocks on a consumer. An error ends the connection.
func (c *Client) handle(line []byte) error {
	if p, ok := parseChunk(line, methodOutput); ok {
		return c.put(p)
	}
	var m envelope
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("line of the server: %w", err)
	}
	switch m.Method {
	case "":
		return c.deliver(m)
	case methodOutput:
		var p chunkParams
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return fmt.Errorf("output of the server: %w", err)
		}
		return c.put(p)
	case methodCredit:
		var p creditParams
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return fmt.Errorf("credit of the server: %w", err)
		}
		if w := c.find(p.Call); w != nil && w.credit != nil {
			w.credit.grant(p.Bytes)
		}
	case methodWarning:
		var p warningParams
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return fmt.Errorf("warning of the server: %w", err)
		}
		c.warn(p.Text)
	}
	return nil
}

// put gives output to the call it belongs to.
func (c *Client) put(p chunkParams) error {
	if w := c.find(p.Call); w != nil && w.stdout != nil {
		return w.stdout.put(p.Data)
	}
	return nil
}

// deliver hands an answer to its request.
func (c *Client) deliver(m envelope) error {
	var id int64
	if err := json.Unmarshal(m.ID, &id); err != nil || id == 0 { // id null: the server could not read a line of ours
		if m.Error != nil {
			return m.Error
		}
		return errors.New("answer of the server has no id")
	}
	c.mu.Lock()
	p := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if p != nil {
		p.answer <- m
		if p.credit != nil {
			p.credit.end()
		}
	}
	return nil
}

func (c *Client) find(id int64) *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[id]
}

// start sends a request. p gets its answer.
func (c *Client) start(method string, params any, p *pending) (int64, error) {
	p.answer = make(chan envelope, 1)
	encoded := mustMarshal(params)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return 0, lost(c.err)
	}
	c.lastID++
	id := c.lastID
	c.waiting[id] = p
	c.mu.Unlock()
	if err := c.out.send(func(b []byte) []byte { return appendMessage(b, id, method, encoded) }); err != nil {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
		return 0, lost(err)
	}
	return id, nil
}

// wait returns the answer. When ctx ends first the server is told, and the answer still awaited: only then is the work over.
func (c *Client) wait(ctx context.Context, id int64, p *pending, result any) error {
	var m envelope
	ok := false
	select {
	case m, ok = <-p.answer:
	case <-ctx.Done():
		cause := causeInterrupt
		if errors.Is(context.Cause(ctx), contract.ErrTimedOut) {
			cause = causeTimeout
		}
		if err := c.out.notify(methodCancel, cancelParams{id, cause}); err != nil {
			return lost(err)
		}
		m, ok = <-p.answer
	}
	switch {
	case !ok:
		c.mu.Lock()
		defer c.mu.Unlock()
		return lost(c.err)
	case m.Error != nil:
		return errorFrom(m.Error)
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return lost(fmt.Errorf("answer of the server: %w", err))
	}
	return nil
}

func (c *Client) request(ctx context.Context, method string, params, result any) error {
	var p pending
	id, err := c.start(method, params, &p)
	if err != nil {
		return err
	}
	return c.wait(ctx, id, &p, result)
}

func lost(err error) error {
	return &contract.BackendError{
		Reason: fmt.Sprintf("connection to dockerbox serve ended: %v", err),
		Hint:   "start it again",
		Err:    errors.Join(errLost, err),
	}
}
