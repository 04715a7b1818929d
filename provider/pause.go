package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Pause stops all processes of a running sandbox where they are: they keep their memory, and get no processor. One that is paused is no error.
func (p *Provider) Pause(ctx context.Context, address string) error {
	b, err := p.freeze(ctx, address, p.engine.Freeze, func(s *container.State) bool { return s.Paused })
	if errors.Is(err, errStandsStill) {
		return &contract.BackendError{
			Reason: fmt.Sprintf("sandbox %q does not run, so there is nothing to pause", b.id),
			Hint:   fmt.Sprintf("dockerbox start %s starts it", b.id), Err: err,
		}
	}
	return err
}

// Unpause lets a sandbox go on that is paused. One that runs is no error, nor is one that is stopped: it is not paused either.
func (p *Provider) Unpause(ctx context.Context, address string) error {
	_, err := p.freeze(ctx, address, p.engine.Thaw, func(s *container.State) bool { return !s.Paused })
	return err
}

// errStandsStill is the cause of freeze's error for a sandbox that does not run.
var errStandsStill = errors.New("not running")

// freeze does something to a sandbox unless it is done. What the daemon refuses may be done by then, too.
func (p *Provider) freeze(ctx context.Context, address string, do func(ctx context.Context, id string) error, done func(*container.State) bool) (box, error) {
	found, b, err := p.find(ctx, address)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return b, unmade(err)
	case err != nil && !errors.Is(err, errUnreadable): // how it was made does not matter here
		return b, err
	case done(found.State):
		return b, nil
	case !found.State.Running:
		return b, errStandsStill
	}
	err = do(ctx, b.containerID)
	if err == nil || errors.Is(err, engine.ErrUnreachable) {
		return b, err
	}
	switch now, failure := p.engine.Inspect(ctx, b.containerID); {
	case errors.Is(failure, engine.ErrNotFound):
		return b, unmade(p.missing(ctx, b.id))
	case failure == nil && done(now.State):
		return b, nil
	case failure == nil && !now.State.Running:
		return b, errStandsStill
	}
	return b, err
}
