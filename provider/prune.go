package provider

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// PruneOptions say what may go.
type PruneOptions struct {
	// Profile is whose sandboxes and homes: a Hermes profile, "" for those without one.
	Profile string
	// Idle is how long nobody must have used a sandbox; 0 takes every one that nobody uses now.
	Idle time.Duration
	// Homes lets those homes go that had no sandbox before, and were made longer ago than Idle.
	Homes bool
	// DryRun only looks.
	DryRun bool
}

// Kinds of what is removed.
const (
	KindSandbox = "sandbox"
	KindHome    = kindHome
	KindAgent   = kindAgent  // the volume with the agent of another version
	KindHelper  = kindHelper // a container that dockerbox looked into an image with
	KindImage   = "image"    // one that a newer build took the name from
)

// Leftover is something that was removed or, on a dry run, would be.
type Leftover struct {
	// Kind is one of the constants above, Name what people know it by, Why a phrase.
	Kind, Name, Why string
	// Bytes is what it took on the daemon's disk, negative where that is not known.
	Bytes int64
}

// Kept is a sandbox that is old enough and stays, with the reason as a phrase.
type Kept struct{ Name, Why string }

// Pruned is what came of a prune.
type Pruned struct {
	Removed []Leftover
	Kept    []Kept
}

// Prune removes what nobody uses and carries dockerbox's labels: sandboxes of a profile, running or not, which keep their home; volumes with
// agents of other versions; containers that a dockerbox that died left; and images that lost their name. A sandbox in which something runs, or
// to which somebody is connected, stays, and so does one that is paused. It may be called beside anything else, itself included. What
// cannot be removed does not keep the rest; then the error comes with what was done nevertheless.
func (p *Provider) Prune(ctx context.Context, o PruneOptions) (Pruned, error) {
	s := sweep{Provider: p, profile: o.Profile, dry: o.DryRun, measure: true, limit: func(record) (time.Duration, bool) { return o.Idle, true }}
	homes := []Leftover{}
	s.steps(ctx,
		func() {
			if o.Homes { // before any of them loses its sandbox
				homes = s.orphanedHomes(ctx, o.Idle)
			}
		},
		func() { s.sandboxes(ctx) },
		func() { s.helpers(ctx) },
		func() { s.homes(ctx, homes) },
		func() { s.agents(ctx) },
		func() { s.images(ctx, o.Idle) },
	)
	return s.done, joined(s.errs)
}

// sweep is one round through what carries dockerbox's labels. Only sandboxes uses more than one goroutine.
type sweep struct {
	*Provider
	profile string
	// limit is how long a sandbox must have been idle, by what it was made with; false for one that stays.
	limit func(r record) (time.Duration, bool)
	// endedLimit, when set, is limit for those that do not run. running, when set, says by its task whether one that runs may go at all.
	endedLimit time.Duration
	running    func(task string) bool
	dry        bool
	measure    bool // how large it is what goes

	done Pruned
	errs []error
	// sizes are those of the daemon's volumes, nil until asked for.
	sizes map[string]int64
}

// steps does one after another, and no more when the daemon does not answer: each would wait for it.
func (s *sweep) steps(ctx context.Context, all ...func()) {
	for _, step := range all {
		step()
		if ctx.Err() != nil {
			s.errs = append(s.errs, &contract.BackendError{
				Reason: "its caller gave up before everything was looked at", Hint: "run it again: what is left is looked at then", Err: context.Cause(ctx),
			})
			return
		}
		if slices.ContainsFunc(s.errs, func(err error) bool { return errors.Is(err, engine.ErrUnreachable) }) {
			return
		}
	}
}

// remove does it unless this is a dry run, and writes it down if it was done.
func (s *sweep) remove(l Leftover, do func() error) {
	if !s.dry {
		switch err := do(); {
		case isBusy(err): // somebody uses it after all
			return
		case err != nil:
			s.errs = append(s.errs, err)
			return
		}
		s.logf("removed %s %s: %s", l.Kind, l.Name, l.Why)
	}
	s.done.Removed = append(s.done.Removed, l)
}

// helpers removes containers that dockerbox looked into images with and could not remove.
func (s *sweep) helpers(ctx context.Context) {
	all, err := s.engine.List(ctx, labelKind+"="+kindHelper)
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	for _, c := range all {
		if len(c.Names) == 0 || s.now().Sub(time.Unix(c.Created, 0)) <= orphanAge {
			continue
		}
		l := Leftover{Kind: KindHelper, Name: strings.TrimPrefix(c.Names[0], "/"), Why: "left behind by a dockerbox that died"}
		s.remove(l, func() error { return s.engine.RemoveEnded(ctx, c.ID) })
	}
}

// orphanedHomes lists the homes of the profile that no container uses.
func (s *sweep) orphanedHomes(ctx context.Context, idle time.Duration) []Leftover {
	all, err := s.engine.ListVolumes(ctx, labelKind+"="+kindHome, labelProfile+"="+s.profile)
	if err != nil {
		s.errs = append(s.errs, err)
		return nil
	}
	var orphans []Leftover
	for _, v := range all {
		id := identity{v.Labels[labelProfile], v.Labels[labelName]}
		if v.Labels[labelKind] != kindHome || id.profile != s.profile || id.home() != v.Name || s.now().Sub(v.Created) <= idle {
			continue
		}
		users, err := s.engine.VolumeUsers(ctx, v.Name)
		switch {
		case err != nil:
			s.errs = append(s.errs, err)
		case len(users) == 0:
			orphans = append(orphans, Leftover{Kind: KindHome, Name: v.Name, Why: "the home of sandbox " + id.String() + ", which is gone", Bytes: s.volumeSize(ctx, v.Name)})
		}
	}
	return orphans
}

func (s *sweep) homes(ctx context.Context, orphans []Leftover) {
	for _, l := range orphans {
		s.remove(l, func() error { return s.engine.RemoveVolume(ctx, l.Name) })
	}
}

// agents removes volumes with agents of other versions that no container uses. One that was just made may be about to be used.
func (s *sweep) agents(ctx context.Context) {
	current, err := agentVolumes()
	if err != nil { // then it cannot be told which are this version's
		s.logf("volumes with agents stay: %v", err)
		return
	}
	all, err := s.engine.ListVolumes(ctx, labelKind+"="+kindAgent)
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	for _, v := range all {
		if v.Labels[labelKind] != kindAgent || !strings.HasPrefix(v.Name, agentVolumePrefix) || slices.Contains(current, v.Name) || s.now().Sub(v.Created) <= orphanAge {
			continue
		}
		users, err := s.engine.VolumeUsers(ctx, v.Name)
		if err != nil {
			s.errs = append(s.errs, err)
			continue
		}
		if len(users) > 0 {
			continue
		}
		l := Leftover{Kind: KindAgent, Name: v.Name, Why: "the agent of another version, which no sandbox uses", Bytes: s.volumeSize(ctx, v.Name)}
		s.remove(l, func() error { return s.engine.RemoveVolume(ctx, v.Name) })
	}
}

// images removes those that dockerbox image build made and that a later build took the name from.
func (s *sweep) images(ctx context.Context, idle time.Duration) {
	all, err := s.engine.NamelessImages(ctx, image.RecipeLabel)
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	for _, i := range all {
		// A build that goes on has none but young ones.
		if _, ours := i.Labels[image.RecipeLabel]; !ours || s.now().Sub(i.Created) <= max(idle, orphanAge) {
			continue
		}
		l := Leftover{Kind: KindImage, Name: i.ID, Why: "an image that a newer build took the name from", Bytes: i.Size}
		s.remove(l, func() error { return s.engine.DeleteImage(ctx, i.ID) })
	}
}

// volumeSize is how large a volume is, negative where nobody asks or the daemon does not tell. It measures all of them at once, for the first.
func (s *sweep) volumeSize(ctx context.Context, name string) int64 {
	if !s.measure {
		return -1
	}
	if s.sizes == nil {
		var err error
		if s.sizes, err = s.engine.VolumeSizes(ctx); err != nil {
			s.logf("%v", err)
			s.sizes = map[string]int64{}
		}
	}
	if n, ok := s.sizes[name]; ok {
		return n
	}
	return -1
}
