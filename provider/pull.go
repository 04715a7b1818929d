package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Progress is one step of a pull.
type Progress struct {
	Image string
	// First is true for the first step of each pull.
	First bool
	// ID is the layer, empty for the whole image. Status is the daemon's word for what it does with it.
	ID, Status string
	// Current and Total are bytes of the layer, 0 when unknown.
	Current, Total int64
	// Whole is how far the image as a whole is after this step.
	Whole Pulled
}

// Pulled is how far the pull of an image is. The zero value is one of which nothing is known yet.
type Pulled struct {
	// Unpacking is true when every layer is on the daemon, Done when the image is, too.
	Unpacking, Done bool
	// Retrying is true while the daemon waits before it asks again for a layer whose connection was cut.
	Retrying bool
	// Bytes of Total have come or, while Unpacking, are unpacked; as they travel, compressed. Layers that the daemon had are not counted.
	// Total 0: not known yet.
	Bytes, Total int64
	// Estimated is true while the daemon has not said of every layer how large it is. Total then takes the others for average.
	Estimated bool
	// Percent never goes back, except from the last byte that came to the first that is unpacked.
	Percent int
}

// String is such as "37 % (150 of 404 MB)".
func (p Pulled) String() string {
	if p.Total == 0 {
		return fmt.Sprintf("%d %%", p.Percent)
	}
	about := ""
	if p.Estimated {
		about = "about "
	}
	const mb, whole = 1e6, 10
	digits := 0
	if p.Total < whole*mb {
		digits = 1
	}
	return fmt.Sprintf("%d %% (%.*f of %s%.*f MB)", p.Percent, digits, float64(p.Bytes)/mb, about, digits, float64(p.Total)/mb)
}

// sentence says of an image that it is not there yet.
func (p Pulled) sentence(ref string) string {
	doing, retrying := "pulled", ""
	if p.Unpacking {
		doing = "unpacked"
	}
	if p.Retrying {
		retrying = "; the connection to its registry was cut and is made again"
	}
	return fmt.Sprintf("the image %s is being %s: %s%s", ref, doing, p, retrying)
}

// localOnly reports whether ref is one of our own tags, which are built and never published under that name.
func localOnly(ref string) bool { return strings.HasPrefix(ref, "dockerbox/") }

// fetch gets an image that the daemon does not have, or says why that is not possible, or not yet.
func (p *Provider) fetch(ctx context.Context, ref string) error {
	if localOnly(ref) {
		hint := "build it first, or choose another image (--image, in Hermes terminal.backends.dockerbox.image)"
		if ref == image.DefaultTag {
			hint = "make image builds it, or choose another image (--image, in Hermes terminal.backends.dockerbox.image)"
		}
		return &contract.BackendError{Reason: "the image " + ref + " is not on this daemon", Hint: hint, Err: engine.ErrNotFound}
	}
	if p.background != nil {
		return p.background.wait(ctx, p, ref)
	}
	return p.pull(ctx, ref, func(Pulled) {})
}

// pull has the daemon pull an image and waits for it. observe sees how far it is.
func (p *Provider) pull(ctx context.Context, ref string, observe func(Pulled)) error {
	p.logf("pulling %s", ref)
	m, first := newMeter(), true
	err := p.engine.Pull(ctx, ref, func(message jsonmessage.JSONMessage) {
		step := m.take(message)
		step.Image, step.First, first = ref, first, false
		observe(step.Whole)
		p.report(step)
	})
	if err != nil {
		return err
	}
	whole := m.whole()
	whole.Done = true
	p.logf("pulled %s", ref)
	p.report(Progress{Image: ref, Whole: whole})
	return nil
}

// report hands on one step. Pulls in the background may run side by side, who is told hears of one step at a time.
func (p *Provider) report(step Progress) {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	p.progress(step)
}
