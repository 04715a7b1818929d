package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/agentbin"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// preparedImage is what must be known of an image before a sandbox can be made of it.
type preparedImage struct {
	user        string // as commands run by default; never empty
	home        string // of user: by the image's own /etc/passwd, else one that dockerbox chooses
	ownHome     bool   // dockerbox chose it
	runtimeDir  string // see [facts]
	uid, gid    int    // of user
	agentVolume string
	missing     map[string]bool // directories asked about, the home among them, that the image does not have
}

// maxPasswd bounds /etc/passwd and /etc/group: images are other people's.
const maxPasswd = 1 << 20

// prepare looks into the image, pulling it first when it is not here, and fills the daemon's agent volume. targets are directories to look for
// in it besides the home. What it learnt is kept by
// image id: a container that is created and never started costs about 100 ms.
func (p *Provider) prepare(ctx context.Context, ref, wantUser string, targets []string) (preparedImage, error) {
	found, err := p.engine.Image(ctx, ref)
	if errors.Is(err, engine.ErrNotFound) {
		if err = p.fetch(ctx, ref); err == nil {
			found, err = p.engine.Image(ctx, ref)
		}
	}
	if err != nil {
		return preparedImage{}, err
	}
	user := wantUser
	if user == "" && found.Config != nil {
		user = found.Config.User
	}
	if user == "" {
		user = "root"
	}
	var runtime string
	if found.Config != nil {
		if runtime = runtimeDir(found.Config.Env); runtime != "" {
			targets = append(slices.Clone(targets), runtime)
		}
	}
	key := strings.Join(append([]string{found.ID, user}, targets...), "\x00")
	p.mu.Lock()
	ready, ok := p.prepared[key]
	p.mu.Unlock()
	if ok {
		// Who prunes with another version takes the volume for one that nobody uses.
		there, err := p.engine.HasVolume(ctx, ready.agentVolume)
		if err != nil || there {
			return ready, err
		}
	}
	ready, err = p.inspectImage(ctx, ref, found.ID, found.Architecture, user, targets)
	if err != nil {
		return ready, err
	}
	if runtime != "" && !ready.missing[runtime] {
		ready.runtimeDir = runtime
	}
	p.mu.Lock()
	p.prepared[key] = ready
	p.mu.Unlock()
	return ready, nil
}

// inspectImage uses a container that never runs: to read the image's passwd and to write into the agent volume.
func (p *Provider) inspectImage(ctx context.Context, ref, imageID, arch, user string, targets []string) (preparedImage, error) {
	agent, err := agentbin.Binary(arch)
	if err != nil {
		return preparedImage{}, noAgent(ref, arch, err)
	}
	sum, err := agentbin.Digest(arch)
	if err != nil {
		return preparedImage{}, err
	}
	ready := preparedImage{user: user, agentVolume: agentVolume(sum)}
	labels := map[string]string{labelKind: kindAgent}
	if _, err := p.engine.CreateVolume(ctx, ready.agentVolume, labels); err != nil {
		return ready, err
	}
	helper, remove, err := p.helper(ctx, &container.Config{
		Image: imageID, Entrypoint: []string{agentDir + "/agent"}, Labels: map[string]string{labelKind: kindHelper},
	}, &container.HostConfig{
		NetworkMode: "none",
		Mounts: []mount.Mount{{
			Type: mount.TypeVolume, Source: ready.agentVolume, Target: agentDir, VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		}},
	})
	if err != nil {
		return ready, err
	}
	defer remove()
	if err := p.fill(ctx, helper, agent); err != nil {
		return ready, err
	}
	passwd, err := p.engine.ReadFile(ctx, helper, "/etc/passwd", maxPasswd)
	absent := errors.Is(err, engine.ErrNotFound)
	if err != nil && !absent {
		return ready, err
	}
	a, ok := lookup(passwd, user)
	if !ok && absent {
		return ready, &contract.BackendError{
			Reason: fmt.Sprintf("the image %s has no /etc/passwd, so nobody in it is called %q", ref, user),
			Hint:   "name the account by its number, such as --user 0",
		}
	}
	if !ok {
		return ready, &contract.BackendError{
			Reason: fmt.Sprintf("the image %s has no user %q", ref, user),
			Hint:   "choose one of its users (--user, in Hermes terminal.backends.dockerbox.user), or a number up to 2147483647",
		}
	}
	group, err := p.engine.ReadFile(ctx, helper, "/etc/group", maxPasswd)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return ready, err
	}
	gid, ok := groupOf(group, user, a.gid)
	if !ok {
		_, name, _ := strings.Cut(user, ":")
		return ready, &contract.BackendError{
			Reason: fmt.Sprintf("the image %s has no group %q", ref, name),
			Hint:   "put one of its groups behind the colon, or a number up to 2147483647",
		}
	}
	ready.uid, ready.gid, ready.home = a.uid, gid, a.home
	if a.home == "" {
		ready.ownHome, ready.home = true, fmt.Sprintf("/home/%d", a.uid)
	}
	ready.missing = map[string]bool{}
	for _, dir := range append([]string{ready.home}, targets...) {
		_, err := p.engine.FileSize(ctx, helper, dir)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return ready, err
		}
		ready.missing[dir] = err != nil
	}
	return ready, nil
}

// noAgent explains why an image cannot have one.
func noAgent(ref, arch string, err error) error {
	if errors.Is(err, agentbin.ErrNotBuilt) {
		return &contract.BackendError{
			Reason: "this dockerbox was built without the agent that works in sandboxes", Hint: "build it with make build in the repository", Err: err,
		}
	}
	return &contract.BackendError{
		Reason: fmt.Sprintf("the image %s is for %s, and dockerbox has agents for %s alone", ref, arch, strings.Join(agentbin.Architectures(), " and ")),
		Hint:   "choose an image for one of these (--image, in Hermes terminal.backends.dockerbox.image)", Err: err,
	}
}

// agentVolume is the name of the volume with the agent of that digest.
func agentVolume(sum string) string {
	const shown = 12
	return agentVolumePrefix + sum[:shown]
}

// fill puts the agent into its volume unless it is there already, whole. The volume is named by the agent's digest, so a file of the
// right size is the right file; half of one is written again.
func (p *Provider) fill(ctx context.Context, helper string, agent []byte) error {
	size, err := p.engine.FileSize(ctx, helper, agentDir+"/agent")
	switch {
	case err == nil && size == int64(len(agent)):
		return nil
	case err != nil && !errors.Is(err, engine.ErrNotFound):
		return err
	}
	const executable = 0o755
	return p.engine.WriteFile(ctx, helper, agentDir, "agent", executable, agent)
}
