//go:build linux

package enginetest

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

type volume struct {
	labels  map[string]string
	created time.Time
}

// CreateVolume implements the provider's engine.
func (e *Engine) CreateVolume(ctx context.Context, name string, labels map[string]string) (created bool, err error) {
	if err := e.enter(ctx, OpCreateVolume); err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, there := e.volumes[name]; there {
		return false, nil
	}
	e.volumes[name] = volume{labels, time.Now()}
	return true, nil
}

// RemoveVolume implements the provider's engine.
func (e *Engine) RemoveVolume(ctx context.Context, name string) error {
	if err := e.enter(ctx, OpRemoveVolume); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range e.containers {
		for _, m := range b.host.Mounts {
			if m.Source == name {
				return failure(engine.ErrConflict, "removing volume %s: container %s uses it", name, short(b.id))
			}
		}
	}
	delete(e.volumes, name)
	return os.RemoveAll(e.path("volumes", name))
}

// Volumes returns the names of all volumes, in order.
func (e *Engine) Volumes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	names := make([]string, 0, len(e.volumes))
	for name := range e.volumes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
