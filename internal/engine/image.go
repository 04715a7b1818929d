package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/jsonmessage"
)

// Image describes a local image. [ErrNotFound] when it is not here.
func (e *Engine) Image(ctx context.Context, ref string) (image.InspectResponse, error) {
	if err := e.ready(ctx); err != nil {
		return image.InspectResponse{}, err
	}
	found, err := e.api.ImageInspect(ctx, ref)
	return found, e.explain("looking for image "+ref, err)
}

// Pull fetches an image and hands every progress message to report, which may be nil, in order and from this goroutine. Its errors say that
// the image was missing in the first place.
func (e *Engine) Pull(ctx context.Context, ref string, report func(jsonmessage.JSONMessage)) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	stream, err := e.api.ImagePull(ctx, ref, image.PullOptions{})
	if err != nil {
		return e.explainPull(ref, err)
	}
	defer func() { _ = stream.Close() }() // read only: nothing to lose
	messages := json.NewDecoder(stream)
	for {
		var m jsonmessage.JSONMessage
		switch err := messages.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return e.explainPull(ref, err)
		case m.Error != nil:
			return e.explainPull(ref, m.Error)
		}
		if report != nil {
			report(m)
		}
	}
}
