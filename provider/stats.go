package provider

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Usage is what a sandbox uses. No limit is zero.
type Usage struct {
	Sandbox
	// Measured is false where neither the daemon nor the sandbox tells; then all up to Written is zero.
	Measured bool
	// Cores is how many processors it kept busy since the look before.
	Cores float64
	// Memory is in bytes, without what the kernel can take back, as docker counts.
	Memory, PIDs uint64
	// Received and Sent are bytes of network traffic, Read and Written bytes from and to disks, since it was started.
	Received, Sent, Read, Written uint64
	CPULimit                      float64
	MemoryLimit, PIDsLimit        uint64
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

// Meter measures sandboxes. It remembers the look before, for what is used over a time, and keeps connections to the agents of those that the
// daemon cannot measure. Not safe for concurrent use.
type Meter struct {
	p     *Provider
	names []string
	more  bool

	mu     sync.Mutex // guards what follows while a look goes on
	before map[string]reading
	gauges map[string]*environment.Gauge
	blind  bool // the daemon does not see what containers use
}

// reading is what one container used, and when that was.
type reading struct {
	at time.Time
	environment.Usage
}

// Meter makes a meter for sandboxes by their addresses, or without any for all that run. more asks for [Usage.More] too.
func (p *Provider) Meter(more bool, addresses ...string) *Meter {
	return &Meter{p: p, names: addresses, more: more, before: map[string]reading{}, gauges: map[string]*environment.Gauge{}}
}

// Close hangs up.
func (m *Meter) Close() {
	for id := range m.gauges {
		m.drop(id)
	}
}

// drop hangs up on one agent.
func (m *Meter) drop(id string) {
	m.mu.Lock()
	g := m.gauges[id]
	delete(m.gauges, id)
	m.mu.Unlock()
	if g != nil {
		g.Close()
	}
}

// shortLook is how far the two looks of a first reading are apart: scheduling comes in periods of 100 ms.
const shortLook = 500 * time.Millisecond

// Read measures. The first reading takes half a second more, because use of processors is over a time. A named sandbox that does not exist is an
// error; one that does not run is left out.
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
			if _, _, err := m.p.find(ctx, name); err != nil { // its words for it
				return nil, unmade(err)
			}
		}
	}
	return slices.DeleteFunc(all, func(s Sandbox) bool {
		alive := s.State == container.StateRunning || s.State == container.StatePaused
		return !alive || len(m.names) > 0 && !slices.Contains(m.names, s.Address())
	}), nil
}

// look measures boxes side by side. Those that ended meanwhile are left out. The first goes ahead: it tells whether the daemon sees anything.
func (m *Meter) look(ctx context.Context, boxes []Sandbox, more bool) ([]Usage, error) {
	found := make([]*Usage, len(boxes))
	errs := make([]error, len(boxes))
	var wait sync.WaitGroup
	turn := make(chan struct{}, meters)
	for i, s := range boxes {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			found[i], errs[i] = m.measure(ctx, s, more)
		})
		if i == 0 {
			wait.Wait()
		}
	}
	wait.Wait()
	all := []Usage{}
	for _, u := range found {
		if u != nil {
			all = append(all, *u)
		}
	}
	for id := range m.before {
		if !slices.ContainsFunc(all, func(u Usage) bool { return u.ID == id }) {
			delete(m.before, id)
			m.drop(id)
		}
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// measure looks at one sandbox; nil for one that does not run any more.
func (m *Meter) measure(ctx context.Context, s Sandbox, more bool) (*Usage, error) {
	c, err := m.p.engine.Inspect(ctx, s.ID)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !c.State.Running:
		return nil, nil
	}
	now, measured, err := m.used(ctx, s)
	switch {
	case errors.Is(err, errEnded):
		return nil, nil
	case err != nil:
		return nil, err
	}
	m.mu.Lock()
	last := m.before[s.ID]
	m.before[s.ID] = now
	m.mu.Unlock()
	u := &Usage{
		Sandbox: s, Measured: measured, Cores: coresBetween(last, now), Memory: now.Memory - min(now.Inactive, now.Memory), PIDs: now.PIDs,
		Received: now.Received, Sent: now.Sent, Read: now.Read, Written: now.Written,
	}
	if host := c.HostConfig; host != nil {
		u.CPULimit, u.MemoryLimit = cores(host.NanoCPUs), uint64(max(0, host.Memory))
		if host.PidsLimit != nil {
			u.PIDsLimit = uint64(max(0, *host.PidsLimit))
		}
	}
	if at, known := idleSince(c); known {
		u.Up = max(0, m.p.now().Sub(at))
	}
	if more {
		u.More = m.p.more(ctx, s)
	}
	return u, nil
}

// errEnded is used's error for a sandbox that ended a moment ago.
var errEnded = errors.New("ended")

// used asks the daemon what a running container used, and where that is blind the agent inside. One that nobody can tell of was not measured.
func (m *Meter) used(ctx context.Context, s Sandbox) (now reading, measured bool, err error) {
	m.mu.Lock()
	blind := m.blind
	m.mu.Unlock()
	if !blind {
		stats, err := m.p.engine.Stats(ctx, s.ID)
		switch {
		case errors.Is(err, engine.ErrNotFound), errors.Is(err, engine.ErrConflict):
			return reading{}, false, errEnded
		case err != nil:
			return reading{}, false, err
		case !stats.Read.IsZero():
			return reading{stats.Read, usageOf(stats)}, true, nil
		}
		// Nothing is also what a daemon says of a container that does not run.
		switch c, err := m.p.engine.Inspect(ctx, s.ID); {
		case errors.Is(err, engine.ErrNotFound), err == nil && !c.State.Running:
			return reading{}, false, errEnded
		case err != nil:
			return reading{}, false, err
		}
		m.mu.Lock()
		m.blind = true
		m.mu.Unlock()
	}
	if s.State != container.StateRunning { // its agent does not answer
		return reading{}, false, nil
	}
	u, err := m.ask(ctx, s)
	if ctx.Err() != nil {
		return reading{}, false, context.Cause(ctx)
	}
	if err != nil {
		m.p.logf("sandbox %s: %v", s.Address(), err)
		return reading{}, false, nil
	}
	return reading{time.Now(), u}, true, nil
}

// ask asks a sandbox's agent. A connection that broke is made anew the next time.
func (m *Meter) ask(ctx context.Context, s Sandbox) (environment.Usage, error) {
	m.mu.Lock()
	g := m.gauges[s.ID]
	m.mu.Unlock()
	if g == nil {
		var err error
		if g, err = environment.OpenGauge(ctx, m.p.reach(s.ID, s.Security), m.p.version); err != nil {
			return environment.Usage{}, err
		}
		m.mu.Lock()
		m.gauges[s.ID] = g
		m.mu.Unlock()
	}
	u, err := g.Read(ctx)
	if err != nil {
		m.drop(s.ID)
	}
	return u, err
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

// coresBetween is how many processors were busy between two readings. 0 when there was none before, and for a container that was started anew.
func coresBetween(before, now reading) float64 {
	wall := now.at.Sub(before.at)
	if before.at.IsZero() || now.at.IsZero() || wall <= 0 || now.CPUNanos < before.CPUNanos {
		return 0
	}
	return float64(now.CPUNanos-before.CPUNanos) / float64(wall)
}
