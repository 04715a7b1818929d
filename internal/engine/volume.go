package engine

import (
	"context"
	"errors"

	"github.com/docker/docker/api/types/volume"
)

// CreateVolume makes a named volume, or takes the one of that name. created tells which.
func (e *Engine) CreateVolume(ctx context.Context, name string, labels map[string]string) (created bool, err error) {
	if err := e.ready(ctx); err != nil {
		return false, err
	}
	if _, err := e.api.VolumeInspect(ctx, name); err == nil {
		return false, nil
	}
	_, err = e.api.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: labels})
	return err == nil, e.explain("creating volume "+name, err)
}

// RemoveVolume removes a named volume. One that is gone already is no error; one in use is an [ErrConflict].
func (e *Engine) RemoveVolume(ctx context.Context, name string) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	err := e.explain("removing volume "+name, e.api.VolumeRemove(ctx, name, false))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
