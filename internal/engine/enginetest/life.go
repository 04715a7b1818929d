//go:build linux

package enginetest

import (
	"context"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Update implements the provider's engine: it writes down what the limits are. A field that is zero stays as it is. Like a daemon it keeps
// a limit for memory below the one for memory and swap.
func (e *Engine) Update(ctx context.Context, id string, limits container.Resources) (warnings []string, err error) {
	if err := e.enter(ctx, OpUpdate); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.find(id)
	if !ok {
		return nil, notFound("changing the limits of container %s: there is none", id)
	}
	host := *b.host // who inspected it before keeps what he saw
	if limits.NanoCPUs != 0 {
		host.NanoCPUs = limits.NanoCPUs
	}
	if limits.MemorySwap != 0 {
		host.MemorySwap = limits.MemorySwap
	}
	if limits.Memory != 0 {
		swap := host.MemorySwap
		if swap == 0 {
			swap = 2 * b.host.Memory
		}
		if swap > 0 && limits.Memory > swap {
			return nil, failure(nil, "changing the limits of container %s: memory limit should be smaller than already set memoryswap limit", id)
		}
		host.Memory = limits.Memory
	}
	if limits.PidsLimit != nil {
		host.PidsLimit = limits.PidsLimit
	}
	b.host = &host
	return nil, nil
}

// Kill implements the provider's engine; see [Engine.Stop].
func (e *Engine) Kill(ctx context.Context, id string) error {
	if err := e.enter(ctx, OpKill); err != nil {
		return err
	}
	e.mu.Lock()
	_, ok := e.find(id)
	e.mu.Unlock()
	if !ok {
		return notFound("stopping container %s: there is none", id)
	}
	return e.Stop(id)
}

// RemoveEnded implements the provider's engine.
func (e *Engine) RemoveEnded(ctx context.Context, id string) error {
	if err := e.enter(ctx, OpRemove); err != nil {
		return err
	}
	e.mu.Lock()
	b, ok := e.find(id)
	running := ok && b.running()
	e.mu.Unlock()
	if running {
		return failure(engine.ErrConflict, "removing container %s: it is running", short(id))
	}
	return e.Vanish(id)
}

// HasVolume implements the provider's engine.
func (e *Engine) HasVolume(ctx context.Context, name string) (bool, error) {
	if err := e.enter(ctx, OpVolume); err != nil {
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, there := e.volumes[name]
	return there, nil
}
