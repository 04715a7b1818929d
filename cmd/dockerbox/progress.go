package main

import (
	"io"
	"os"

	"github.com/moby/term"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// screen is where progress is drawn again and again. The zero value is none: a file, a pipe, a terminal that cannot.
type screen struct {
	there bool
	fd    uintptr
}

// screenOf finds out what w is.
func screenOf(w io.Writer) screen {
	fd, terminal := term.GetFdInfo(w)
	return screen{there: terminal && os.Getenv("TERM") != "dumb", fd: fd}
}

// size is how large it is now: people resize their terminals. What does not say is taken for a usual one.
func (s screen) size() (columns, rows int) {
	const usualColumns, usualRows = 80, 24
	size, err := term.GetWinsize(s.fd)
	if err != nil || size.Width == 0 || size.Height == 0 {
		return usualColumns, usualRows
	}
	return int(size.Width), int(size.Height)
}

// pullView shows one pull. step takes what is said of it, end leaves the terminal's cursor on a line of its own.
type pullView interface {
	step(provider.Progress)
	end()
}

// pullProgress shows how pulls go: on a terminal as docker does, in one line where that has no room, elsewhere in few lines. Not safe for
// concurrent use, as the provider reports one step at a time.
type pullProgress struct {
	w    io.Writer
	view pullView // nil: no pull is shown
}

func newPullProgress(w io.Writer) *pullProgress { return &pullProgress{w: w} }

// report takes one step. What cannot be written to stderr is lost, as progress may be.
func (b *pullProgress) report(p provider.Progress) {
	if b.view == nil || p.First {
		b.done()
		b.view = newPullView(b.w, p.Image)
	}
	b.view.step(p)
	if p.Whole.Done {
		b.done()
	}
}

// done ends what is shown.
func (b *pullProgress) done() {
	if b.view != nil {
		b.view.end()
		b.view = nil
	}
}

func newPullView(w io.Writer, image string) pullView {
	const narrow = 50 // a layer's line would be broken, and then no cursor finds back
	s := screenOf(w)
	if !s.there {
		return newPlainPull(w, image)
	}
	if columns, _ := s.size(); columns < narrow {
		return &linePull{w: w, screen: s, image: image}
	}
	return newLayerPull(w, s, image)
}
