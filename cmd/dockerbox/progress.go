package main

import (
	"fmt"
	"io"

	"github.com/docker/go-units"
	"github.com/moby/term"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// pullProgress shows how a pull goes: one line that is drawn again and again on a terminal, one line at the start elsewhere. Not safe
// for concurrent use, as the provider reports from one goroutine.
type pullProgress struct {
	w      io.Writer
	redraw bool
	image  string
	layers map[string]provider.Progress
	drawn  bool
}

func newPullProgress(w io.Writer) *pullProgress {
	_, terminal := term.GetFdInfo(w)
	return &pullProgress{w: w, redraw: terminal, layers: map[string]provider.Progress{}}
}

// report takes one step. What cannot be written to stderr is lost, as progress may be.
func (b *pullProgress) report(p provider.Progress) {
	if b.image != p.Image {
		b.done()
		b.image = p.Image
		clear(b.layers)
		if !b.redraw {
			note(b.w, "pulling "+p.Image)
		}
	}
	if !b.redraw {
		return
	}
	if p.ID != "" {
		// The last size known stays: "Pull complete" comes without one.
		if old, ok := b.layers[p.ID]; ok && p.Total == 0 {
			p.Current, p.Total = old.Total, old.Total
		}
		b.layers[p.ID] = p
	}
	var current, total int64
	for _, l := range b.layers {
		current, total = current+l.Current, total+l.Total
	}
	line := "pulling " + b.image
	if total > 0 {
		line = fmt.Sprintf("%s: %s of %s", line, units.HumanSize(float64(current)), units.HumanSize(float64(total)))
	}
	_, _ = fmt.Fprintf(b.w, "\r\x1b[K%s", oneLine(line))
	b.drawn = true
}

// done leaves the terminal's cursor on a line of its own.
func (b *pullProgress) done() {
	if b.drawn {
		_, _ = fmt.Fprint(b.w, "\r\x1b[K")
		b.drawn = false
	}
}
