package main

import (
	"fmt"
	"io"

	"github.com/moby/term"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// buildProgress shows how a build goes: on a terminal one line that is drawn again with whatever the step prints, elsewhere one line for
// each step. Not safe for concurrent use, as the provider reports from one goroutine.
type buildProgress struct {
	w     io.Writer
	width int // of the terminal; 0: there is none
	drawn bool
}

func newBuildProgress(w io.Writer) *buildProgress {
	b := &buildProgress{w: w}
	if fd, terminal := term.GetFdInfo(w); terminal {
		const usual = 80
		b.width = usual
		if size, err := term.GetWinsize(fd); err == nil && size.Width > 0 {
			b.width = int(size.Width)
		}
	}
	return b
}

// report takes one step. What cannot be written to stderr is lost, as progress may be.
func (b *buildProgress) report(p provider.BuildProgress) {
	const mostText = 60
	step := fmt.Sprintf("step %d of %d: ", p.Step, p.Steps)
	switch {
	case b.width > 0:
		text := p.Output
		if text == "" {
			text = p.Instruction
		}
		_, _ = fmt.Fprintf(b.w, "\r\x1b[K%s", abridge(step+text, b.width-1))
		b.drawn = true
	case p.Output == "":
		note(b.w, step+abridge(p.Instruction, mostText))
	}
}

// done leaves the terminal's cursor on a line of its own.
func (b *buildProgress) done() {
	if b.drawn {
		_, _ = fmt.Fprint(b.w, "\r\x1b[K")
		b.drawn = false
	}
}

// abridge shortens a text to at most limit characters.
func abridge(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:max(0, limit-1)]) + "…"
}
