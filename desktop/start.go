package desktop

import (
	"context"
	"image"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/rfb"
)

// startLimit bounds a start. The script gives up before.
const startLimit = 45 * time.Second

// Start takes the sandbox's screen, or starts one, and returns when its desktop and its panel are there to be seen. It may be called
// concurrently, by several processes: one screen results. ctx ends a start half-way; nothing of it goes on then. Errors are
// [*contract.BackendError].
func Start(ctx context.Context, env contract.Environment, o Options) (Status, error) {
	if o.Profile == "" {
		o.Profile = defaultProfile
	}
	if o.Geometry == "" {
		o.Geometry = defaultGeometry
	}
	if err := o.check(); err != nil {
		return Status{}, err
	}
	s, err := locate(ctx, env)
	if err != nil {
		return Status{}, err
	}
	for swept := false; ; swept = true {
		said, status, err := s.run(ctx, startScript, launcherScript, o.Profile, o.Geometry)
		switch {
		case err != nil:
			return Status{}, err
		case status == exitStale && !swept:
			if err := s.housekeep(ctx); err != nil {
				return Status{}, err
			}
		case status != 0:
			return Status{}, s.startError(ctx, status, said, o)
		default:
			st, err := s.status(said)
			if panel, is := parseRect(said.first("panel")); err == nil && is {
				err = drawn(ctx, env, st, panel)
			}
			return st, err
		}
	}
}

// drawLimit bounds the wait for a panel to be drawn. One that stays of a single colour is no failure.
const drawLimit = 2 * time.Second

// drawn waits until more than one colour is in a part of the screen. A window is mapped before its program draws it, and a picture that is
// taken in between shows a hole.
func drawn(ctx context.Context, env contract.Environment, screen Status, part image.Rectangle) error {
	limited, cancel := context.WithTimeout(ctx, drawLimit)
	defer cancel()
	stream := Open(limited, env, screen)
	conn, err := rfb.Dial(stream)
	for err == nil {
		var picture *image.RGBA
		if picture, err = conn.Part(part); err == nil {
			if !plain(picture) {
				return stream.Close()
			}
			err = conn.Await(part)
		}
	}
	if road := stream.Close(); ctx.Err() == nil && limited.Err() == nil {
		return streamError(env, err, road)
	}
	return context.Cause(ctx)
}

// plain reports whether a picture has one colour, or none.
func plain(p *image.RGBA) bool {
	const pixel = 4
	for i := pixel; i < len(p.Pix); i++ {
		if p.Pix[i] != p.Pix[i-pixel] {
			return false
		}
	}
	return true
}
