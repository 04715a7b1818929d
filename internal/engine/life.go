package engine

import (
	"context"
	"errors"

	"github.com/docker/docker/api/types/container"
)

// Update changes limits of a container, running or not, and returns in the daemon's own words what it discarded. A field that is zero stays
// as it is.
func (e *Engine) Update(ctx context.Context, id string, limits container.Resources) (warnings []string, err error) {
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	done, err := e.api.ContainerUpdate(ctx, id, container.UpdateConfig{Resources: limits})
	return done.Warnings, e.explain("changing the limits of container "+short(id), err)
}

// Kill ends all processes of a container at once. The container stays, and can be started again; one that does not run is no error.
// [ErrNotFound] when there is none. It relies on SIGKILL being what stops a sandbox: see its StopSignal.
func (e *Engine) Kill(ctx context.Context, id string) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	atOnce := 0
	err := e.api.ContainerStop(ctx, id, container.StopOptions{Timeout: &atOnce})
	return e.explain("stopping container "+short(id), err)
}

// RemoveEnded removes a container that does not run, with its anonymous volumes; one that does is an [ErrConflict]. A container that is
// gone already is no error.
func (e *Engine) RemoveEnded(ctx context.Context, id string) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	err := e.explain("removing container "+short(id), e.api.ContainerRemove(ctx, id, container.RemoveOptions{RemoveVolumes: true}))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// HasVolume reports whether there is a volume of that name.
func (e *Engine) HasVolume(ctx context.Context, name string) (bool, error) {
	if err := e.ready(ctx); err != nil {
		return false, err
	}
	_, err := e.api.VolumeInspect(ctx, name)
	if err = e.explain("looking at volume "+name, err); errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
