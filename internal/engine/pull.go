package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// How long a daemon may have nothing to say of a pull. It has no such limit of its own: a registry that keeps the connection and sends
// nothing would be waited for until somebody gives up. It speaks of a layer whenever 512 kB of it have come, and of one it unpacks while it
// reads it; what it does between its last byte and the next layer's first can take minutes on a slow disk.
const (
	pullQuiet   = 2 * time.Minute
	unpackQuiet = 10 // times as long
)

// errStalled is the cause that ends a pull of which nothing was heard.
var errStalled = errors.New("nothing has come")

// Pull fetches an image and hands every progress message to report, which may be nil, in order and from this goroutine. Its errors say that
// the image was missing in the first place. When ctx ends, or nothing has come for 2 minutes, the daemon is told to stop.
func (e *Engine) Pull(ctx context.Context, ref string, report func(jsonmessage.JSONMessage)) error {
	return e.pullWithin(ctx, ref, pullQuiet, report)
}

// pullWithin is Pull with the longest silence.
func (e *Engine) pullWithin(ctx context.Context, ref string, quiet time.Duration, report func(jsonmessage.JSONMessage)) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := pullWatch{quiet: quiet, unpacking: map[string]bool{}, timer: time.AfterFunc(quiet, func() { cancel(errStalled) })}
	defer w.timer.Stop()
	err := e.followPull(ctx, ref, func(m jsonmessage.JSONMessage) {
		w.timer.Stop() // a reader that is slow, such as a terminal on hold, is not the daemon's silence
		if report != nil {
			report(m)
		}
		w.timer.Reset(w.patience(m))
	})
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return &contract.BackendError{
			Reason: fmt.Sprintf("%s: nothing of it has come for %.0f s", cannotPull(ref), quiet.Seconds()), Hint: hintCut, Err: errors.Join(errStalled, err),
		}
	}
	return e.explainPull(ref, err)
}

// followPull asks for the image and reads what the daemon says until it has it.
func (e *Engine) followPull(ctx context.Context, ref string, take func(jsonmessage.JSONMessage)) error {
	stream, err := e.api.ImagePull(ctx, ref, image.PullOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // read only: nothing to lose
	messages := json.NewDecoder(stream)
	for {
		var m jsonmessage.JSONMessage
		switch err := messages.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Error != nil:
			return m.Error
		}
		take(m)
	}
}

// pullWatch decides how long a daemon may be silent.
type pullWatch struct {
	quiet     time.Duration
	timer     *time.Timer
	unpacking map[string]bool // layers
}

// patience is how long nothing need come after m.
func (w *pullWatch) patience(m jsonmessage.JSONMessage) time.Duration {
	if m.ID != "" {
		delete(w.unpacking, m.ID)
		if m.Status == "Extracting" {
			w.unpacking[m.ID] = true
		}
	}
	if len(w.unpacking) > 0 {
		return unpackQuiet * w.quiet
	}
	return w.quiet
}

func cannotPull(ref string) string {
	return "the image " + ref + " is not on this daemon and cannot be pulled"
}

// explainPull explains why an image that is not on the daemon cannot be pulled.
func (e *Engine) explainPull(ref string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &contract.BackendError{
			Reason: "the pull of image " + ref + " was given up before its end", Hint: "try again; docker pull " + ref + " shows how it goes", Err: err,
		}
	case cutOff(err), client.IsErrConnectionFailed(err): // between the daemon and us, not between the daemon and the registry
		return e.explain("the pull of image "+ref, err)
	}
	err = e.explainBy(append(slices.Clip(registry), refusals...), cannotPull(ref), err)
	if b := (*contract.BackendError)(nil); errors.As(err, &b) && b.Hint == hintObjects {
		b.Hint = hintNetwork
	}
	return err
}
