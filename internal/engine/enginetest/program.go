//go:build linux

package enginetest

import (
	"io"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Programs sets what programs print in containers that are not sandboxes. Nothing runs there: what they would print about the container, such
// as its limits, would be about this machine. Without it they print nothing.
func (e *Engine) Programs(output func(argv []string) string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.programs = output
}

// play pretends to run a program. e.mu is held.
func (e *Engine) play(argv []string) engine.Conn {
	text := ""
	if e.programs != nil {
		text = e.programs(argv)
	}
	return played{strings.NewReader(text)}
}

// played is the stream of a program that never ran.
type played struct{ io.Reader }

// Write implements [engine.Conn]: nobody reads it.
func (played) Write(p []byte) (int, error) { return len(p), nil }

// Close implements [engine.Conn].
func (played) Close() error { return nil }

// Stderr implements [engine.Conn].
func (played) Stderr() string { return "" }
