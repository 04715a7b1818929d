package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// sandbox is one container as an environment needs it.
type sandbox struct {
	engine Engine
	id     string
}

// agentUser: the agent runs as root, the one account that can become any other before it starts a command.
const agentUser = "0:0"

// Attach implements [environment.Container].
func (s sandbox) Attach(ctx context.Context) (environment.Stream, error) {
	return s.engine.Exec(ctx, s.id, agentUser, []string{environment.AgentPath, "attach"})
}

// State implements [environment.Container].
func (s sandbox) State(ctx context.Context) (environment.State, error) {
	found, err := s.engine.Inspect(ctx, s.id)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return environment.Gone, nil
	case err != nil:
		return environment.Gone, err
	case found.State.Paused:
		return environment.Paused, nil
	case found.State.Running:
		return environment.Running, nil
	default:
		return environment.Stopped, nil
	}
}

// owner says who made a container: account and machine, for people who find it.
func owner() string {
	name := fmt.Sprint(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

func asBackend(err error) (*contract.BackendError, bool) {
	var b *contract.BackendError
	ok := errors.As(err, &b)
	return b, ok
}
