package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/docker/docker/api/types/container"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Image is an image of the daemon.
type Image struct {
	// ID is the engine's, Size in bytes with the layers it shares.
	ID   string
	Size int64
	// Platform and Config are the image's own words about itself.
	ocispec.Platform
	Config ocispec.ImageConfig
	// Machine is the daemon's kind of processor in the words of Platform; empty for one that dockerbox does not know.
	Machine string
}

// Image describes an image that the daemon has; it pulls none. Errors are [contract.BackendError].
func (p *Provider) Image(ctx context.Context, ref string) (Image, error) {
	found, err := p.engine.Image(ctx, ref)
	if errors.Is(err, engine.ErrNotFound) {
		return Image{}, notHere(ref, err)
	}
	if err != nil {
		return Image{}, err
	}
	info, err := p.engine.Info(ctx)
	if err != nil {
		return Image{}, err
	}
	i := Image{
		ID: found.ID, Size: found.Size, Machine: machines[info.Architecture],
		Platform: ocispec.Platform{OS: found.Os, Architecture: found.Architecture, Variant: found.Variant},
	}
	if found.Config != nil {
		i.Config = found.Config.ImageConfig
	}
	return i, nil
}

// notHere says how an image gets to the daemon.
func notHere(ref string, cause error) error {
	hint := fmt.Sprintf("docker pull %s fetches it, if a registry has it", ref)
	switch {
	case ref == image.DefaultTag:
		hint = "dockerbox image build makes it"
	case localOnly(ref):
		hint = "build it first: no registry has an image of that name"
	}
	return &contract.BackendError{Reason: fmt.Sprintf("the image %s is not on this daemon", ref), Hint: hint, Err: cause}
}

// Lacks returns which of the paths an image does not have, in their order. Nothing of the image runs, so it may be for another kind of
// processor; a link counts as there. Errors are [contract.BackendError].
func (p *Provider) Lacks(ctx context.Context, imageID string, paths []string) ([]string, error) {
	id, remove, err := p.helper(ctx, &container.Config{
		Image: imageID, Entrypoint: []string{"never-run"}, Labels: map[string]string{labelKind: kindHelper},
	}, &container.HostConfig{NetworkMode: "none"})
	if err != nil {
		return nil, err
	}
	defer remove()
	var lacks []string
	for _, path := range paths {
		switch _, err := p.engine.FileSize(ctx, id, path); {
		case errors.Is(err, engine.ErrNotFound):
			lacks = append(lacks, path)
		case err != nil:
			return nil, err
		}
	}
	return lacks, nil
}
