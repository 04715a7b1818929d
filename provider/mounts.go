package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// ownHome replaces "~" at the beginning of host paths by the home of whoever runs this process, and makes the paths plain. It reads the
// process's environment.
func ownHome(mounts []contract.Mount) ([]contract.Mount, error) {
	mounts = slices.Clone(mounts)
	for i, m := range mounts {
		switch below, tilde := strings.CutPrefix(m.Source, "~"); {
		case !m.IsHostPath():
		case tilde:
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, contract.Faults{{Key: "volume", Problem: fmt.Sprintf("%q: whose home ~ is cannot be told: %v", m, err)}}
			}
			mounts[i].Source = filepath.Join(home, below)
		case strings.HasPrefix(m.Source, "/"):
			mounts[i].Source = path.Clean(m.Source)
		}
	}
	return mounts, nil
}

// mountFaults returns what is wrong with mounts on this backend. Pure.
func mountFaults(mounts []contract.Mount) contract.Faults {
	var faults contract.Faults
	for _, m := range mounts {
		if strings.HasPrefix(m.Source, agentVolumePrefix) {
			faults = append(faults, contract.Fault{
				Key: "volume", Problem: fmt.Sprintf("%q: that volume holds the agent of every sandbox and is not to be changed", m),
			})
		}
	}
	return faults
}

// covers reports whether something is mounted at exactly dir: then that is its content.
func covers(mounts []contract.Mount, tmpfs map[string]string, dir string) bool {
	_, memory := tmpfs[dir]
	return memory || slices.ContainsFunc(mounts, func(m contract.Mount) bool { return m.Target == dir })
}

// bind translates a mount. The daemon refuses a host path that is missing, because Binds alone, docker's -v, makes one.
func bind(m contract.Mount) mount.Mount {
	kind := mount.TypeVolume
	if m.IsHostPath() {
		kind = mount.TypeBind
	}
	return mount.Mount{Type: kind, Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly}
}

// onTheWay lists the directories between home and what is mounted below it, outermost first. The runtime would make them root's, and the
// account could not write in, say, its own ~/.config because something is mounted at ~/.config/tool/cache.
func onTheWay(home string, targets []string) []string {
	var dirs []string
	for _, target := range targets {
		for dir := path.Dir(target); strings.HasPrefix(dir, home+"/"); dir = path.Dir(dir) {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}

// innermost returns the target that dir is at or below, the longest of them, and "" when there is none.
func innermost(targets []string, dir string) string {
	found := ""
	for _, t := range targets {
		if (dir == t || strings.HasPrefix(dir, t+"/")) && len(t) > len(found) {
			found = t
		}
	}
	return found
}

// mountWarnings says what a mount gives away beyond its files. socket is the address of the daemon. Pure.
func mountWarnings(mounts []contract.Mount, address string) []string {
	sockets := []string{"/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"}
	if own, ok := strings.CutPrefix(address, "unix://"); ok {
		sockets = append(sockets, own)
	}
	var warnings []string
	for _, m := range mounts {
		holds := func(socket string) bool {
			return m.Source == socket || m.Source == "/" || strings.HasPrefix(socket, m.Source+"/") || path.Base(m.Source) == "docker.sock"
		}
		if m.IsHostPath() && slices.ContainsFunc(sockets, holds) {
			what := ": whoever reaches a container engine's socket"
			if !slices.Contains(sockets, m.Source) && path.Base(m.Source) != "docker.sock" {
				what = ", and with it a container engine's socket: whoever reaches that"
			}
			warnings = append(warnings, fmt.Sprintf("%s is mounted at %s%s, read-only or not, controls the machine it runs on", m.Source, m.Target, what))
		}
	}
	return warnings
}

// explainMount says in terms of the mounts why a container could not be made or started, if they are why.
func explainMount(err error, mounts []contract.Mount) error {
	said := everything(err)
	for _, m := range mounts {
		if !m.IsHostPath() || !strings.Contains(said, m.Source) {
			continue
		}
		switch {
		case names(said, "does not exist: ", m.Source), (names(said, "stat ", m.Source) || names(said, "statfs ", m.Source)) && strings.Contains(said, "no such file or directory"):
			return &contract.BackendError{
				Reason: fmt.Sprintf("the host path %s, to be mounted at %s, does not exist on the daemon's machine", m.Source, m.Target),
				Hint:   "make it, or correct -v (in Hermes terminal.docker_volumes)", Err: err,
			}
		case strings.Contains(said, "not a directory") && strings.Contains(said, m.Target):
			return &contract.BackendError{
				Reason: fmt.Sprintf("the host path %s cannot be mounted at %s: one is a file and the other a directory", m.Source, m.Target),
				Hint:   "mount a file on a file or on nothing, a directory on a directory or on nothing", Err: err,
			}
		}
	}
	return err
}

// names reports whether text has source right behind lead, and not a longer path.
func names(text, lead, source string) bool {
	for {
		_, rest, found := strings.Cut(text, lead+source)
		if !found {
			return false
		}
		if rest == "" || strings.ContainsAny(rest[:1], "\n:\"' ") {
			return true
		}
		text = rest
	}
}

// everything is what err and its causes say.
func everything(err error) string {
	text := err.Error()
	var b *contract.BackendError
	if errors.As(err, &b) && b.Err != nil {
		text += "\n" + b.Err.Error()
	}
	return text
}

// directories are what the account must own before anything runs in a container: the home if the image has none, what leads from it to
// mounts, and new volumes at places the image does not know. All of these would be root's. What is in a mount of the user's is left alone: its
// owner is somebody else's business, the host's even. b is the box the container was made for.
func directories(b box, ready preparedImage, host *container.HostConfig) []engine.Directory {
	const private = 0o700
	targets := slices.Collect(maps.Keys(host.Tmpfs))
	for _, m := range host.Mounts {
		targets = append(targets, m.Target)
	}
	var dirs []engine.Directory
	add := func(dir string, mode int64) {
		if in := innermost(targets, dir); in == "" || in == b.record.Home {
			dirs = append(dirs, engine.Directory{Path: dir, Mode: mode, UID: ready.uid, GID: ready.gid})
		}
	}
	if ready.missing[ready.home] {
		add(ready.home, private)
	}
	for _, dir := range onTheWay(ready.home, targets) {
		add(dir, 0)
	}
	for _, m := range b.record.Mounts {
		if ready.missing[m.Target] && !m.ReadOnly && slices.Contains(b.madeVolumes, m.Source) {
			dirs = append(dirs, engine.Directory{Path: m.Target, UID: ready.uid, GID: ready.gid})
		}
	}
	return dirs
}

// tryMounts finds host paths that are missing, as the daemon does, with a container that never runs.
func (p *Provider) tryMounts(ctx context.Context, image string, mounts []contract.Mount) error {
	host := &container.HostConfig{NetworkMode: "none"}
	for _, m := range mounts {
		if m.IsHostPath() {
			host.Mounts = append(host.Mounts, bind(m))
		}
	}
	if len(host.Mounts) == 0 {
		return nil
	}
	_, remove, err := p.helper(ctx, &container.Config{
		Image: image, Entrypoint: []string{agentDir + "/agent"}, Labels: map[string]string{labelKind: kindHelper},
	}, host)
	if err != nil {
		return explainMount(err, mounts)
	}
	remove()
	return nil
}

// volumeTargets are where volumes are mounted.
func volumeTargets(mounts []contract.Mount) []string {
	var targets []string
	for _, m := range mounts {
		if !m.IsHostPath() {
			targets = append(targets, m.Target)
		}
	}
	return targets
}
