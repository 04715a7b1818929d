package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// adopt takes a container that exists: as it is, with its limits changed, or, for callers that adapt, by removing it for another one. With
// removed, config is what that one is to be and the first warning says why.
func (p *Provider) adopt(ctx context.Context, found container.InspectResponse, cfg contract.Config) (box, outcome, error) {
	b, err := readBox(found)
	if err != nil {
		return b, taken, err
	}
	switch {
	case found.State.Paused:
		return b, taken, paused(b.id)
	case going(found):
		return b, changed, nil
	}
	wanted := overlay(b.config, cfg)
	wants := b.wants(wanted)
	if info, err := p.describe(ctx); err != nil {
		return b, taken, err
	} else if may, _ := quotas(&info); !may { // then another limit of the disk is as much a wish as this one
		b.record.DiskMB, b.config.DiskMB = wants.record.DiskMB, wanted.DiskMB
	}
	d := compare(b.record, wants.record)
	if cfg.Adapt {
		// Who adapts is no command line, and nothing else goes by the names in the label.
		d.fixed = slices.DeleteFunc(d.fixed, func(s string) bool { return strings.HasPrefix(s, forwardEnv+" ") })
	}
	if len(d.fixed) > 0 {
		if !cfg.Adapt {
			return b, taken, refuse(b.id, d.fixed)
		}
		next, err := p.adapt(ctx, &b, found, d.fixed, wanted)
		if err != nil || next != taken {
			return b, next, err
		}
	}
	if len(d.live) > 0 {
		next, err := p.setLimits(ctx, &b, wants, d.live, cfg.Adapt)
		if err != nil || next != taken {
			return b, next, err
		}
	}
	b.started = !found.State.Running
	next, err := p.start(ctx, b.id, found)
	return b, next, err
}

// wants is the spec that wanted leads to, where the box itself gives what wanted leaves open.
func (b box) wants(wanted contract.Config) spec {
	user := wanted.User
	if user == "" {
		user = b.record.User // the image decided when it was made; a rebuilt image alone changes nothing
	}
	return newSpec(wanted, facts{user: user, home: b.record.Home, agentVolume: b.record.Agent})
}

func refuse(id identity, diffs []string) error {
	return &contract.BackendError{
		Reason: fmt.Sprintf("sandbox %q has other settings, which cannot be changed while it exists: %s", id, strings.Join(diffs, "; ")),
		Hint:   fmt.Sprintf("dockerbox up --recreate with the same flags makes %s anew: what runs in it ends, its home is kept; without these flags it is taken as it is", id),
	}
}

const keepsHome = "keeps its home"

// adapt removes a box that differs in diffs, if nothing lives in it. Else the box is to be used as it is, with a warning.
func (p *Provider) adapt(ctx context.Context, b *box, found container.InspectResponse, diffs []string, wanted contract.Config) (outcome, error) {
	list := strings.Join(diffs, "; ")
	if found.State.Running { // nothing lives in one that does not run
		jobs, err := environment.LookForJobs(ctx, b.container(p), p.version)
		if err != nil && !errors.Is(err, environment.ErrCannotTell) {
			if state, gone := p.ended(ctx, b.containerID); state != nil || gone {
				return changed, nil // that is why
			}
		}
		if who := living(jobs, err); who != "" && wanted.Hardened() && !b.config.Hardened() { // a warning would not keep anything in
			return taken, notHardened(*b, who)
		} else if who != "" {
			b.warnings = append(b.warnings, fmt.Sprintf("sandbox %q keeps its own settings, because %s: %s; when it is stopped (dockerbox stop %s) the next session makes it anew and %s",
				b.id, who, list, b.id, b.home()))
			return taken, nil
		}
	}
	if err := p.vet(ctx, wanted); err != nil {
		return taken, err
	}
	p.logf("sandbox %s is made anew: %s", b.id, list)
	if err := p.clear(ctx, b.containerID); err != nil {
		return taken, err
	}
	b.warnings = []string{fmt.Sprintf("sandbox %q was made anew, for nothing ran in it and these settings cannot be changed otherwise: %s; it %s", b.id, list, b.kept())}
	b.config = wanted
	return removed, nil
}

// home says what becomes of the home when the box is made anew, kept what became of it.
func (b box) home() string {
	if b.record.Home == "" {
		return "loses its home, which is in no volume"
	}
	return keepsHome
}

func (b box) kept() string {
	if b.record.Home == "" {
		return "lost its home, which was in no volume"
	}
	return "kept its home"
}

// living says who lives in a sandbox, "" when nobody does.
func living(jobs environment.Jobs, err error) string {
	switch {
	case err != nil:
		return "whether anything runs in it cannot be told (" + err.Error() + ")"
	case jobs.Count == 0:
		return ""
	case jobs.Count == 1 && jobs.Example != "":
		return fmt.Sprintf("a process runs in it (%s)", jobs.Example)
	case jobs.Example == "":
		return fmt.Sprintf("%d processes run in it", jobs.Count)
	}
	return fmt.Sprintf("%d processes run in it (%s is one)", jobs.Count, jobs.Example)
}

// setLimits changes the limits of a box that lives. Where it cannot be done, who adapts gets the old ones and a warning.
func (p *Provider) setLimits(ctx context.Context, b *box, wants spec, diffs []string, adapt bool) (outcome, error) {
	list := strings.Join(diffs, "; ")
	_, err := p.engine.Update(ctx, b.containerID, liveLimits(b.record, wants))
	switch {
	case err == nil:
		p.logf("sandbox %s: limits changed: %s", b.id, list)
		b.record.CPUs, b.record.MemoryMB, b.record.PIDs = wants.record.CPUs, wants.record.MemoryMB, wants.record.PIDs
		b.config = b.record.wanted(b.id)
		return taken, nil
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, engine.ErrConflict): // the latter: it is being removed
		return changed, nil
	}
	if adapt && !errors.Is(err, engine.ErrUnreachable) && ctx.Err() == nil {
		b.warnings = append(b.warnings, fmt.Sprintf("the limits of sandbox %q stay as they are, for the daemon could not change them (%s): %s", b.id, err, list))
		return taken, nil
	}
	return taken, err
}

// recreate removes a container of ours to make room for a new one, and returns what that is to be: the settings given, over those it had.
// The home volume stays.
func (p *Provider) recreate(ctx context.Context, found container.InspectResponse, cfg contract.Config) (contract.Config, error) {
	cfg.Recreate = false // once: what appears after this is what the caller wanted, or somebody else's
	b, err := readBox(found)
	switch {
	case errors.Is(err, errUnreadable): // then there is nothing to keep
	case err != nil:
		return cfg, err
	default:
		cfg = overlay(b.config, cfg)
	}
	if err := p.vet(ctx, cfg); err != nil {
		return cfg, err
	}
	p.logf("replacing sandbox %s", b.id)
	return cfg, p.clear(ctx, b.containerID)
}

// clear removes a container to make room. Somebody who removes it already does that too.
func (p *Provider) clear(ctx context.Context, id string) error {
	err := p.engine.Remove(ctx, id)
	if errors.Is(err, engine.ErrConflict) {
		return nil
	}
	return err
}

// vet looks, before a sandbox is removed, whether another could be made at all: a wrong name in the new settings must not cost the old one.
func (p *Provider) vet(ctx context.Context, cfg contract.Config) error {
	_, err := p.prepare(ctx, cfg.Image, cfg.User, volumeTargets(cfg.Mounts))
	if err != nil {
		return err
	}
	return p.tryMounts(ctx, cfg.Image, cfg.Mounts)
}
