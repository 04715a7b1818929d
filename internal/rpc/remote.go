package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// remote is a sandbox behind a handle of the server.
type remote struct {
	client *Client
	handle string

	mu     sync.Mutex
	info   contract.Info // guarded by mu: the container changes when it is made anew
	closed bool          // guarded by mu: Cleanup gave the handle back
}

var _ contract.Environment = (*remote)(nil)

func (r *remote) Info() contract.Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info
}

// living returns an error once the handle was given back.
func (r *remote) living() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		return nil
	}
	return &contract.BackendError{
		Reason: fmt.Sprintf("this handle on sandbox %q was cleaned up", r.info.Name),
		Hint:   "create the environment again; the sandbox itself may still be there",
	}
}

// ranIn completes a result with the container that ran the command, which the server names only when it is a new one.
func (r *remote) ranIn(res *contract.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if res.ContainerID != "" {
		r.info.ContainerID = res.ContainerID
	}
	res.ContainerID = r.info.ContainerID
}

// request asks about this sandbox. What the server finds wrong with the parameters is to a caller of an Environment a failure like any
// other.
func (r *remote) request(ctx context.Context, method string, params, result any) error {
	if err := r.living(); err != nil {
		return err
	}
	return asBackend(r.client.request(ctx, method, params, result))
}

func asBackend(err error) error {
	var faults contract.Faults
	if !errors.As(err, &faults) {
		return err
	}
	return &contract.BackendError{Reason: faults.Error(), Hint: "correct what it names", Err: faults}
}

// clientWindow is the output window a Client asks for.
const clientWindow = 1 << 20

// Execute runs one command through the server. The protocol carries no fallback directory, which the provider decides about anyway, no
// terminal, which its hosts have no word for, and one output stream, so Request.Terminal and Request.Stderr must be nil.
//
// When the command ends while Request.Stdin is still being read, Execute does not wait for that read: as with a process, only the
// reader's owner can end it.
func (r *remote) Execute(ctx context.Context, req contract.Request) (contract.Result, error) {
	if err := r.living(); err != nil {
		return contract.Result{}, err
	}
	params, err := r.params(req)
	if err != nil {
		return contract.Result{}, err
	}
	var (
		p     pending
		whole sink
	)
	if params.Window > 0 {
		w := req.Stdout
		if w == nil {
			w = &whole
		}
		// id is known only after start, and credit is sent only after output, which is later still.
		p.stdout = newInbox(w)
	}
	if params.StreamStdin {
		p.credit = newAllowance(InputWindow)
	}
	id, err := r.client.start(methodExecute, params, &p)
	if err != nil {
		return contract.Result{}, err
	}
	if p.stdout != nil {
		go p.stdout.run(func(n int) {
			// A broken stream ends the call by itself.
			_ = r.client.out.send(func(b []byte) []byte { return appendCredit(b, id, int64(n)) })
		}, func() { _ = r.client.out.notify(methodCancel, cancelParams{id, causeInterrupt}) }) // as above
	}
	if p.credit != nil {
		go r.feed(id, req.Stdin, p.credit)
	}
	var got executeResult
	err = r.client.wait(ctx, id, &p, &got)
	if p.stdout != nil {
		if failed := p.stdout.finish(); failed != nil && err == nil {
			err = unread(failed)
		}
	}
	if err != nil {
		return contract.Result{}, asBackend(err)
	}
	res := contract.Result{
		ExitCode: got.ReturnCode, Output: got.Output, Dropped: got.Dropped, Cwd: textOr(got.Cwd, got.CwdB64),
		TimedOut: got.TimedOut, Interrupted: got.Interrupted, Recreated: got.Recreated, ContainerID: got.ContainerID,
		Duration: time.Duration(got.DurationMS) * time.Millisecond,
	}
	r.ranIn(&res)
	switch {
	case req.Stdout != nil:
		if len(res.Output) > 0 {
			if _, err := req.Stdout.Write(res.Output); err != nil {
				return contract.Result{}, unread(err)
			}
		}
		res.Output = nil
	case p.stdout != nil:
		res.Output = append(whole, res.Output...)
		// The server says it only in output that it sends whole.
		if res.TimedOut {
			res = contract.Killed(res, contract.ErrTimedOut, req.Timeout)
		} else if res.Interrupted {
			res = contract.Killed(res, contract.ErrInterrupted, req.Timeout)
		}
	}
	return res, nil
}

// unread is the failure of whoever takes a command's output.
func unread(err error) error {
	return &contract.BackendError{
		Reason: "output could not be passed on: " + err.Error(), Hint: "the command was ended; its reader was gone", Err: err,
	}
}

// sink keeps what is written to it.
type sink []byte

func (s *sink) Write(p []byte) (int, error) { *s = append(*s, p...); return len(p), nil }

func (r *remote) params(req contract.Request) (executeParams, error) {
	p := executeParams{
		Env: r.handle, Argv: req.Argv, User: req.User, Environ: req.Env, Transient: req.Transient, MaxOutput: int64(req.MaxOutput),
		TimeoutMS: req.Timeout.Milliseconds(), StreamStdin: req.Stdin != nil,
	}
	if req.Timeout > 0 && p.TimeoutMS == 0 { // below a millisecond is still a limit
		p.TimeoutMS = 1
	}
	// Output that must be kept whole can be longer than a line, so it comes in pieces as well.
	if req.Stdout != nil || req.MaxOutput == 0 {
		p.Window, p.MaxOutput = clientWindow, 0
	}
	if req.Argv == nil {
		if utf8.ValidString(req.Command) {
			p.Command = &req.Command
		} else {
			p.CommandB64 = []byte(req.Command)
		}
	}
	if utf8.ValidString(req.Dir) {
		p.Cwd = req.Dir
	} else {
		p.CwdB64 = []byte(req.Dir)
	}
	if req.Terminal != nil {
		return p, unsupported("a terminal")
	}
	if req.Stderr != nil {
		return p, unsupported("a stderr of its own")
	}
	for name, value := range req.Env {
		if !utf8.ValidString(value) {
			return p, unsupported("variable " + name + ", which is not UTF-8")
		}
	}
	for _, word := range req.Argv {
		if !utf8.ValidString(word) {
			return p, unsupported("a word that is not UTF-8")
		}
	}
	return p, nil
}

func unsupported(what string) error {
	return &contract.BackendError{Reason: "dockerbox serve cannot carry " + what, Hint: "use the provider directly"}
}

// feed sends input as credit allows, until its end or the command's.
func (r *remote) feed(id int64, in io.Reader, credit *allowance) {
	buf := make([]byte, MaxChunk)
	for {
		n := credit.take(len(buf))
		if n == 0 {
			return
		}
		got, err := in.Read(buf[:n])
		credit.grant(int64(n - got))
		eof := err != nil // a reader that fails has no more to give
		if got > 0 || eof {
			sendErr := r.client.out.send(func(b []byte) []byte { return appendChunk(b, methodStdin, id, buf[:got], eof) })
			if sendErr != nil || eof {
				return
			}
		}
	}
}

func (r *remote) ExecPrefix(ctx context.Context, user string, interactive bool) ([]string, error) {
	var got execPrefixResult
	err := r.request(ctx, methodExecPrefix, execPrefixParams{r.handle, user, &interactive}, &got)
	return got.Argv, err
}

// FetchFile lets the server write a file, because that is what the protocol offers, and reads it here.
func (r *remote) FetchFile(ctx context.Context, path string, w io.Writer, maxBytes int64) (err error) {
	dir, err := os.MkdirTemp("", "dockerbox-fetch-*")
	if err != nil {
		return fmt.Errorf("make a directory for the copy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p := fetchParams{Env: r.handle, Path: path, PathB64: bytesUnlessText(path), Dest: filepath.Join(dir, "file"), MaxBytes: maxBytes}
	if err := r.request(ctx, methodFetch, p, &fetchResult{}); err != nil {
		return err
	}
	f, err := os.Open(p.Dest)
	if err != nil {
		return fmt.Errorf("open the copy: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(w, f)
	return err
}

func (r *remote) Realpath(ctx context.Context, path string) (string, error) {
	var got realpathResult
	err := r.request(ctx, methodRealpath, realpathParams{r.handle, path, bytesUnlessText(path)}, &got)
	return textOr(got.Path, got.PathB64), err
}

func (r *remote) Cleanup(ctx context.Context, remove bool) error {
	if err := r.client.request(ctx, methodCleanup, cleanupParams{r.handle, remove}, &nothing{}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}
