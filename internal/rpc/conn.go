package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// conn is one client of a Server.
type conn struct {
	server  *Server
	in      *lineReader // the reading goroutine's, like lost
	lost    error       // why nothing more can be read from in
	out     *lineWriter
	limit   int
	greeted bool           // initialize succeeded; only the reading goroutine looks at it
	raw     bool           // output goes out as it is; set before any request runs
	running sync.WaitGroup // goroutines of requests

	mu       sync.Mutex
	calls    map[int64]*call                 // guarded by mu: requests in flight
	envs     map[string]contract.Environment // guarded by mu: living handles
	lastEnv  int                             // guarded by mu
	draining bool                            // guarded by mu: no request is taken any more
}

// call is a request in flight.
type call struct {
	id     int64
	cancel context.CancelCauseFunc
	stdin  *input // of an execute; nil otherwise

	mu     sync.Mutex
	stdout *output // guarded by mu; nil without a window and before it is known
	broken error   // guarded by mu: how the client broke the protocol within this call
}

var nullID = []byte("null")

// readAll handles lines until the stream ends, which is no error.
func (c *conn) readAll(ctx context.Context) error {
	for {
		line, err := c.in.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLineTooLong):
			c.fail(nullID, newError(codeParse, fmt.Sprintf("line is longer than %d MiB", c.in.max>>20), nil))
		case err != nil:
			return fmt.Errorf("read from the client: %w", err)
		default:
			c.handle(ctx, line)
			if c.lost != nil {
				return fmt.Errorf("read from the client: %w", c.lost)
			}
		}
	}
}

// fail answers with an error. When the stream is broken the connection is ending anyway, so its error is of no use here.
func (c *conn) fail(id []byte, e *errorObject) {
	_ = c.out.send(func(b []byte) []byte { return appendError(b, id, e) })
}

// handle routes one line. It never waits for a command, so that a cancel is always read. A line of only blanks is nothing.
func (c *conn) handle(ctx context.Context, line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	if p, ok := parseChunk(line, methodStdin); ok {
		c.feed(p)
		return
	}
	var m envelope
	if err := json.Unmarshal(line, &m); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			c.fail(nullID, newError(codeParse, "line is not JSON: "+err.Error(), nil))
		} else {
			c.fail(nullID, newError(codeRequest, "line is not a JSON-RPC message: "+misfit(err), nil))
		}
		return
	}
	switch {
	case m.Version != "2.0":
		c.fail(echoID(m.ID), newError(codeRequest, `jsonrpc must be "2.0"`, nil))
	case m.Method == "":
		c.fail(echoID(m.ID), newError(codeRequest, "method is missing", nil))
	case m.ID == nil:
		c.notification(m)
	default:
		var id int64
		if err := json.Unmarshal(m.ID, &id); err != nil || id <= 0 {
			c.fail(echoID(m.ID), newError(codeRequest, "id must be a whole number above 0", nil))
			return
		}
		c.request(ctx, id, m)
	}
}

// misfit says what is wrong with a message that is JSON, but not of its shape.
func misfit(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	what := wrong.Field
	if what == "" {
		what = "it"
	}
	return fmt.Sprintf("%s must be %s, not a JSON %s", what, typeName(wrong), wrong.Value)
}

// echoID returns an id that an answer may carry: what the client sent when it is a number or a string, null otherwise.
func echoID(raw json.RawMessage) []byte {
	if len(raw) > 0 && len(raw) <= 64 && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		return raw
	}
	return nullID
}

// notification acts on a message that has no answer. What cannot be understood, or is for a call that is over, is ignored.
func (c *conn) notification(m envelope) {
	switch m.Method {
	case methodStdin:
		var p chunkParams
		if decodeParams(m.Params, &p) != nil {
			return
		}
		c.feed(p)
	case methodCredit:
		var p creditParams
		if decodeParams(m.Params, &p) != nil {
			return
		}
		if k := c.call(p.Call); k != nil {
			k.mu.Lock()
			out := k.stdout
			k.mu.Unlock()
			if out != nil {
				out.grant(p.Bytes)
			}
		}
	case methodCancel:
		var p cancelParams
		if decodeParams(m.Params, &p) != nil {
			return
		}
		if k := c.call(p.Call); k != nil {
			// An unknown cause still means that nobody wants the result any more.
			cause := contract.ErrInterrupted
			if p.Cause == causeTimeout {
				cause = contract.ErrTimedOut
			}
			k.cancel(cause)
		}
	}
}

// feed gives a command input. Raw bytes are taken off the stream whoever they are for.
func (c *conn) feed(p chunkParams) {
	if p.Raw != 0 {
		if p.Data, c.lost = c.in.take(p.Raw); c.lost != nil {
			return
		}
	}
	if k := c.call(p.Call); k != nil && k.stdin != nil && !k.stdin.push(p.Data, p.EOF) {
		k.breach(fault("stdin", fmt.Sprintf("more than %d bytes were sent without credit", InputWindow)))
	}
}

// breach ends a call whose client broke the protocol.
func (k *call) breach(err error) {
	k.mu.Lock()
	if k.broken == nil {
		k.broken = err
	}
	k.mu.Unlock()
	k.cancel(contract.ErrInterrupted)
}

func (c *conn) call(id int64) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id]
}

// request starts one request. initialize is handled at once, so that the lines after it see its outcome.
func (c *conn) request(ctx context.Context, id int64, m envelope) {
	if m.Method == methodInitialize {
		c.initialize(id, m.Params)
		return
	}
	run, known := methods[m.Method]
	switch {
	case !known:
		c.answer(id, nil, unknownMethod(m.Method))
		return
	case !c.greeted:
		c.answer(id, nil, newError(codeRequest, "initialize must be the first request", nil))
		return
	}
	k, ctx, err := c.begin(ctx, id, m.Method == methodExecute)
	if err != nil {
		// An answer with the id would be taken for the answer to the call that has it.
		if errors.Is(err, errDuplicate) {
			c.fail(nullID, newError(codeRequest, fmt.Sprintf("id %d is already in flight", id), nil))
		} else {
			c.answer(id, nil, err)
		}
		return
	}
	go func() {
		defer c.running.Done()
		result, err := run(c, ctx, k, m.Params)
		c.end(k)
		c.answer(id, result, err)
	}()
}

var (
	errDuplicate = errors.New("id is already in flight")
	errEnding    = &contract.BackendError{Reason: "dockerbox serve is ending", Hint: "start it again"}
)

// begin registers a call, so that notifications find it before its goroutine runs.
func (c *conn) begin(ctx context.Context, id int64, execute bool) (*call, context.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.calls[id]; ok {
		return nil, nil, errDuplicate
	}
	if c.draining {
		return nil, nil, errEnding
	}
	if len(c.calls) >= c.limit {
		return nil, nil, &contract.BackendError{
			Reason: fmt.Sprintf("too many requests at once, the limit is %d", c.limit),
			Hint:   "wait for one to end",
		}
	}
	k := &call{id: id}
	ctx, k.cancel = context.WithCancelCause(ctx)
	if execute {
		k.stdin = newInput(func(n int64) {
			// A broken stream ends the call by itself.
			_ = c.out.send(func(b []byte) []byte { return appendCredit(b, id, n) })
		})
	}
	c.calls[id] = k
	c.running.Add(1)
	return k, ctx, nil
}

// end forgets a call before its answer goes out: the client may use the id's slot at once.
func (c *conn) end(k *call) {
	k.cancel(nil)
	c.mu.Lock()
	delete(c.calls, k.id)
	c.mu.Unlock()
}

// answer sends a result or an error.
func (c *conn) answer(id int64, result []byte, err error) {
	// When the stream is broken the connection is ending and nobody waits for the answer.
	if err != nil {
		e := errorFor(err)
		_ = c.out.send(func(b []byte) []byte { return appendError(b, fmt.Append(nil, id), e) })
		return
	}
	_ = c.out.send(func(b []byte) []byte { return appendResult(b, id, result) })
}

func (c *conn) initialize(id int64, raw json.RawMessage) {
	var p initializeParams
	if err := decodeParams(raw, &p); err != nil {
		c.answer(id, nil, err)
		return
	}
	if p.Protocol != Protocol {
		c.answer(id, nil, newError(codeRequest,
			fmt.Sprintf("client speaks protocol %d, dockerbox %s speaks %d; update the older of the two", p.Protocol, c.server.Version, Protocol),
			protocolData{kindProtocol, Protocol, p.Protocol}))
		return
	}
	if !c.greeted { // requests that run look at it
		c.greeted, c.raw = true, p.Raw
	}
	c.answer(id, mustMarshal(initializeResult{Protocol, c.server.Version, c.raw}), nil)
}
