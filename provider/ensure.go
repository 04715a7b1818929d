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
	record      record
	created     bool // by this call
	madeHome    bool // by this call
	warnings    []string
}

func (b box) info() contract.Info {
	return contract.Info{
		Name: b.id.String(), ContainerID: b.containerID, Image: b.record.Image, User: b.record.User,
		Created: b.created, ForwardEnv: b.record.ForwardEnv, Mounts: b.record.Mounts, Warnings: b.warnings,
	}
}

func (b box) container(p *Provider) environment.Container { return sandbox{p.engine, b.containerID} }

// contended bounds the loop in ensure. A name is taken from the moment another creation begins, but its container can be looked at
// only when that creation is done, which takes the daemon up to a few seconds under load; the wait between looks grows.
const (
	contended = 30 * time.Second
	firstWait = 10 * time.Millisecond
	longWait  = 500 * time.Millisecond
)

// ensure returns the running sandbox that cfg asks for: the living one of that name, or a new one. It never fails because somebody
// else was faster.
func (p *Provider) ensure(ctx context.Context, cfg contract.Config) (box, error) {
	id := identity{cfg.Profile, cfg.Name}
	deadline := time.Now().Add(contended)
	for wait := firstWait; time.Now().Before(deadline); wait = min(2*wait, longWait) {
		found, err := p.engine.Inspect(ctx, id.container())
		switch {
		case errors.Is(err, engine.ErrNotFound):
			b, err := p.create(ctx, cfg)
			if !errors.Is(err, engine.ErrConflict) {
				return b, err
			}
			select { // then adopt what the other one made
			case <-time.After(wait):
			case <-ctx.Done():
				return box{}, err
			}
			continue
		case err != nil:
			return box{}, err
		}
		if cfg.Recreate {
			cfg.Recreate = false // once: what appears after this is what the caller wanted, or somebody else's
			if err := p.replace(ctx, found); err != nil {
				return box{}, err
			}
			continue
		}
		b, again, err := p.adopt(ctx, found, cfg)
		if again {
			continue
		}
		return b, err
	}
	return box{}, &contract.BackendError{
		Reason: fmt.Sprintf("sandbox %q could not be taken for %s: others keep creating and removing it", id, contended),
		Hint:   "see what else uses this name: dockerbox ps",
	}
}

// replace removes a container of ours to make room for a new one. The home volume stays.
func (p *Provider) replace(ctx context.Context, found container.InspectResponse) error {
	b, err := readBox(found)
	if err != nil && !errors.Is(err, errUnreadable) {
		return err
	}
	p.logf("replacing sandbox %s", b.id)
	return p.engine.Remove(ctx, b.containerID)
}

// adopt takes a container that exists. again is true when it went away meanwhile and the caller should look anew.
func (p *Provider) adopt(ctx context.Context, found container.InspectResponse, cfg contract.Config) (b box, again bool, err error) {
	b, err = readBox(found)
	if err != nil {
		return b, false, err
	}
	user := cfg.User
	if user == "" {
		user = b.record.User // the image decided when it was made; a rebuilt image alone changes nothing
	}
	wants := newSpec(cfg, facts{user: user, home: b.record.Home, agentVolume: b.record.Agent}).record
	if diffs := drift(b.record, wants); len(diffs) > 0 {
		list := strings.Join(diffs, "; ")
		if !cfg.Adapt {
			return b, false, &contract.BackendError{
				Reason: fmt.Sprintf("sandbox %q exists with other settings: %s", b.id, list),
				Hint:   "dockerbox up --recreate with the same flags replaces it (its home is kept); exec and run use it as it is",
			}
		}
		// Not up --recreate: that would apply the command line's own defaults, not what this caller wants.
		b.warnings = append(b.warnings, fmt.Sprintf(
			"sandbox %q was made with other settings and is used as it is: %s; after dockerbox rm -f --keep-home %s the next use makes it anew, with its home", b.id, list, b.id))
	}
	again, err = p.start(ctx, b.id, found)
	return b, again, err
}

// start brings an existing container to life.
func (p *Provider) start(ctx context.Context, id identity, found container.InspectResponse) (again bool, err error) {
	switch {
	case found.State.Paused:
		return false, &contract.BackendError{
			Reason: fmt.Sprintf("sandbox %q is paused", id),
			Hint:   "docker unpause " + id.container() + " lets it go on",
		}
	case found.State.Running:
		return false, nil
	}
	err = p.engine.Start(ctx, found.ID)
	if errors.Is(err, engine.ErrNotFound) {
		return true, nil
	}
	return false, err
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
	return b, nil
}
