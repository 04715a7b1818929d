package provider

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Usage is what a running sandbox uses. What the daemon does not tell is zero, and no limit is zero too.
type Usage struct {
	Sandbox
	// Cores is how many processors it kept busy since the look before, CPULimit how many it may.
	Cores, CPULimit float64
	// Memory is in bytes, without what the kernel can take back, as docker counts.
	Memory, MemoryLimit uint64
	PIDs, PIDsLimit     uint64
	// Received and Sent are bytes of network traffic, Read and Written bytes to and from disks, since it was started.
	Received, Sent, Read, Written uint64
	Up                            time.Duration
	// More is set where it was asked for.
	More *More
}

// More takes longer to find out.
type More struct {
	// Disk is what the sandbox wrote outside its home and mounts, in bytes, negative when the daemon does not tell.
	Disk int64
	// Idle is how long nobody has used it, nil when its agent cannot be asked, as that of a paused one.
	Idle *time.Duration
}

// meters is how many sandboxes are measured side by side.
const meters = 32

// Meter measures sandboxes. It remembers the look before, for what is used over a time. Not safe for concurrent use.
type Meter struct {
	p      *Provider
	names  []string
	more   bool
	before map[string]reading
}

// reading is a look at one container.
type reading struct {
	at    time.Time
	nanos uint64
}

// Meter makes a meter for sandboxes by their addresses, or without any for all that run. more asks for [Usage.More] too.
func (p *Provider) Meter(more bool, addresses ...string) *Meter {
	return &Meter{p: p, names: addresses, more: more, before: map[string]reading{}}
}

// shortLook is how far the two looks of a first reading are apart: scheduling comes in periods of 100 ms.
const shortLook = 500 * time.Millisecond

// Read measures. The first reading takes half a second, because use of processors is over a time. A named sandbox that does not exist is an error;
// one that does not run is left out.
func (m *Meter) Read(ctx context.Context) ([]Usage, error) {
	boxes, err := m.boxes(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(boxes, func(s Sandbox) bool { _, known := m.before[s.ID]; return !known }) {
		if _, err := m.look(ctx, boxes, false); err != nil {
			return nil, err
		}
		select {
		case <-time.After(shortLook):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return m.look(ctx, boxes, m.more)
}

// boxes are the running sandboxes that are asked for.
func (m *Meter) boxes(ctx context.Context) ([]Sandbox, error) {
	all, err := m.p.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range m.names {
		if !slices.ContainsFunc(all, func(s Sandbox) bool { return s.Address() == name }) {
			_, _, err := m.p.find(ctx, name) // its words for it
			if err != nil {
				return nil, unmade(err)
			}
		}
	}
	return slices.DeleteFunc(all, func(s Sandbox) bool {
		alive := s.State == container.StateRunning || s.State == container.StatePaused
		return !alive || len(m.names) > 0 && !slices.Contains(m.names, s.Address())
	}), nil
}

// look measures boxes side by side. Those that ended meanwhile are left out.
func (m *Meter) look(ctx context.Context, boxes []Sandbox, more bool) ([]Usage, error) {
	found := make([]*Usage, len(boxes))
	next := make([]reading, len(boxes))
	errs := make([]error, len(boxes))
	var wait sync.WaitGroup
	turn := make(chan struct{}, meters)
	for i, s := range boxes {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			found[i], next[i], errs[i] = m.measure(ctx, s, more)
		})
	}
	wait.Wait()
	after := map[string]reading{}
	all := []Usage{}
	for i, u := range found {
		if u != nil {
			after[u.ID] = next[i]
			all = append(all, *u)
		}
	}
	m.before = after
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// measure looks at one sandbox; nil for one that does not run any more.
func (m *Meter) measure(ctx context.Context, s Sandbox, more bool) (*Usage, reading, error) {
	now, err := m.p.engine.Stats(ctx, s.ID)
	if err == nil && now.Read.IsZero() {
		return nil, reading{}, nil
	}
	var c container.InspectResponse
	if err == nil {
		c, err = m.p.engine.Inspect(ctx, s.ID)
	}
	switch {
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, engine.ErrConflict):
		return nil, reading{}, nil
	case err != nil:
		return nil, reading{}, err
	}
	this := reading{now.Read, now.CPUStats.CPUUsage.TotalUsage}
	u := usageOf(now, m.before[s.ID])
	u.Sandbox = s
	if c.HostConfig != nil {
		u.CPULimit, u.MemoryLimit = cores(c.HostConfig.NanoCPUs), uint64(max(0, c.HostConfig.Memory))
	}
	if at, known := idleSince(c); known && c.State.Running {
		u.Up = max(0, m.p.now().Sub(at))
	}
	if more {
		u.More = m.p.more(ctx, s)
	}
	return &u, this, nil
}

// more asks what takes longer.
func (p *Provider) more(ctx context.Context, s Sandbox) *More {
	m := &More{Disk: -1}
	if n, err := p.engine.WrittenSize(ctx, s.ID); err == nil {
		m.Disk = n
	} else {
		p.logf("%v", err)
	}
	if s.State != container.StateRunning {
		return m
	}
	jobs, err := environment.LookForJobs(ctx, p.reach(s.ID, s.Security), p.version)
	if err == nil && jobs.Told {
		m.Idle = &jobs.Idle
	}
	return m
}

// usageOf reads what a daemon measured, with the processors used since before. Pure.
func usageOf(now container.StatsResponse, before reading) Usage {
	u := Usage{PIDs: now.PidsStats.Current, PIDsLimit: now.PidsStats.Limit, Memory: now.MemoryStats.Usage}
	if u.PIDsLimit >= unlimitedMemory {
		u.PIDsLimit = 0 // how version 1 of cgroups says none
	}
	// Files that nobody has used for long: version 1 of cgroups, then version 2.
	for _, name := range []string{"total_inactive_file", "inactive_file"} {
		if cache, ok := now.MemoryStats.Stats[name]; ok && cache < u.Memory {
			u.Memory -= cache
			break
		}
	}
	if wall := now.Read.Sub(before.at); !before.at.IsZero() && wall > 0 && now.CPUStats.CPUUsage.TotalUsage >= before.nanos {
		u.Cores = float64(now.CPUStats.CPUUsage.TotalUsage-before.nanos) / float64(wall)
	}
	for _, n := range now.Networks {
		u.Received, u.Sent = u.Received+n.RxBytes, u.Sent+n.TxBytes
	}
	for _, b := range now.BlkioStats.IoServiceBytesRecursive {
		switch strings.ToLower(b.Op) {
		case "read":
			u.Read += b.Value
		case "write":
			u.Written += b.Value
		}
	}
	return u
}
