package engine

import (
	"context"

	"github.com/docker/docker/api/types/image"
)

// Image describes a local image. [ErrNotFound] when it is not here.
func (e *Engine) Image(ctx context.Context, ref string) (image.InspectResponse, error) {
	if err := e.ready(ctx); err != nil {
		return image.InspectResponse{}, err
	}
	found, err := e.api.ImageInspect(ctx, ref)
	return found, e.explain("looking for image "+ref, err)
}
