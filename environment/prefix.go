package environment

import "github.com/hermes-dockerbox/dockerbox/contract"

// Prefix makes the argv that runs the words after it inside one container. It is pure: no I/O.
type Prefix struct {
	// Docker is the absolute path of a docker CLI, "" when there is none. CLIArgs make it reach our daemon with an empty environment.
	Docker  string
	CLIArgs []string
	// ContainerID is the engine's full id: a container that took over the name is never meant.
	ContainerID string
	// Self is the argv of this program up to its global flags, used where there is no docker CLI; nil when it cannot be told.
	Self []string
	// Name is the sandbox's name, for Self.
	Name string
}

// Argv returns the prefix for user ("" = the container's own). interactive keeps standard input open. The host appends words such as
// "bash", "-c", SCRIPT, which reach the program untouched; a single word ends at 128 KiB, the kernel's MAX_ARG_STRLEN.
func (p Prefix) Argv(user string, interactive bool) ([]string, error) {
	var argv []string
	target := p.ContainerID
	switch {
	case p.Docker != "":
		argv = append(append(argv, p.Docker), p.CLIArgs...)
	case len(p.Self) > 0:
		argv = append(argv, p.Self...)
		target = p.Name
	default:
		return nil, &contract.BackendError{
			Reason: "there is no docker command and no dockerbox program that could run inside the sandbox",
			Hint:   "install the docker CLI, or keep dockerbox where it was started from",
		}
	}
	argv = append(argv, "exec")
	if interactive {
		argv = append(argv, "-i")
	}
	if user != "" {
		argv = append(argv, "-u", user)
	}
	return append(argv, target), nil
}
