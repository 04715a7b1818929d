package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/internal/agentbin"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// pruners is how many sandboxes are looked at side by side: each look waits for an agent.
const pruners = 8

// fate is what came of the look at one sandbox. A zero one stays, and there is nothing to say about it.
type fate struct {
	gone Leftover
	kept Kept
	err  error
}

// sandboxes removes those of the profile that are idle.
func (s *sweep) sandboxes(ctx context.Context) {
	all, err := s.engine.List(ctx, labelName, labelProfile+"="+s.profile)
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	all = slices.DeleteFunc(all, func(c container.Summary) bool { return c.Labels[labelProfile] != s.profile })
	slices.SortFunc(all, func(a, b container.Summary) int { return strings.Compare(a.Labels[labelName], b.Labels[labelName]) })
	fates := make([]fate, len(all))
	var wait sync.WaitGroup
	turn := make(chan struct{}, pruners)
	for i, c := range all {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			fates[i] = s.judge(ctx, c)
		})
	}
	wait.Wait()
	for _, v := range fates {
		switch {
		case v.err != nil:
			s.errs = append(s.errs, v.err)
		case v.kept.Name != "":
			s.done.Kept = append(s.done.Kept, v.kept)
		case v.gone.Name != "":
			s.done.Removed = append(s.done.Removed, v.gone)
		}
	}
}

// judge looks at one sandbox, and removes it if it may go.
func (s *sweep) judge(ctx context.Context, c container.Summary) fate {
	found, err := s.engine.Inspect(ctx, c.ID)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return fate{}
	case err != nil:
		return fate{err: err}
	}
	b, err := readBox(found)
	if err != nil {
		if errors.Is(err, errUnreadable) {
			return fate{kept: Kept{b.id.String(), fmt.Sprintf("it does not say how it was made; dockerbox rm -f --keep-home %s removes it", b.id)}}
		}
		return fate{err: err}
	}
	v := fate{gone: Leftover{Kind: KindSandbox, Name: b.id.String(), Bytes: -1}}
	limit, may := s.limit(b.record)
	switch {
	case found.State.Status == container.StateCreated: // nothing was ever done in it
		limit, may = orphanAge, true
		v.gone.Why = "made and never started"
	case found.State.Running:
		may = may && (s.running == nil || s.running(found.Config.Labels[labelTask]))
	case s.endedLimit > 0:
		limit = s.endedLimit
	}
	since, known := idleSince(found)
	if !may || !known || s.now().Sub(since) < limit {
		return fate{}
	}
	switch {
	case found.State.Paused:
		v.kept = Kept{b.id.String(), "it is paused"}
		return v
	case found.State.Running:
		return s.leave(ctx, b, limit, v)
	case v.gone.Why == "":
		v.gone.Why = "stopped for " + elapsed(s.now().Sub(since))
	}
	v.gone.Bytes = s.written(ctx, b.containerID)
	return s.drop(ctx, b, v)
}

// idleSince is when a container that does not run ended, or was made if it never ran, and when one that runs was started: nobody used it
// before. known is false where the daemon does not say, and for one that is on the way out.
func idleSince(found container.InspectResponse) (at time.Time, known bool) {
	if !found.State.Running {
		return endedAt(found)
	}
	at, err := time.Parse(time.RFC3339Nano, found.State.StartedAt)
	return at, err == nil && !at.IsZero()
}

// leave removes a running sandbox if its agent says that nobody uses it. The agent lets nobody in between its word and the stop; and the
// container is stopped before it is removed, so whoever comes after that starts it again and has it.
func (s *sweep) leave(ctx context.Context, b box, limit time.Duration, v fate) fate {
	ask := environment.Retire
	if s.dry {
		ask = func(ctx context.Context, c environment.Container, version string, idle time.Duration) (environment.Jobs, bool, error) {
			jobs, err := environment.LookForJobs(ctx, c, version)
			return jobs, err == nil && jobs.Told && jobs.Clients == 0 && jobs.Count <= jobs.Screen && jobs.Idle >= idle, err
		}
	}
	jobs, idle, err := ask(ctx, b.container(s.Provider), s.version, limit)
	if err != nil && !errors.Is(err, environment.ErrCannotTell) {
		if state, gone := s.ended(ctx, b.containerID); state != nil || gone { // somebody else ends it
			return fate{}
		}
	}
	switch {
	case ctx.Err() != nil:
		return fate{err: gaveUp(ctx, b.id)}
	case errors.Is(err, engine.ErrUnreachable):
		return fate{err: err}
	case !idle:
		v.kept.Why = stays(jobs, err, limit)
		if v.kept.Why != "" {
			v.kept.Name = b.id.String()
			return v
		}
		return fate{} // it was used since it was started
	}
	v.gone.Why = "not used for " + elapsed(jobs.Idle)
	if s.dry {
		v.gone.Bytes = s.written(ctx, b.containerID)
		return v
	}
	// The agent holds the door for seconds, and measuring may take longer: so it comes last, and whoever starts the sandbox meanwhile has it.
	err = s.engine.Kill(ctx, b.containerID)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return fate{err: err}
	}
	v.gone.Bytes = s.written(ctx, b.containerID)
	return s.drop(ctx, b, v)
}

// stays says why a sandbox that is not idle stays, "" where there is nothing to say: it was used a while ago.
func stays(jobs environment.Jobs, err error, limit time.Duration) string {
	jobs.Count -= jobs.Screen
	switch who := living(jobs, err); {
	case who != "":
		return who
	case !jobs.Told:
		return "its agent is of a version that does not tell when it was used"
	case jobs.Clients > 0 && jobs.Idle >= limit:
		return "somebody is connected to it"
	}
	return ""
}

// drop removes a sandbox that does not run, unless somebody started it since.
func (s *sweep) drop(ctx context.Context, b box, v fate) fate {
	if s.dry {
		return v
	}
	switch err := s.engine.RemoveEnded(ctx, b.containerID); {
	case isBusy(err):
		return fate{}
	case err != nil:
		return fate{err: err}
	}
	s.logf("removed sandbox %s: %s", b.id, v.gone.Why)
	return v
}

// written is the size of what a sandbox wrote outside its home and mounts, negative where nobody asks or the daemon does not tell.
func (s *sweep) written(ctx context.Context, id string) int64 {
	if !s.measure {
		return -1
	}
	n, err := s.engine.WrittenSize(ctx, id)
	if err != nil {
		s.logf("%v", err)
		return -1
	}
	return n
}

// isBusy reports whether something cannot be removed because somebody uses it, or is not there because somebody else has removed it.
func isBusy(err error) bool {
	return errors.Is(err, engine.ErrConflict) || errors.Is(err, engine.ErrNotFound)
}

// agentVolumes are the names of the volumes with this version's agents.
func agentVolumes() ([]string, error) {
	var names []string
	for _, arch := range agentbin.Architectures() {
		sum, err := agentbin.Digest(arch)
		if err != nil {
			return nil, err
		}
		names = append(names, agentVolume(sum))
	}
	return names, nil
}

// elapsed is a time for people: its two largest units.
func elapsed(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%d days", int(d/day))
	case d >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}
