package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// box is a running sandbox as the provider knows it.
type box struct {
	id          identity
	containerID string
	record      record          // with the limits it has now
	config      contract.Config // what would make it again
	created     bool            // by this call
	madeHome    bool            // by this call
	started     bool            // by this call, where it had stopped
	madeVolumes []string        // by this call, without the home
	said        []string        // by the daemon, when it made the container
	warnings    []string
}

func (b box) info() contract.Info {
	return contract.Info{
		Name: b.id.String(), ContainerID: b.containerID, Image: b.record.Image, User: b.record.User,
		Created: b.created, ForwardEnv: b.record.ForwardEnv, Mounts: b.record.Mounts, Warnings: b.warnings,
	}
}

func (b box) container(p *Provider) environment.Container {
	return p.reach(b.containerID, b.record.Security)
}

// reach is the container of that id, whose agent is to be found as its security says.
func (p *Provider) reach(id, security string) environment.Container {
	s := sandbox{p.engine, id}
	if security == contract.SecurityHardened {
		return hardenedSandbox{s}
	}
	return s
}

// contended bounds the loop in ensure. A name is taken from the moment another creation begins, but its container can be looked at
// only when that creation is done, which takes the daemon up to a few seconds under load; the wait between looks grows.
const (
	contended = 30 * time.Second
	firstWait = 10 * time.Millisecond
	longWait  = 500 * time.Millisecond
)

// outcome is what came of a look at a container that exists.
type outcome int

const (
	taken   outcome = iota // it is the one
	changed                // it went away, or is going: look again
	removed                // it was removed, for another one to be made
)

// ensure returns the running sandbox that cfg asks for: the living one of that name, or a new one. It never fails because somebody
// else was faster.
func (p *Provider) ensure(ctx context.Context, cfg contract.Config) (box, error) {
	id := identity{cfg.Profile, cfg.Name}
	deadline := time.Now().Add(contended)
	var why string // a living one had to go
	for wait := firstWait; time.Now().Before(deadline); wait = min(2*wait, longWait) {
		found, err := p.engine.Inspect(ctx, id.container())
		switch {
		case errors.Is(err, engine.ErrNotFound):
			b, err := p.create(ctx, cfg)
			b.config = cfg
			if err == nil && why != "" {
				b.warnings = append([]string{why}, b.warnings...)
			}
			faster := errors.Is(err, engine.ErrConflict)
			removed := b.created && errors.Is(err, engine.ErrNotFound) // before it was started
			if !faster && !removed {
				return b, err
			}
		case err != nil:
			return box{}, err
		case cfg.Recreate:
			if cfg, err = p.recreate(ctx, found, cfg); err != nil {
				return box{}, err
			}
			continue
		default:
			b, next, err := p.adopt(ctx, found, cfg)
			if err != nil || next == taken {
				return b, err
			}
			if next == removed {
				cfg, why = b.config, b.warnings[0]
				continue
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return box{}, gaveUp(ctx, id)
		}
	}
	return box{}, &contract.BackendError{
		Reason: fmt.Sprintf("sandbox %q could not be taken for %s: others keep creating and removing it", id, contended),
		Hint:   "see what else uses this name: dockerbox ps",
	}
}

func gaveUp(ctx context.Context, id identity) error {
	return &contract.BackendError{
		Reason: fmt.Sprintf("sandbox %q was not ready when its caller gave up", id),
		Hint:   "try again; dockerbox ps shows whether it is there", Err: context.Cause(ctx),
	}
}

// start brings an existing container to life.
func (p *Provider) start(ctx context.Context, id identity, found container.InspectResponse) (outcome, error) {
	switch {
	case found.State.Paused:
		return taken, paused(id)
	case found.State.Running:
		return taken, nil
	case going(found):
		return changed, nil
	}
	err := p.engine.Start(ctx, found.ID)
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrConflict) { // the latter: it is being removed
		return changed, nil
	}
	return taken, err
}

// going reports whether a container is being removed.
func going(found container.InspectResponse) bool {
	return found.State.Status == container.StateRemoving || found.State.Dead
}

func paused(id identity) error {
	return &contract.BackendError{
		Reason: fmt.Sprintf("sandbox %q is paused", id),
		Hint:   fmt.Sprintf("dockerbox unpause %s lets it go on", id),
	}
}

// errUnreadable is the cause of readBox's error for a container that is dockerbox's, but does not say how it was made.
var errUnreadable = errors.New("unreadable label")

// readBox reads what the labels of a container say. With [errUnreadable] the id and the container are right nevertheless.
func readBox(found container.InspectResponse) (box, error) {
	name := strings.TrimPrefix(found.Name, "/")
	labels := map[string]string{}
	if found.Config != nil {
		labels = found.Config.Labels
	}
	if _, ours := labels[labelName]; !ours {
		return box{}, &contract.BackendError{
			Reason: fmt.Sprintf("the container name %s is taken by a container that is not dockerbox's", name),
			Hint:   "rename or remove that container, or choose another sandbox name",
		}
	}
	b := box{id: identity{labels[labelProfile], labels[labelName]}, containerID: found.ID}
	var err error
	if b.record, err = readRecord(labels); err != nil {
		return b, &contract.BackendError{
			Reason: fmt.Sprintf("the label %s of container %s cannot be read", labelConfig, name),
			Hint:   fmt.Sprintf("another version made it: dockerbox rm -f --keep-home %s removes it, and the next up makes it anew with its home", b.id), Err: errors.Join(errUnreadable, err),
		}
	}
	b.record.setLimits(found.HostConfig)
	b.config = b.record.wanted(b.id)
	return b, nil
}
