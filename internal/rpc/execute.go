package rpc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func (c *conn) execute(ctx context.Context, k *call, raw json.RawMessage) ([]byte, error) {
	// Ends a goroutine of the environment that still waits for input, and credit for a call that is over.
	defer k.stdin.close()
	defer context.AfterFunc(ctx, k.stdin.close)()
	var p executeParams
	if err := decodeParams(raw, &p); err != nil {
		return nil, err
	}
	if f := p.faults(); f != nil {
		return nil, f
	}
	env, err := c.environment(p.Env)
	if err != nil {
		return nil, err
	}
	req := p.request()
	switch {
	case p.StreamStdin:
		req.Stdin = k.stdin
	case p.Stdin != nil:
		req.Stdin = bytes.NewReader(p.Stdin)
	}
	var out *output
	if p.Window > 0 {
		out = c.stream(k, p.Window)
		req.Stdout = out
		// The kill at the deadline must not wait for a client that reads nothing, so neither may the writer.
		if req.Timeout > 0 {
			defer time.AfterFunc(req.Timeout, out.release).Stop()
		}
		defer context.AfterFunc(ctx, out.release)()
	}
	started := time.Now()
	res, err := env.Execute(ctx, req)
	if res.Duration == 0 {
		res.Duration = time.Since(started)
	}
	if out != nil {
		// A provider keeps no output that it streamed, and leaves it to the stream's reader to say that the command was killed.
		rest, dropped := out.finish()
		res.Output, res.Dropped = append(rest, res.Output...), res.Dropped+dropped
	}
	k.mu.Lock()
	broken := k.broken
	k.mu.Unlock()
	if broken != nil {
		return nil, broken
	}
	if err != nil {
		return nil, err
	}
	return encodeResult(res), nil
}

// stream makes the output of a call with a window.
func (c *conn) stream(k *call, window int64) *output {
	most := MaxChunk
	if c.raw {
		most = MaxRaw
	}
	out := newOutput(window, most, func(chunk []byte) func() error {
		scratch := borrow()
		line := (*scratch)[:0]
		if c.raw {
			line = appendRaw(line, methodOutput, k.id, chunk)
		} else {
			line = append(appendChunk(line, methodOutput, k.id, chunk, false), '\n')
		}
		return func() error {
			defer giveBack(scratch, line)
			return c.out.write(line)
		}
	})
	k.mu.Lock()
	k.stdout = out
	k.mu.Unlock()
	return out
}

// faults lists what is wrong with the parameters themselves.
func (p *executeParams) faults() contract.Faults {
	var f contract.Faults
	add := func(key, problem string) { f = append(f, contract.Fault{Key: key, Problem: problem}) }
	given := 0
	for _, is := range []bool{p.Command != nil, p.CommandB64 != nil, p.Argv != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		add("command", "exactly one of command, command_b64 and argv must be given")
	}
	if p.Argv != nil && (len(p.Argv) == 0 || p.Argv[0] == "") {
		add("argv", "must begin with a program")
	}
	if strings.ContainsRune(p.text(), 0) || strings.ContainsRune(strings.Join(p.Argv, ""), 0) {
		add("command", "must not contain a NUL byte")
	}
	if strings.ContainsRune(p.dir(), 0) {
		add("cwd", "must not contain a NUL byte")
	}
	if p.User != "" && !contract.ValidUser(p.User) {
		f = append(f, faultUser(p.User)...)
	}
	if p.TimeoutMS < 0 || p.TimeoutMS > math.MaxInt64/int64(time.Millisecond) {
		add("timeout_ms", "must be 0 (none) or a positive number of milliseconds")
	}
	if p.Window != 0 && p.Window < MinWindow {
		add("window", fmt.Sprintf("must be 0 (none) or at least %d bytes", MinWindow))
	}
	if p.MaxOutput < 0 || p.MaxOutput > maxWhole {
		add("max_output", fmt.Sprintf("must be 0 to %d bytes", maxWhole))
	}
	if p.StreamStdin && p.Stdin != nil {
		add("stdin", "must not be given together with stream_stdin")
	}
	return f
}

func (p *executeParams) text() string {
	if p.Command != nil {
		return *p.Command
	}
	return string(p.CommandB64)
}

func (p *executeParams) dir() string { return textOr(p.Cwd, p.CwdB64) }

// request translates checked parameters.
func (p *executeParams) request() contract.Request {
	req := contract.Request{
		Argv: p.Argv, User: p.User, Env: p.Environ, Transient: p.Transient,
		Timeout:   time.Duration(p.TimeoutMS) * time.Millisecond,
		MaxOutput: int(p.MaxOutput),
	}
	if p.Argv == nil {
		req.Command = p.text()
		if req.Command == "" { // a host may well run nothing; the contract takes an empty text for none
			req.Command = ":"
		}
	}
	req.Dir = p.dir()
	if p.Window == 0 && req.MaxOutput == 0 {
		req.MaxOutput = maxWhole
	}
	return req
}

// encodeResult encodes by hand what is large: the output is base64 of its own, once, without a copy.
func encodeResult(r contract.Result) []byte {
	b := make([]byte, 0, 256+base64.StdEncoding.EncodedLen(len(r.Output)))
	b = fmt.Appendf(b, `{"returncode":%d,"output":"`, r.ExitCode)
	b = base64.StdEncoding.AppendEncode(b, r.Output)
	b = append(b, '"', ',')
	rest := executeRest{
		Cwd: r.Cwd, CwdB64: bytesUnlessText(r.Cwd), TimedOut: r.TimedOut, Interrupted: r.Interrupted, Recreated: r.Recreated,
		Dropped: r.Dropped, DurationMS: r.Duration.Milliseconds(),
	}
	if r.Recreated {
		rest.ContainerID = r.ContainerID
	}
	return append(b, mustMarshal(rest)[1:]...)
}
