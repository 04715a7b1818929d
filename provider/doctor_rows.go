package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/system"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/agentbin"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

func daemonRow(f findings) verdict {
	switch {
	case f.api == "":
		return failed(f.apiErr)
	case f.infoErr != nil:
		reason := failed(f.infoErr).detail
		return warn(fmt.Sprintf("it answers at %s, but does not say what it can do: %s", f.address, reason),
			"let docker info through to the daemon: a socket proxy may hold it back")
	case f.info != nil && f.info.ServerVersion != "":
		return ok(fmt.Sprintf("version %s answers at %s", f.info.ServerVersion, f.address))
	default:
		return ok("it answers at " + f.address)
	}
}

func apiRow(f findings) verdict {
	if f.apiErr != nil {
		return failed(f.apiErr)
	}
	return ok(fmt.Sprintf("%s; %s or later is needed", f.api, engine.MinAPI))
}

func engineRow(f findings) verdict {
	if f.info != nil && f.info.OSType != "" && f.info.OSType != "linux" {
		return fail("the daemon runs containers of "+f.info.OSType, "switch Docker Desktop to Linux containers")
	}
	if f.versionErr != nil {
		return warn("the daemon does not say what it is: "+failed(f.versionErr).detail, "let docker version through to the daemon: a socket proxy may hold it back")
	}
	for _, part := range f.version.Components {
		switch part.Name {
		case "Engine":
			return ok(strings.TrimSpace("Docker " + f.version.Version + kind(f.info)))
		case "Podman Engine":
			// Podman 4.3 has no live update of limits in its Docker-compatible API.
			return ok(fmt.Sprintf("Podman %s%s; where it cannot change limits live, dockerbox up --recreate applies them", part.Version, kind(f.info)))
		}
	}
	return warn(fmt.Sprintf("neither Docker nor Podman, but %.60q; dockerbox is not tried with it", f.version.Platform.Name), "dockerbox conformance tells what works with it")
}

// kind says what sets a daemon apart: it changes who root in a container is.
func kind(info *system.Info) string {
	switch {
	case hasSecurity(info, "rootless"):
		return ", rootless"
	case hasSecurity(info, "userns"):
		return ", with userns-remap"
	default:
		return ""
	}
}

// hasSecurity reports whether the daemon names a security option.
func hasSecurity(info *system.Info, name string) bool {
	_, found := securityOption(info, name)
	return found
}

// securityOption finds an option of a daemon, "name=seccomp,profile=default" or, as old ones write it, "seccomp".
func securityOption(info *system.Info, name string) (option system.SecurityOpt, found bool) {
	if info == nil {
		return option, false
	}
	for _, text := range info.SecurityOptions { // one by one: a malformed one must not hide the others
		options, err := system.DecodeSecurityOptions([]string{text})
		if err == nil && len(options) == 1 && options[0].Name == name {
			return options[0], true
		}
	}
	return option, false
}

// seccompRow looks for the daemon's ability alone: a sandbox brings a profile of its own.
func seccompRow(f findings) verdict {
	option, found := securityOption(f.info, "seccomp")
	if !found {
		return warn("no system call is kept from a sandbox: the daemon has no seccomp", "run the daemon on a kernel with CONFIG_SECCOMP_FILTER")
	}
	detail := "on, with dockerbox's profile: Docker's, and the namespaces of a browser's sandbox"
	for _, o := range option.Options {
		if o.Key == "profile" && o.Value != "default" && o.Value != "builtin" {
			detail += "; it stands in for the daemon's " + o.Value
		}
	}
	return ok(detail)
}

func imageRow(f findings) verdict {
	switch {
	case errors.Is(f.imageErr, engine.ErrNotFound):
		return fail("the image "+image.DefaultTag+" is not on this daemon", "make image in the dockerbox repository builds it; or choose another image")
	case f.imageErr != nil:
		return failed(f.imageErr)
	}
	detail := image.DefaultTag
	if f.image.Config != nil {
		if version := f.image.Config.Labels[ocispec.AnnotationVersion]; version != "" {
			detail += " " + version
		}
	}
	if when, _, dated := strings.Cut(f.image.Created, "T"); dated {
		detail += ", made on " + when
	}
	return ok(detail)
}

func pullRow(f findings) verdict {
	return warn(strings.Join(f.pulling, "; "), "wait for it; docker pull shows each layer")
}

// architectures translates what kernels call themselves into Go's names.
var architectures = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

func agentRow(f findings) verdict {
	arch, known := architectures[f.info.Architecture]
	if !known {
		arch = f.info.Architecture
	}
	_, err := agentbin.Binary(arch)
	switch {
	case errors.Is(err, agentbin.ErrNotBuilt):
		return fail("this dockerbox was built without the agent for "+arch, "make build in the dockerbox repository builds it with all agents")
	case err != nil:
		return fail("there is no agent for the daemon's machine: "+err.Error(), "use a daemon on amd64 or arm64")
	}
	return ok("there is one for " + arch)
}

func containerRow(f findings) verdict {
	if f.probeErr != nil {
		return failed(f.probeErr)
	}
	return ok("one of the image was started and looked at from inside")
}

func userNamespaceRow(f findings) verdict {
	const use = "a browser's own sandbox needs them; commands do not"
	switch {
	case f.probe.userNamespaces == 0:
		return warn("a sandbox cannot make any: user.max_user_namespaces is 0; "+use, "sysctl -w user.max_user_namespaces=15000 on the daemon's machine")
	case f.probe.unprivileged == 0:
		return warn("only root can make them: kernel.unprivileged_userns_clone is 0; "+use, "sysctl -w kernel.unprivileged_userns_clone=1 on the daemon's machine")
	case f.probe.apparmor > 0:
		return warn("AppArmor restricts them: kernel.apparmor_restrict_unprivileged_userns is 1; "+use,
			"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 on the daemon's machine")
	case f.probe.userNamespaces == unknownLimit:
		return warn("the kernel does not say whether a sandbox can make any; "+use, "use a kernel with CONFIG_USER_NS")
	default:
		return ok(fmt.Sprintf("the kernel lets a sandbox make them, up to %d", f.probe.userNamespaces))
	}
}

func sandboxRow(f findings) verdict {
	if f.boxesErr != nil {
		return failed(f.boxesErr)
	}
	var agents []string
	for _, arch := range architectures {
		if sum, err := agentbin.Digest(arch); err == nil {
			agents = append(agents, agentVolume(sum))
		}
	}
	running := 0
	var old, unread []string
	for _, c := range f.boxes {
		if c.State == "running" {
			running++
		}
		address := identity{c.Labels[labelProfile], c.Labels[labelName]}.String()
		switch r, err := readRecord(c.Labels); {
		case err != nil:
			unread = append(unread, address)
		case len(agents) > 0 && !slices.Contains(agents, r.Agent):
			old = append(old, address)
		}
	}
	detail := fmt.Sprintf("%d, of which %d running", len(f.boxes), running)
	switch {
	case len(unread) > 0:
		slices.Sort(unread)
		return warn(fmt.Sprintf("%s; how these were made cannot be read: %s", detail, some(unread)),
			fmt.Sprintf("docker inspect shows their label %s; dockerbox rm -f removes what is not worth keeping", labelConfig))
	case len(old) > 0:
		slices.Sort(old)
		return warn(fmt.Sprintf("%s; made by another version of dockerbox, with its agent: %s", detail, some(old)),
			fmt.Sprintf("dockerbox rm -f --keep-home %s; the next use makes it anew, with its home", old[0]))
	}
	return ok(detail)
}

// some names the first of many.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
