//go:build linux

package enginetest

import (
	"context"

	"github.com/docker/docker/pkg/jsonmessage"
)

// Registry is what images are pulled from. It reports what a daemon would say of a pull, takes as long as it likes, and returns when the image
// is there, or with why it is not. It runs in the goroutine of who pulls and may be called concurrently.
type Registry func(ctx context.Context, ref string, report func(jsonmessage.JSONMessage)) error

// Serve makes a registry available. Without one nothing can be pulled, unless a Before hook adds the image.
func (e *Engine) Serve(r Registry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.registry = r
}

// Layer is a message about a layer, as daemons send them. Zero sizes say nothing.
func Layer(id, status string, current, total int64) jsonmessage.JSONMessage {
	return jsonmessage.JSONMessage{ID: id, Status: status, Progress: &jsonmessage.JSONProgress{Current: current, Total: total}}
}

// Pull implements the provider's engine.
func (e *Engine) Pull(ctx context.Context, ref string, report func(jsonmessage.JSONMessage)) error {
	if err := e.enter(ctx, OpPull); err != nil {
		return err
	}
	e.mu.Lock()
	registry := e.registry
	_, here := e.image(ref)
	e.mu.Unlock()
	switch {
	case here:
		report(jsonmessage.JSONMessage{Status: "Status: Image is up to date for " + ref})
		return nil
	case registry == nil:
		return notFound("the image %s is not on this daemon and cannot be pulled: its registry has no such image or tag", ref)
	}
	if err := registry(ctx, ref, report); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // who hangs up gets no image
		return failure(err, "the pull of %s was given up", ref)
	}
	e.AddImage(ref)
	return nil
}
