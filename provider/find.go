package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Sandbox describes a sandbox without connecting to it.
type Sandbox struct {
	// Name addresses it; Profile and Task are empty for those made on the command line.
	Name, Profile, Task string
	// ID is the engine's full container id, State its word for the state ("running", "exited", "paused" …).
	ID, Image, User, State string
	Persistent             bool
	// Security is "standard" or "hardened", "" where the label that says it cannot be read.
	Security string
	Created  time.Time
}

// Address is how the command line names it.
func (s Sandbox) Address() string { return identity{s.Profile, s.Name}.String() }

// List returns all sandboxes of this daemon, by address.
func (p *Provider) List(ctx context.Context) ([]Sandbox, error) {
	all, err := p.engine.List(ctx, labelName)
	if err != nil {
		return nil, err
	}
	boxes := make([]Sandbox, 0, len(all))
	for _, c := range all {
		s := Sandbox{
			Name: c.Labels[labelName], Profile: c.Labels[labelProfile], Task: c.Labels[labelTask],
			ID: c.ID, State: c.State, Created: time.Unix(c.Created, 0),
		}
		if r, err := readRecord(c.Labels); err == nil {
			s.Image, s.User, s.Persistent, s.Security = r.Image, r.User, r.Persistent, r.security()
		} else {
			p.logf("container %s: its label %s cannot be read: %v", c.ID, labelConfig, err)
			s.Image = c.Image
		}
		boxes = append(boxes, s)
	}
	slices.SortFunc(boxes, func(a, b Sandbox) int { return strings.Compare(a.Address(), b.Address()) })
	return boxes, nil
}

// Attach connects to a living sandbox by its address, starting it when it is stopped. It creates nothing.
func (p *Provider) Attach(ctx context.Context, address string) (contract.Environment, error) {
	b, err := p.wake(ctx, address)
	if err != nil {
		return nil, err
	}
	return p.connect(ctx, b, "")
}

// wake finds a sandbox by its address and starts it when it is stopped. It connects to nothing.
func (p *Provider) wake(ctx context.Context, address string) (box, error) {
	found, b, err := p.find(ctx, address)
	if err != nil {
		return b, err
	}
	next, err := p.start(ctx, b.id, found)
	if err != nil {
		return b, err
	}
	if next != taken {
		return b, p.missing(ctx, b.id)
	}
	b.started = !found.State.Running
	return b, nil
}

// wanted is the configuration that would make the same sandbox again. Who commands run as is the image's to say unless somebody chose.
func (r record) wanted(id identity) contract.Config {
	user := ""
	if r.UserChosen {
		user = r.User
	}
	return contract.Config{
		Name: id.name, Profile: id.profile, Image: r.Image, User: user, CPUs: r.CPUs, MemoryMB: r.MemoryMB,
		PIDs: r.PIDs, DiskMB: r.DiskMB, ShmBytes: r.ShmBytes, Network: r.Network, Env: r.Env, Persistent: r.Persistent,
		ForwardEnv: r.ForwardEnv, Mounts: r.Mounts, ExtraArgs: r.ExtraArgs, Security: r.Security,
	}
}

// RemoveOptions say what goes.
type RemoveOptions struct {
	// Force removes a sandbox that is running, and makes one that is not there no error.
	Force bool
	// KeepHome leaves the volume with the home for the next sandbox of that name.
	KeepHome bool
}

// Remove removes a sandbox and, unless it is to be kept, its home.
func (p *Provider) Remove(ctx context.Context, address string, o RemoveOptions) error {
	found, b, err := p.find(ctx, address)
	if errors.Is(err, engine.ErrNotFound) && o.Force {
		if o.KeepHome {
			return nil
		}
		// A home kept by an earlier rm goes now.
		return p.removeHome(ctx, parseIdentity(address))
	}
	if errors.Is(err, engine.ErrNotFound) {
		return unmade(err)
	}
	if matters := !o.Force || !errors.Is(err, errUnreadable); err != nil && matters { // what it was made with does not
		return err
	}
	if found.State.Running && !o.Force {
		return &contract.BackendError{
			Reason: fmt.Sprintf("sandbox %q is running", b.id),
			Hint:   fmt.Sprintf("dockerbox rm -f %s ends and removes it", b.id),
		}
	}
	if !o.KeepHome {
		if err := p.homeIsFree(ctx, b.id); err != nil { // before anything is gone
			return err
		}
	}
	if err := p.engine.Remove(ctx, b.containerID); err != nil {
		return err
	}
	if o.KeepHome {
		return nil
	}
	return p.removeHome(ctx, b.id)
}

// find looks a sandbox up by its address. The error is an [engine.ErrNotFound] when there is none.
func (p *Provider) find(ctx context.Context, address string) (container.InspectResponse, box, error) {
	id := parseIdentity(address)
	if !contract.ValidName(id.name) || strings.Contains(address, "/") && !contract.ValidName(id.profile) {
		problem := fmt.Sprintf("%.60q is no name that dockerbox ps could show", address)
		return container.InspectResponse{}, box{}, contract.Faults{{Key: "name", Problem: problem}}
	}
	found, err := p.engine.Inspect(ctx, id.container())
	if errors.Is(err, engine.ErrNotFound) {
		return found, box{}, p.missing(ctx, id)
	}
	if err != nil {
		return found, box{}, err
	}
	b, err := readBox(found)
	return found, b, err
}

// missing says that there is no such sandbox, and how to get it back. Its home may have outlived it.
func (p *Provider) missing(ctx context.Context, id identity) error {
	e := &contract.BackendError{Reason: fmt.Sprintf("there is no sandbox %q", id), Err: engine.ErrNotFound}
	kept, err := p.engine.HasVolume(ctx, id.home())
	if err != nil { // then it cannot be told, and the sentence is true nevertheless
		p.logf("sandbox %s: %v", id, err)
	}
	makes := fmt.Sprintf("dockerbox up %s makes it", id)
	switch {
	case kept && id.profile != "":
		e.Reason, e.Hint = e.Reason+keptHome, fmt.Sprintf("Hermes makes it anew with that home; dockerbox rm -f %s removes the home too", id)
	case kept:
		e.Reason, e.Hint = e.Reason+keptHome, fmt.Sprintf("%s anew with that home; dockerbox rm -f %s removes the home too", makes, id)
	case id.profile != "":
		e.Hint = hintList + "; Hermes makes those with a profile in front"
	default:
		e.Hint = makes + "; " + hintList
	}
	return e
}

const keptHome = ", but its home is kept"

// unmade is missing for those who do not want to make it.
func unmade(err error) error {
	if b, ok := asBackend(err); ok && !strings.Contains(b.Reason, keptHome) {
		return &contract.BackendError{Reason: b.Reason, Hint: hintList, Err: err}
	}
	return err
}

const hintList = "dockerbox ps lists those there are"
