//go:build linux

package enginetest

import (
	"context"
)

// Freeze implements the provider's engine; see [Engine.Pause].
func (e *Engine) Freeze(ctx context.Context, id string) error {
	if err := e.enter(ctx, OpFreeze); err != nil {
		return err
	}
	return e.freeze(id, true)
}

// Thaw implements the provider's engine; see [Engine.Pause].
func (e *Engine) Thaw(ctx context.Context, id string) error {
	if err := e.enter(ctx, OpThaw); err != nil {
		return err
	}
	return e.freeze(id, false)
}

// freeze refuses, as a daemon does, what is in that state already.
func (e *Engine) freeze(id string, paused bool) error {
	e.mu.Lock()
	b, ok := e.find(id)
	already := ok && b.paused == paused
	e.mu.Unlock()
	switch {
	case !ok:
		return notFound("pausing container %s: there is none", id)
	case already:
		return failure(nil, "container %s is paused already, or not paused", id)
	}
	return e.Pause(id, paused)
}
