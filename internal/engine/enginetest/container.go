//go:build linux

package enginetest

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// box is a container. Its fields are guarded by the engine's mu.
type box struct {
	id, name string
	image    image
	config   *container.Config
	host     *container.HostConfig
	created  time.Time
	started  time.Time // the last time

	home    string // where its home is now; empty before the first start
	kept    string // volume that keeps the home; empty for none
	bare    bool   // it runs, and nothing in it: see [Engine.Programs]
	agent   *exec.Cmd
	ended   chan struct{} // closed when the agent was collected
	end     time.Time     // when that was; may be read once ended is closed
	paused  bool
	streams map[*stream]bool
}

// running reports whether the container's agent lives.
func (b *box) running() bool {
	if b.bare {
		return true
	}
	if b.agent == nil {
		return false
	}
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

// find looks a container up by id or name. e.mu is held.
func (e *Engine) find(id string) (*box, bool) {
	if b, ok := e.containers[id]; ok {
		return b, true
	}
	for _, b := range e.containers {
		if b.name == id {
			return b, true
		}
	}
	return nil, false
}

// Create implements the provider's engine.
func (e *Engine) Create(ctx context.Context, name string, cfg *container.Config, host *container.HostConfig) (id string, warnings []string, err error) {
	if err := e.enter(ctx, OpCreate); err != nil {
		return "", nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	i, ok := e.image(cfg.Image)
	if !ok {
		return "", nil, notFound("creating container %s: there is no image %s", name, cfg.Image)
	}
	b := &box{id: newID(), name: name, image: i, config: cfg, host: host, created: time.Now(), streams: map[*stream]bool{}}
	if b.name == "" {
		b.name = "unnamed-" + short(b.id)
	}
	if other, taken := e.find(b.name); taken {
		return "", nil, failure(engine.ErrConflict, "creating container %s: container %s has that name", name, short(other.id))
	}
	if err := e.sources(name, host); err != nil {
		return "", nil, err
	}
	const everybody = 0o755
	if err := os.Mkdir(e.path("c", short(b.id)), everybody); err != nil {
		return "", nil, err
	}
	e.containers[b.id] = b
	return b.id, e.warnings, nil
}

// AddForeign makes a container that this provider did not make, with labels that may be nil.
func (e *Engine) AddForeign(ctx context.Context, name, image string, labels map[string]string) error {
	_, _, err := e.Create(ctx, name, &container.Config{Image: image, Labels: labels}, &container.HostConfig{})
	return err
}

// Inspect implements the provider's engine.
func (e *Engine) Inspect(ctx context.Context, id string) (container.InspectResponse, error) {
	if err := e.enter(ctx, OpInspect); err != nil {
		return container.InspectResponse{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.find(id)
	if !ok {
		return container.InspectResponse{}, notFound("looking at container %s: there is none", id)
	}
	state := &container.State{Running: b.running(), Paused: b.paused, Status: b.status()}
	if !b.started.IsZero() {
		state.StartedAt = b.started.Format(time.RFC3339Nano)
	}
	if b.agent != nil && !b.running() {
		state.ExitCode, state.FinishedAt = b.agent.ProcessState.ExitCode(), b.end.Format(time.RFC3339Nano)
	}
	return container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{
			ID: b.id, Name: "/" + b.name, Image: b.image.id, Created: b.created.Format(time.RFC3339Nano), State: state, HostConfig: b.host,
		},
		Config: b.config,
	}, nil
}

func (b *box) status() container.ContainerState {
	switch {
	case b.paused:
		return container.StatePaused
	case b.running():
		return container.StateRunning
	case b.agent == nil:
		return container.StateCreated
	default:
		return container.StateExited
	}
}

// List implements the provider's engine.
func (e *Engine) List(ctx context.Context, labels ...string) ([]container.Summary, error) {
	if err := e.enter(ctx, OpList); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []container.Summary
	for _, id := range slices.Sorted(maps.Keys(e.containers)) {
		b := e.containers[id]
		if !slices.ContainsFunc(labels, func(l string) bool { return !hasLabel(b.config.Labels, l) }) {
			all = append(all, container.Summary{
				ID: b.id, Names: []string{"/" + b.name}, Image: b.config.Image, Labels: b.config.Labels, State: b.status(), Created: b.created.Unix(),
			})
		}
	}
	return all, nil
}

// hasLabel reports whether labels match "key" or "key=value".
func hasLabel(labels map[string]string, wanted string) bool {
	key, value, exact := strings.Cut(wanted, "=")
	got, ok := labels[key]
	return ok && (!exact || got == value)
}

// Containers returns the names of all containers, in order.
func (e *Engine) Containers() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for _, b := range e.containers {
		names = append(names, b.name)
	}
	slices.Sort(names)
	return names
}

// Remove implements the provider's engine.
func (e *Engine) Remove(ctx context.Context, id string) error {
	if err := e.enter(ctx, OpRemove); err != nil {
		return err
	}
	return e.Vanish(id)
}

// Vanish removes a container as somebody else would: with all its processes, at once. One that is gone already is no error.
func (e *Engine) Vanish(id string) error {
	if err := e.Stop(id); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.find(id)
	if !ok {
		return nil
	}
	delete(e.containers, b.id)
	if err := e.unmount(b); err != nil {
		return err
	}
	return os.RemoveAll(e.path("c", short(b.id)))
}

// mount moves the home of b to where its image wants it. e.mu is held.
func (e *Engine) mount(b *box) error {
	if b.home != "" {
		return nil // it was stopped, not removed
	}
	for _, other := range e.containers {
		if other.home == b.image.home {
			return failure(nil, "the home of this image is that of container %s: give each container an image of its own", short(other.id))
		}
	}
	for _, m := range b.host.Mounts {
		if m.Target == b.image.home && m.Type == mount.TypeVolume {
			b.kept = m.Source
		}
	}
	b.home = b.image.home
	if b.kept != "" {
		err := os.Rename(e.path("volumes", b.kept), b.home)
		if err == nil || !os.IsNotExist(err) {
			return err
		}
	}
	const private = 0o700
	if err := os.Mkdir(b.home, private); err != nil {
		return err
	}
	uid, gid := account()
	return os.Chown(b.home, uid, gid)
}

// unmount gives the home back to its volume, or removes it. e.mu is held.
func (e *Engine) unmount(b *box) error {
	home := b.home
	b.home = ""
	switch {
	case home == "":
		return nil
	case b.kept != "":
		return os.Rename(home, e.path("volumes", b.kept))
	default:
		return os.RemoveAll(home)
	}
}
