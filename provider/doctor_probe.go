package provider

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// What a probe container is given. Every value is one that nobody has by chance.
const (
	probeMemoryMB = 64
	probeCPUs     = 0.5
	probePIDs     = 64
	probeDisk     = "1g"
)

// Bounds of a probe container: how long it lives if nobody ends it, in seconds, and how long making it and taking it away may take.
const (
	probeLife    = "8"
	probeCreate  = 2 * time.Second
	probeDiscard = 2 * time.Second
)

// probeOutput bounds what a probe may print; it is some 200 bytes.
const probeOutput = 64 << 10

// userNamespaceScript prints what the kernel says of user namespaces. Not whether one can be made: in a container the daemon's default
// seccomp profile forbids that, and a sandbox for a browser brings one of its own.
const userNamespaceScript = `
put userns-max /proc/sys/user/max_user_namespaces
put userns-unprivileged /proc/sys/kernel/unprivileged_userns_clone
put userns-apparmor /proc/sys/kernel/apparmor_restrict_unprivileged_userns
printf 'end\n'
`

// probe is what was seen in a container with limits.
type probe struct {
	limits limits
	quota  bool // it was made with a limit of its disk
	// As the kernel's settings of these names; unknownLimit where it has none.
	userNamespaces, unprivileged, apparmor int64
}

// tryContainer runs a container of the image with limits of its own, looks at it from inside and takes it away, whatever happens. Should
// this program be killed meanwhile, the container ends by itself and the daemon removes it; one that was not started yet is swept later.
func (p *Provider) tryContainer(ctx context.Context, imageID string, tryQuota bool) (*probe, error) {
	if ctx.Err() != nil {
		return nil, errLate(ctx)
	}
	id, quota, err := p.createProbe(ctx, imageID, tryQuota)
	if err != nil {
		return nil, err
	}
	defer p.discardProbe(ctx, id)
	if err := p.engine.Start(ctx, id); err != nil {
		return nil, err
	}
	text, err := p.ask(ctx, id, []string{"bash", "-c", limitsScript + userNamespaceScript})
	if err != nil {
		return nil, err
	}
	found := readProbe(text)
	found.quota = quota
	return found, nil
}

// createProbe makes the container, with a limit of its disk if that is to be tried and the daemon takes it.
func (p *Provider) createProbe(ctx context.Context, imageID string, tryQuota bool) (id string, quota bool, err error) {
	const letters = 8
	name := "dockerbox-probe-" + strings.ToLower(rand.Text()[:letters])
	pids := int64(probePIDs)
	config := &container.Config{Image: imageID, Entrypoint: []string{"sleep", probeLife}, Labels: map[string]string{labelKind: kindHelper}}
	host := &container.HostConfig{
		AutoRemove: true, NetworkMode: "none", CapDrop: []string{"ALL"},
		Resources: container.Resources{Memory: probeMemoryMB << 20, NanoCPUs: probeCPUs * 1e9, PidsLimit: &pids},
	}
	// A daemon goes on making a container whose caller has gone, and it would stay: so the caller waits.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeCreate)
	defer cancel()
	if tryQuota {
		host.StorageOpt = map[string]string{"size": probeDisk}
		if id, _, err = p.engine.Create(ctx, name, config, host); err == nil {
			return id, true, nil
		}
		host.StorageOpt = nil
	}
	id, _, err = p.engine.Create(ctx, name, config, host)
	if err != nil && ctx.Err() != nil {
		p.discardProbe(ctx, name) // if it is there by now
	}
	return id, false, err
}

// ask runs a program in a container and returns what it printed, which ends with a line "end".
func (p *Provider) ask(ctx context.Context, id string, argv []string) (string, error) {
	conn, err := p.engine.Exec(ctx, id, "", argv)
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // which ends the reading
	text, err := io.ReadAll(io.LimitReader(conn, probeOutput))
	stop()
	err = errors.Join(err, conn.Close())
	switch said := strings.TrimSpace(string(text)); {
	case ctx.Err() != nil:
		return "", errLate(ctx)
	case err == nil && strings.HasSuffix(said, "end"):
		return said, nil
	default:
		said = strings.TrimSpace(said + " " + conn.Stderr())
		return "", &contract.BackendError{
			Reason: fmt.Sprintf("bash in a container of the image did not do what it was told; it said %.200q", said),
			Hint:   "build the image anew with make image", Err: err,
		}
	}
}

// sweep removes what a program that was killed left of its helpers: a container that never ran does not end by itself.
func (p *Provider) sweep(ctx context.Context) {
	all, err := p.engine.List(ctx, labelKind+"="+kindHelper)
	if err != nil {
		p.logf("looking for helpers that were left behind: %v", err)
		return
	}
	for _, c := range all {
		if c.State == container.StateRunning || p.now().Sub(time.Unix(c.Created, 0)) <= orphanAge {
			continue
		}
		if err := p.engine.RemoveEnded(ctx, c.ID); err != nil && !errors.Is(err, engine.ErrConflict) {
			p.logf("removing a helper that was left behind: %v", err)
		}
	}
}

func errLate(ctx context.Context) error {
	return &contract.BackendError{
		Reason: "a container of the image did not answer in time", Hint: "see whether the machine is overloaded, then try again", Err: context.Cause(ctx),
	}
}

// discardProbe removes the probe container. It has its own bound: ctx may be over.
func (p *Provider) discardProbe(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeDiscard)
	defer cancel()
	// A conflict is the daemon that removes it already.
	if err := p.engine.Remove(ctx, id); err != nil && !errors.Is(err, engine.ErrConflict) {
		p.logf("removing the probe container: %v", err)
	}
}

// readProbe reads what the scripts printed.
func readProbe(text string) *probe {
	found := &probe{limits: readLimits(text), userNamespaces: unknownLimit, unprivileged: unknownLimit, apparmor: unknownLimit}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "userns-max":
			found.userNamespaces = count(value)
		case "userns-unprivileged":
			found.unprivileged = count(value)
		case "userns-apparmor":
			found.apparmor = count(value)
		}
	}
	return found
}
