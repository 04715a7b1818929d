package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/environment"
)

// Details is everything about one sandbox that its owner may want to know. Values of variables are not among it.
type Details struct {
	Sandbox
	// Home is the account's home inside, Owner who made it ("me@machine"), Network "bridge" or "none".
	Home, Owner, Network string
	// ShmBytes is the size of /dev/shm, 0 the engine's default.
	ShmBytes int64
	Mounts   []contract.Mount
	// Env and ForwardEnv are names.
	Env, ForwardEnv []string
	ExtraArgs       []string
	Limits          []Limit
	// HomeVolume is the volume that keeps the home, "" for none.
	HomeVolume string
	// Started is when it was started the last time, the zero time for one that never was.
	Started time.Time
	// Use is nil for one that does not run, is paused, or whose agent cannot be asked.
	Use *Use
	// DiskBytes is what it wrote outside its home and mounts, HomeBytes the size of its home volume: nil unless [Provider.Measure] was asked, and
	// where the daemon does not tell.
	DiskBytes, HomeBytes *int64
}

// Use says who uses a sandbox.
type Use struct {
	// Idle is how long ago a command or a client of it began or ended, Clients how many are connected now. Both count only when Told is set: an
	// older agent does not know them.
	Idle    time.Duration
	Clients int
	Told    bool
	// Jobs is how many processes run on somebody's behalf, an empty screen's not counted, and Example the name of one of them.
	Jobs    int
	Example string
	// Screen says that it has a screen.
	Screen bool
}

// Limit is one limit of a sandbox. 0 is none.
type Limit struct {
	// Name is that of the setting, Unit what it counts.
	Name, Unit string
	Wanted     float64
	// Applied is what the container has in truth, nil where that cannot be told.
	Applied *float64
	// Note says why the two differ, or why one is missing; "" where there is nothing to say.
	Note string
}

// Inspect describes a sandbox. It reads the limits that apply from inside one that runs; it starts and changes nothing.
func (p *Provider) Inspect(ctx context.Context, address string) (Details, error) {
	found, b, err := p.find(ctx, address)
	if err != nil {
		return Details{}, err
	}
	r := b.record
	d := Details{
		Sandbox: Sandbox{
			Name: b.id.name, Profile: b.id.profile, Task: found.Config.Labels[labelTask], ID: b.containerID, Image: r.Image, User: r.User,
			State: found.State.Status, Persistent: r.Persistent, Security: r.security(),
		},
		Home: found.Config.WorkingDir, Owner: found.Config.Labels[labelOwner], Network: r.Network, ShmBytes: r.ShmBytes,
		Mounts: r.Mounts, Env: slices.Sorted(maps.Keys(r.Env)), ForwardEnv: r.ForwardEnv, ExtraArgs: r.ExtraArgs,
	}
	if d.Created, err = time.Parse(time.RFC3339Nano, found.Created); err != nil {
		p.logf("container %s: the time it was made, %q, cannot be read", b.containerID, found.Created)
	}
	d.Started, _ = time.Parse(time.RFC3339Nano, found.State.StartedAt) // where it cannot be read there is none
	if r.Home != "" {
		d.HomeVolume = b.id.home()
	}
	inside := limits{memory: unknownLimit, cpus: unknownLimit, pids: unknownLimit}
	why := "it does not run"
	switch {
	case found.State.Paused:
		why = "it is paused"
	case found.State.Running:
		why = ""
		d.Use = p.use(ctx, b)
		if inside, d.Home, err = p.peek(ctx, b, d.Home); err != nil {
			why = "the container could not be asked: " + err.Error()
		}
	}
	d.Limits = []Limit{
		limitOf("cpus", "cores", r.CPUs, inside.cpus, why),
		limitOf("memory", "MB", float64(r.MemoryMB), megabytes(inside.memory), why),
		limitOf("pids", "processes", float64(r.PIDs), float64(inside.pids), why),
		diskLimit(r.DiskMB, found.HostConfig),
	}
	return d, nil
}

// use asks the agent of a running box who uses it.
func (p *Provider) use(ctx context.Context, b box) *Use {
	ctx, cancel := context.WithTimeout(ctx, peekLimit)
	defer cancel()
	jobs, err := environment.LookForJobs(ctx, b.container(p), p.version)
	if err != nil { // the look for its limits says so, if it cannot be asked at all
		p.logf("sandbox %s: %v", b.id, err)
		return nil
	}
	return &Use{Idle: jobs.Idle, Clients: jobs.Clients, Told: jobs.Told, Jobs: jobs.Count - jobs.Screen, Example: jobs.Example, Screen: jobs.Screen > 0}
}

// Measure finds out what a sandbox takes on the daemon's disk. The daemon goes through all of its files for that.
func (p *Provider) Measure(ctx context.Context, d *Details) error {
	disk, err := p.engine.WrittenSize(ctx, d.ID)
	if err != nil {
		return err
	}
	d.DiskBytes = &disk
	if d.HomeVolume == "" {
		return nil
	}
	sizes, err := p.engine.VolumeSizes(ctx)
	if n, ok := sizes[d.HomeVolume]; ok {
		d.HomeBytes = &n
	}
	return err
}

// peekLimit and peekOutput bound the look into a sandbox, whose bash may be anything by now: the script prints less than 200 bytes.
const (
	peekLimit  = 10 * time.Second
	peekOutput = 4096
)

// peek reads the limits and the home from inside a running box. home is returned where the container does not tell.
func (p *Provider) peek(ctx context.Context, b box, home string) (limits, string, error) {
	unknown := limits{memory: unknownLimit, cpus: unknownLimit, pids: unknownLimit}
	ctx, cancel := context.WithTimeout(ctx, peekLimit)
	defer cancel()
	env, err := environment.Connect(ctx, environment.Options{
		Container: b.container(p), Info: b.info(), Account: b.record.User, Version: p.version, Looks: true,
	})
	if err != nil {
		return unknown, home, err
	}
	defer func() {
		if err := env.Cleanup(context.WithoutCancel(ctx), false); err != nil { // it only hangs up
			p.logf("after a look into sandbox %s: %v", b.id, err)
		}
	}()
	home = env.Info().Home
	r, err := env.Execute(ctx, contract.Request{
		Argv: []string{"bash", "-c", limitsScript, "bash"}, Dir: "/", Timeout: peekLimit, MaxOutput: peekOutput,
		Env: map[string]string{"BASH_ENV": ""}, // no file of the sandbox's is to run, and none to change what this prints
	})
	switch {
	case ctx.Err() != nil, r.TimedOut:
		return unknown, home, fmt.Errorf("it did not answer within %s", peekLimit)
	case err != nil:
		return unknown, home, err
	case r.ExitCode != 0:
		return unknown, home, fmt.Errorf("reading its limits ended with status %d", r.ExitCode)
	}
	return readLimits(string(r.Output)), home, nil
}

func megabytes(n int64) float64 {
	if n < 0 {
		return unknownLimit
	}
	return float64(n) / (1 << mib)
}

// limitOf compares a limit with what applies; why says why that is not known.
func limitOf(name, unit string, wanted, applied float64, why string) Limit {
	l := Limit{Name: name, Unit: unit, Wanted: wanted, Note: why}
	if applied == unknownLimit {
		if why == "" {
			l.Note = "its cgroup does not show it"
		}
		return l
	}
	l.Applied = &applied
	const rounding = 0.001 // the kernel counts in pages and microseconds
	switch {
	case wanted == 0 && applied > 0:
		l.Note = "something outside the sandbox limits it"
	case wanted > 0 && applied == 0:
		l.Note = "not enforced: this daemon cannot set it, see dockerbox doctor"
	case applied < wanted*(1-rounding) || applied > wanted*(1+rounding):
		l.Note = "changed by other means than dockerbox, or limited further by what is outside"
	}
	return l
}

// diskLimit tells by the container whether it has a quota: one that the daemon cannot enforce is left out when it is made.
func diskLimit(wantedMB int64, host *container.HostConfig) Limit {
	l := Limit{Name: "disk", Unit: "MB", Wanted: float64(wantedMB)}
	applied := 0.0
	if host != nil && host.StorageOpt[quotaKey] != "" {
		applied = l.Wanted
	} else if wantedMB > 0 {
		l.Note = "not enforced: the daemon's storage driver has no quotas, see dockerbox doctor"
	}
	l.Applied = &applied
	return l
}
