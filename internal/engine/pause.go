package engine

import "context"

// Freeze stops all processes of a container where they are. One that is frozen already, or does not run, is an error of no kind of its own.
func (e *Engine) Freeze(ctx context.Context, id string) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	return e.explain("pausing container "+short(id), e.api.ContainerPause(ctx, id))
}

// Thaw lets the processes of a frozen container go on. One that is not frozen is an error of no kind of its own.
func (e *Engine) Thaw(ctx context.Context, id string) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	return e.explain("unpausing container "+short(id), e.api.ContainerUnpause(ctx, id))
}
