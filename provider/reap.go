package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

var _ contract.Reaper = (*Provider)(nil)

// orphanAge is how long a sandbox must have ended before it counts as left behind: a session that is about to come back, or one that is
// being made, is younger. orphanIdle is for one that runs: a host whose connection broke may come back later.
const (
	orphanAge  = 10 * time.Minute
	orphanIdle = time.Hour
)

// Reap implements [contract.Reaper]: it removes what a Hermes profile's processes left behind when they died. These are sandboxes that keep no
// home and ended more than 10 minutes ago; those that keep none and run, made for one session, with nobody connected and nothing running
// or used for an hour; those that were made and never started; containers in which dockerbox looked into images; and volumes with agents of
// other versions. Persistent sandboxes stay however long nobody used them: what people installed lives in the container's own layer, not in
// the home, and whoever comes back wants it. What cannot be removed does not keep the rest. The names are those of sandboxes.
func (p *Provider) Reap(ctx context.Context, profile string) ([]string, error) {
	s := sweep{Provider: p, profile: profile, endedLimit: orphanAge, limit: func(r record) (time.Duration, bool) { return p.orphanIdle, !r.Persistent }}
	s.running = func(task string) bool { return task != "" } // the shared one, and those of the command line, are nobody's session's
	s.steps(ctx, func() { s.sandboxes(ctx) }, func() { s.helpers(ctx) }, func() { s.agents(ctx) })
	names := []string{}
	for _, l := range s.done.Removed {
		if l.Kind == KindSandbox {
			names = append(names, l.Name)
		}
	}
	return names, joined(s.errs)
}

// endedAt is when a container ended, or was made if it never ran. ended is false for one that runs, and where the daemon does not say.
func endedAt(found container.InspectResponse) (at time.Time, ended bool) {
	text := found.State.FinishedAt
	switch found.State.Status {
	case container.StateExited, container.StateDead:
	case container.StateCreated:
		text = found.Created
	default:
		return at, false
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil && !at.IsZero()
}

// joined makes one failure of several: the first, and how many there were.
func joined(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	first := &contract.BackendError{Reason: fmt.Sprintf("%d objects could not be looked at or removed; the first: %v", len(errs), errs[0]), Err: errors.Join(errs...)}
	if b, ok := asBackend(errs[0]); ok {
		first.Hint = b.Hint
	}
	return first
}
