package desktop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/environment"
)

// Stream carries the RFB bytes of a screen. Read and Write may be called concurrently with one another.
type Stream struct {
	io.Reader // what the screen says
	in        *io.PipeWriter
	cancel    context.CancelCauseFunc
	out       *io.PipeReader
	over      chan struct{}
	once      sync.Once
	err       error
}

// Open connects to a screen that runs. It returns at once; a screen that cannot be reached shows as the end of the stream, and why is
// what Close returns. ctx ends the stream.
func Open(ctx context.Context, env contract.Environment, screen Status) *Stream {
	ctx, cancel := context.WithCancelCause(ctx)
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	s := &Stream{Reader: outRead, in: inWrite, out: outRead, cancel: cancel, over: make(chan struct{})}
	go func() { // ended and waited for by Close
		defer close(s.over)
		words := &bounded{}
		r, err := env.Execute(ctx, contract.Request{
			Argv: []string{environment.AgentPath, "dial", "unix", screen.Socket}, User: screen.Account,
			Stdin: inRead, Stdout: outWrite, Stderr: words,
		})
		switch {
		case errors.Is(context.Cause(ctx), errClosed):
		case err != nil:
			s.err = err
		case ctx.Err() != nil:
			s.err = context.Cause(ctx)
		case r.ExitCode != 0:
			s.err = &contract.BackendError{
				Reason: fmt.Sprintf("the screen of sandbox %q cannot be reached: %s", env.Info().Name, clean(words.String())),
				Hint:   "dockerbox desktop status says whether it runs",
			}
		}
		_ = inRead.CloseWithError(io.ErrClosedPipe) // a pipe's Close has no error
		_ = outWrite.Close()
	}()
	return s
}

var errClosed = errors.New("the stream was closed")

// Write implements [io.Writer].
func (s *Stream) Write(p []byte) (int, error) { return s.in.Write(p) }

// Close ends the stream and returns why it had ended before, if it had. It may be called again, and says the same.
func (s *Stream) Close() error {
	s.once.Do(func() {
		s.cancel(errClosed)
		_ = s.in.Close()  // as above
		_ = s.out.Close() // output that nobody takes any more must not hold the command up
	})
	<-s.over
	return s.err
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxTitle - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
