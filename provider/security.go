package provider

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// noNewPrivileges is the option that makes setuid bits and file capabilities powerless, and sudo with them.
const noNewPrivileges = "no-new-privileges"

// memoryDirs are what a read-only root needs in memory, with the sizes that Hermes's own backend gives them. People run scripts and builds
// from /tmp, so it is executable; nothing is run from /run. Where the display server puts its socket must be root's, which nobody in the
// sandbox can make it, so it is a mount of its own.
var memoryDirs = map[string]string{
	"/tmp":           "rw,exec,nosuid,nodev,size=512m,mode=1777",
	"/tmp/.X11-unix": "rw,noexec,nosuid,nodev,size=1m,mode=1777",
	"/var/tmp":       "rw,exec,nosuid,nodev,size=256m,mode=1777",
	"/run":           "rw,noexec,nosuid,nodev,size=64m,mode=0755",
}

// harden turns the container of a standard sandbox into that of a hardened one, to which flags add the directories in memory of given. Pure.
func (s *spec) harden(f facts, given map[string]string) {
	s.host.ReadonlyRootfs = true
	s.host.SecurityOpt = []string{"seccomp=" + image.SeccompHardened(), noNewPrivileges} // who has no seccomp is refused before
	s.host.Tmpfs = map[string]string{}
	maps.Copy(s.host.Tmpfs, memoryDirs)
	if covers(s.record.Mounts, nil, "/tmp") {
		delete(s.host.Tmpfs, "/tmp/.X11-unix") // what is mounted there is the user's
	}
	for _, m := range s.record.Mounts {
		delete(s.host.Tmpfs, m.Target)
	}
	switch {
	case f.dir == "" || s.record.Home != "" || covers(s.record.Mounts, given, f.dir):
	case f.noHome:
		s.host.Tmpfs[f.dir] = "rw,exec,nosuid,nodev,mode=0700"
	default: // it has no name, and goes with the container
		s.host.Mounts = append(s.host.Mounts, mount.Mount{Type: mount.TypeVolume, Target: f.dir})
	}
	if dir := f.runtimeDir; dir != "" && innermost(append(s.writable(), slices.Collect(maps.Keys(given))...), dir) == "" {
		// Nobody but the image knows whose it is: a volume takes that from there, a directory in memory would be root's.
		s.host.Mounts = append(s.host.Mounts, mount.Mount{Type: mount.TypeVolume, Target: dir})
	}
}

// writable lists where something can be written beside a read-only root.
func (s *spec) writable() []string {
	dirs := []string{"/dev/shm"}
	for dir := range s.host.Tmpfs {
		dirs = append(dirs, dir)
	}
	for _, m := range s.host.Mounts {
		dirs = append(dirs, m.Target)
	}
	return dirs
}

// hardenedSandbox is a sandbox whose agent is its first process and runs as its account. No capability could make it another's, or keep the
// account from ending it; see the agent's verb first.
type hardenedSandbox struct{ sandbox }

var _ environment.Divided = hardenedSandbox{}

// Attach implements [environment.Container]. It runs as a number that nobody else has: who is in the sandbox can neither end nor be it.
func (s hardenedSandbox) Attach(ctx context.Context) (environment.Stream, error) {
	id := strconv.Itoa(wire.AttachUID)
	return s.engine.Exec(ctx, s.id, id+":"+id, []string{environment.AgentPath, "attach", "--first"})
}

// AttachAs implements [environment.Divided].
func (s hardenedSandbox) AttachAs(ctx context.Context, user string) (environment.Stream, error) {
	return s.engine.Exec(ctx, s.id, user, []string{environment.AgentPath, "attach"})
}

// noFilter refuses a daemon without seccomp, before anything is made.
func noFilter() error {
	return &contract.BackendError{
		Reason: "the daemon does not filter system calls (seccomp), which a hardened sandbox needs",
		Hint:   "its kernel needs CONFIG_SECCOMP_FILTER; choose another daemon, or security standard (--profile, in Hermes terminal.backends.dockerbox.security)",
	}
}

// notHardened refuses a living sandbox to who wants it hardened and does not want to end what lives in it.
func notHardened(b box, who string) error {
	return &contract.BackendError{
		Reason: fmt.Sprintf("sandbox %q is not hardened, as the settings want it, and %s", b.id, who),
		Hint:   fmt.Sprintf("dockerbox stop %s ends that; the next session makes the sandbox anew, and it %s", b.id, b.home()),
	}
}

// reservedAccount refuses the one number that would be both the account's and that of attaches.
func reservedAccount() error {
	return &contract.BackendError{
		Reason: fmt.Sprintf("the account %d of a hardened sandbox is that of its connections", wire.AttachUID),
		Hint:   "choose another user (--user, in Hermes terminal.backends.dockerbox.user)",
	}
}

// makeDirectories makes directories in the box's container. Into one with a read-only root the daemon writes nothing but the volumes
// themselves, so another container that has them, too, and never runs, stands in for it.
func (p *Provider) makeDirectories(ctx context.Context, b box, s spec, dirs []engine.Directory) error {
	if !s.host.ReadonlyRootfs {
		return p.engine.MakeDirectories(ctx, b.containerID, dirs)
	}
	host := &container.HostConfig{NetworkMode: "none"}
	for _, m := range s.host.Mounts {
		if m.Type == mount.TypeVolume && m.Source != "" {
			host.Mounts = append(host.Mounts, m)
		}
	}
	helper, remove, err := p.helper(ctx, &container.Config{
		Image: s.config.Image, Entrypoint: s.config.Entrypoint, Labels: map[string]string{labelKind: kindHelper},
	}, host)
	if err != nil {
		return err
	}
	defer remove()
	return p.engine.MakeDirectories(ctx, helper, dirs)
}

// runtimeDir is the directory that an image's environment names for sockets and the like, "" when it names none.
func runtimeDir(env []string) string {
	for _, e := range env {
		if dir, ok := strings.CutPrefix(e, "XDG_RUNTIME_DIR="); ok && path.IsAbs(dir) {
			return path.Clean(dir)
		}
	}
	return ""
}

// hardenedRefusals are flags that would give a hardened sandbox back what it is without, and what to say of them.
var hardenedRefusals = map[string]string{
	"cap-add":            "a hardened sandbox has no capabilities",
	"device":             "a hardened sandbox has no devices of the machine",
	"device-cgroup-rule": "a hardened sandbox has no devices of the machine",
	"gpus":               "a hardened sandbox has no devices of the machine",
}

const insteadStandard = "; leave it out, or use security standard (--profile, in Hermes terminal.backends.dockerbox.security)"

// hardenedFaults returns what is wrong with flags in a hardened sandbox that is right in a standard one. host is what they have made of a
// container. Pure.
func hardenedFaults(args []string, host *container.HostConfig) contract.Faults {
	var faults contract.Faults
	add := func(flag, why string) {
		faults = append(faults, contract.Fault{Key: extraArgsKey, Problem: fmt.Sprintf("--%s: %s%s", flag, why, insteadStandard)})
	}
	for _, name := range []string{"cap-add", "device", "device-cgroup-rule", "gpus"} {
		if hasFlag(args, "--"+name) {
			add(name, hardenedRefusals[name])
		}
	}
	for _, option := range host.SecurityOpt {
		if slices.Contains([]string{"apparmor=unconfined", "label=disable"}, option) {
			add("security-opt", option+" takes a protection away that a hardened sandbox keeps")
		}
	}
	return faults
}

// offline gives a hardened sandbox that is to be made no network unless the caller has asked for it by name.
func offline(cfg contract.Config) contract.Config {
	if cfg.Hardened() && cfg.Given != nil && !slices.Contains(cfg.Given, "network") {
		cfg.Network = contract.NetworkNone
	}
	return cfg
}
