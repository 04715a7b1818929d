package main

import (
	"fmt"
	"io"

	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// buildProgress shows how a build goes: on a terminal a line for each step, that of the last one with whatever the step prints, elsewhere one
// line for each step. Not safe for concurrent use, as the provider reports from one goroutine.
type buildProgress struct {
	w       io.Writer
	screen  screen
	drawing *drawing               // nil: nothing is drawn
	at      provider.BuildProgress // the step that was drawn last
}

func newBuildProgress(w io.Writer) *buildProgress { return &buildProgress{w: w, screen: screenOf(w)} }

// report takes one step. What cannot be written to stderr is lost, as progress may be.
func (b *buildProgress) report(p provider.BuildProgress) {
	const mostText = 60
	if !b.screen.there {
		if p.Output == "" {
			note(b.w, fmt.Sprintf("step %d of %d: %s", p.Step, p.Steps, abridge(p.Instruction, mostText)))
		}
		return
	}
	if b.drawing == nil {
		b.drawing = newDrawing(b.w, b.screen)
	}
	if p.Step != b.at.Step {
		b.settle()
	}
	b.at = p
	text := p.Output
	if text == "" {
		text = p.Instruction
	}
	b.draw(text)
}

// settle gives the step that was drawn last its own words back.
func (b *buildProgress) settle() {
	if b.at.Output != "" {
		b.draw(b.at.Instruction)
	}
}

func (b *buildProgress) draw(text string) {
	const between = 4 // what is drawn between the two and at the end, and a column that stays free
	columns, _ := b.screen.size()
	id := fmt.Sprintf("step %d of %d", b.at.Step, b.at.Steps)
	b.drawing.show(jsonmessage.JSONMessage{ID: id, Status: abridge(oneLine(text), columns-len(id)-between), Progress: &jsonmessage.JSONProgress{}})
}

// done leaves the terminal's cursor on a line of its own.
func (b *buildProgress) done() {
	if b.drawing != nil {
		b.settle()
		b.drawing.end()
		b.drawing = nil
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
