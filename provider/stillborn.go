package provider

import (
	"context"
	"fmt"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// machines translates what kernels call a kind of processor into what images call it.
var machines = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

// stillborn explains a new box whose container ended at once with that status.
func (p *Provider) stillborn(ctx context.Context, b box, status int, cause error) error {
	found, err := p.engine.Image(ctx, b.record.Image)
	if err == nil {
		// The machine may run others' programs by emulation, so that is a reason only now that it has failed.
		if info, err := p.engine.Info(ctx); err == nil && machines[info.Architecture] != "" && machines[info.Architecture] != found.Architecture {
			here := machines[info.Architecture]
			return &contract.BackendError{
				Reason: fmt.Sprintf("the image %s is for %s, and the daemon's machine is %s", b.record.Image, found.Architecture, here),
				Hint:   fmt.Sprintf("choose an image for %s (--image, in Hermes terminal.backends.dockerbox.image), or install emulation there (qemu-user-static)", here), Err: cause,
			}
		}
	}
	return &contract.BackendError{
		Reason: fmt.Sprintf("the container of sandbox %q ended at once, with status %d", b.id, status),
		Hint:   "very low limits do that (--memory, --pids, --ulimit among the extra arguments), and so does an image for another kind of processor", Err: cause,
	}
}
