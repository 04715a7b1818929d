package provider

import (
	"context"
	"errors"
	"time"

	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Stop ends a sandbox: its processes are asked to end, by TERM, and after grace, or when all have, the container is stopped. Its home and
// its own files stay; its shell state does not. One that is paused is stopped at once. One that does not run is no error.
func (p *Provider) Stop(ctx context.Context, address string, grace time.Duration) error {
	found, b, err := p.find(ctx, address)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return unmade(err)
	case err != nil && !errors.Is(err, errUnreadable): // how it was made does not matter here
		return err
	case !found.State.Running:
		return nil
	}
	if grace > 0 && !found.State.Paused { // who is paused cannot be asked
		left, err := environment.AskToEnd(ctx, b.container(p), p.version, grace)
		switch {
		case ctx.Err() != nil:
			return gaveUp(ctx, b.id)
		case err != nil: // then nobody can ask them
			p.logf("sandbox %s is stopped without asking its processes: %v", b.id, err)
		case left.Count > 0:
			p.logf("sandbox %s: %d processes did not end within %s", b.id, left.Count, grace)
		}
	}
	err = p.engine.Kill(ctx, b.containerID)
	if errors.Is(err, engine.ErrNotFound) { // somebody removed it meanwhile
		return nil
	}
	return err
}

// Start starts a sandbox that was stopped, and returns when commands can run in it. One that runs is no error.
func (p *Provider) Start(ctx context.Context, address string) error {
	b, err := p.wake(ctx, address)
	if err != nil {
		return err
	}
	if _, err := environment.LookForJobs(ctx, b.container(p), p.version); err != nil && !errors.Is(err, environment.ErrCannotTell) {
		return p.because(ctx, b, err)
	}
	return nil
}

// Restart stops a sandbox as Stop does and starts it again.
func (p *Provider) Restart(ctx context.Context, address string, grace time.Duration) error {
	if err := p.Stop(ctx, address, grace); err != nil {
		return err
	}
	return p.Start(ctx, address)
}
