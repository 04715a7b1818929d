package provider

import (
	"context"
	"fmt"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Follow is [Provider.Attach] for what goes on beside others for long, such as a forwarded port: it starts the sandbox once, and later what
// somebody does to that counts. One that was stopped or removed is not brought back; one that is started or made again under its address is
// connected to.
func (p *Provider) Follow(ctx context.Context, address string) (contract.Environment, error) {
	b, err := p.wake(ctx, address)
	if err != nil {
		return nil, err
	}
	return p.connectOr(ctx, b, "", func(ctx context.Context) (box, error) {
		found, again, err := p.find(ctx, address)
		if err == nil && !found.State.Running {
			err = &contract.BackendError{
				Reason: fmt.Sprintf("sandbox %q is not running any more", address),
				Hint:   "dockerbox start " + address + " starts it again",
			}
		}
		return again, err
	})
}
