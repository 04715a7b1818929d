package environment

import (
	"slices"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// checkTerminal refuses a terminal where there can be none.
func checkTerminal(req contract.Request) error {
	if req.Terminal == nil || len(req.Argv) > 0 {
		return nil
	}
	return &contract.BackendError{
		Reason: "a terminal is for an argv, not for a command with lasting state",
		Hint:   "this is a fault in the caller, not in the sandbox",
	}
}

// terminalSize is a size in the agent's terms.
func terminalSize(s contract.TerminalSize) wire.Size { return wire.Size{Rows: s.Rows, Cols: s.Cols} }

// offers returns an error when the agent is of a version that would ignore what run asks for.
func (c *conn) offers(run wire.Run) error {
	if run.Terminal == nil || slices.Contains(c.hello.Features, wire.FeatureTerminal) {
		return nil
	}
	return &contract.BackendError{
		Reason: "the agent in the sandbox is of an older version, which has no terminals",
		Hint:   "dockerbox up --recreate NAME gives the sandbox a new one and keeps its home",
	}
}

// resize passes sizes on until the command is over. It sends from a goroutine of its own, because whoever takes the output may wait, and ends by
// itself: at the latest when the stream does, if a frame is stuck in it.
func (k *call) resize(out *wire.Writer, sizes <-chan contract.TerminalSize) (stop func()) {
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-over:
				return
			case s, more := <-sizes:
				if !more || out.Write(wire.Encode(wire.TypeResize, k.id, terminalSize(s))) != nil {
					return
				}
			}
		}
	}()
	return func() { close(over) }
}
