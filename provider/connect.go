package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// openTries is how often a sandbox may be taken from under a caller before he is told.
const openTries = 3

// open makes or takes the sandbox that cfg asks for and connects to it. One that somebody else removes or stops in between is made or
// started again.
func (p *Provider) open(ctx context.Context, cfg contract.Config, cwd string) (contract.Environment, error) {
	cfg = offline(cfg)
	for try := 1; ; try++ {
		b, err := p.ensure(ctx, cfg)
		if err != nil {
			return nil, err
		}
		if err := p.warn(ctx, &b); err != nil {
			if b.created {
				p.discard(ctx, b)
			}
			return nil, err
		}
		env, err := p.connect(ctx, b, cwd)
		if err == nil || !errors.Is(err, errTaken) || try == openTries {
			return env, err
		}
		cfg.Recreate = false // that was done
	}
}

// connect opens the environment of a running box. A box that was made for this and cannot be connected to is removed again.
func (p *Provider) connect(ctx context.Context, b box, cwd string) (contract.Environment, error) {
	// A revival is no request to change anything: somebody may have changed the sandbox since.
	revived := b.config
	revived.Given, revived.Recreate, revived.Adapt = []string{}, false, false
	return p.connectOr(ctx, b, cwd, func(ctx context.Context) (box, error) {
		p.logf("sandbox %s is not running any more: starting it again", b.id)
		return p.ensure(ctx, revived)
	})
}

// connectOr is connect with a way to go on when the box is not running any more.
func (p *Provider) connectOr(ctx context.Context, b box, cwd string, revive func(context.Context) (box, error)) (contract.Environment, error) {
	env, err := environment.Connect(ctx, environment.Options{
		Container: b.container(p), Info: b.info(), Account: b.record.User, Home: b.record.Home, Cwd: cwd, Version: p.version,
		Prefix: func(id string) environment.Prefix { return p.prefix(id, b.id) },
		Revive: func(ctx context.Context) (environment.Container, contract.Info, error) {
			again, err := revive(ctx)
			return again.container(p), again.info(), err
		},
		Release: func(ctx context.Context, remove bool) error { return p.release(ctx, b, remove) },
	})
	if err != nil {
		err = p.because(ctx, b, err)
		if b.created {
			p.discard(ctx, b)
		}
		return nil, err
	}
	return env, nil
}

// errTaken is the cause of the error for a box that somebody else removed or stopped while it was connected to.
var errTaken = errors.New("taken away")

// because replaces err, which a box gave when it was connected to, if its container is what ended: then the stream's own words say nothing.
func (p *Provider) because(ctx context.Context, b box, err error) error {
	if e, ok := asBackend(err); ok && e.Err == nil {
		return err // the agent's own word
	}
	found, gone := p.ended(ctx, b.containerID)
	switch {
	case gone, found != nil && !b.created && !b.started:
		return &contract.BackendError{
			Reason: fmt.Sprintf("sandbox %q was removed or stopped by somebody else before it could be connected to", b.id),
			Hint:   "do it again once they are done; dockerbox ps shows whether it is there", Err: errors.Join(errTaken, err),
		}
	case found != nil:
		return p.stillborn(ctx, b, found.ExitCode, err)
	}
	return err
}

// noticeLimit is how long the daemon may take to notice that a container has ended; the end of its streams comes first. There is nothing to
// wait for but time.
const (
	noticeLimit = time.Second
	noticePause = 50 * time.Millisecond
)

// ended looks whether a container that cannot be reached has ended: then state is how, or gone is set. Neither for one that goes on, and
// when the daemon does not tell.
func (p *Provider) ended(ctx context.Context, id string) (state *container.State, gone bool) {
	for deadline := time.Now().Add(noticeLimit); ; time.Sleep(noticePause) {
		found, err := p.engine.Inspect(ctx, id)
		switch {
		case errors.Is(err, engine.ErrNotFound):
			return nil, true
		case err != nil || found.ContainerJSONBase == nil || found.State == nil:
			return nil, false
		case !found.State.Running:
			return found.State, found.State.Status == container.StateRemoving
		case time.Now().After(deadline) || ctx.Err() != nil:
			return nil, false
		}
	}
}

// release is what an environment's Cleanup does to the container.
func (p *Provider) release(ctx context.Context, b box, remove bool) error {
	if b.record.Persistent && !remove {
		return nil
	}
	return p.engine.Remove(ctx, b.id.container())
}

// discardLimit bounds the clean-up after a failure; the caller's own context may be over by then.
const discardLimit = 20 * time.Second

// discard removes what this process made for a sandbox that did not come to life.
func (p *Provider) discard(ctx context.Context, b box) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardLimit)
	defer cancel()
	if b.containerID != "" {
		if err := p.engine.Remove(ctx, b.containerID); err != nil {
			p.logf("after a failed creation: %v", err)
		}
	}
	volumes := b.madeVolumes
	if b.madeHome {
		volumes = append(slices.Clone(volumes), b.id.home())
	}
	for _, name := range volumes {
		if err := p.engine.RemoveVolume(ctx, name); err != nil {
			p.logf("after a failed creation: %v", err)
		}
	}
}
