package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// homeIsFree fails when containers other than the sandbox's own use the volume with its home.
func (p *Provider) homeIsFree(ctx context.Context, id identity) error {
	users, err := p.engine.VolumeUsers(ctx, id.home())
	if err != nil {
		return err
	}
	var others []string
	for _, name := range users {
		if name != id.container() {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return &contract.BackendError{
		Reason: fmt.Sprintf("the volume %s with the home of sandbox %q is used by container %s", id.home(), id, strings.Join(others, ", ")),
		Hint:   fmt.Sprintf("remove what uses it first, or let dockerbox rm -f --keep-home %s leave it there", id), Err: engine.ErrConflict,
	}
}

// removeHome removes the volume with the home of a sandbox whose container is gone.
func (p *Provider) removeHome(ctx context.Context, id identity) error {
	err := p.engine.RemoveVolume(ctx, id.home())
	if errors.Is(err, engine.ErrConflict) {
		if busy := p.homeIsFree(ctx, id); busy != nil {
			return busy
		}
	}
	return err
}
