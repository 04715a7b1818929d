package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

var _ contract.Reaper = (*Provider)(nil)

// orphanAge is how long a sandbox must have ended before it counts as left behind: a session that is about to come back, or one that is
// being made, is younger.
const orphanAge = 10 * time.Minute

// Reap implements [contract.Reaper]: it removes the sandboxes of a profile that keep no home and ended, or were made and never started, more
// than 10 minutes ago. Persistent ones stay however long ago they ended: what people installed lives in the container's own layer, not in
// the home, and whoever comes back wants it. Running ones stay too; dockerbox does not know whose they are. One that cannot be removed
// does not keep the others.
func (p *Provider) Reap(ctx context.Context, profile string) ([]string, error) {
	all, err := p.engine.List(ctx, labelName, labelProfile+"="+profile)
	if err != nil {
		return nil, err
	}
	names := []string{}
	var errs []error
	for _, c := range all {
		r, err := readRecord(c.Labels)
		if err != nil || r.Persistent || c.Labels[labelProfile] != profile {
			continue // one that cannot be read may be persistent
		}
		found, err := p.engine.Inspect(ctx, c.ID)
		if err != nil {
			if !errors.Is(err, engine.ErrNotFound) {
				errs = append(errs, err)
			}
			continue
		}
		if since, ended := endedAt(found); !ended || p.now().Sub(since) <= orphanAge {
			continue
		}
		// Not by force: if somebody started it since, the daemon refuses.
		err = p.engine.RemoveEnded(ctx, c.ID)
		switch {
		case errors.Is(err, engine.ErrConflict):
			continue
		case err != nil:
			errs = append(errs, err)
			continue
		}
		name := identity{profile, c.Labels[labelName]}.String()
		p.logf("removed sandbox %s, which was left behind", name)
		names = append(names, name)
	}
	return names, joined(errs)
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
	first := &contract.BackendError{Reason: fmt.Sprintf("%d sandboxes could not be removed; the first: %v", len(errs), errs[0]), Err: errors.Join(errs...)}
	if b, ok := asBackend(errs[0]); ok {
		first.Hint = b.Hint
	}
	return first
}
