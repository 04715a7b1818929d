package environment

import (
	"fmt"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// confined refuses a sandbox whose processes are not kept from everything that a hardened one's are: daemons drop settings they do not know, and
// do not say so. c is what the kernel said to the agent, which runs before anything else can.
func confined(name string, c *wire.Confinement) error {
	if c == nil {
		return &contract.BackendError{
			Reason: fmt.Sprintf("whether sandbox %q is hardened cannot be told: its agent is of an older version", name),
			Hint:   "dockerbox up --recreate " + name + " makes it anew and keeps its home",
		}
	}
	var lacks []string
	for _, is := range []struct {
		so   bool
		what string
	}{
		{c.NoNewPrivileges, "no-new-privileges does not apply"},
		{c.Filtered, "system calls are not filtered"},
		{c.ReadOnly, "the root directory can be written to"},
		{c.Capabilities == 0, fmt.Sprintf("capabilities are left (%#x)", c.Capabilities)},
	} {
		if !is.so {
			lacks = append(lacks, is.what)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return &contract.BackendError{
		Reason: fmt.Sprintf("the daemon does not keep sandbox %q hardened: %s", name, strings.Join(lacks, ", ")),
		Hint:   "choose another daemon, or security standard (--profile, in Hermes terminal.backends.dockerbox.security)",
	}
}
