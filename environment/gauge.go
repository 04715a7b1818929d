package environment

import (
	"context"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// Gauge asks the agent of a running container what the container uses, again and again over one connection. That is no use of the sandbox. Not safe
// for concurrent use.
type Gauge struct{ conn *conn }

// Usage is what a container used; see the fields of [wire.Usage].
type Usage = wire.Usage

// gaugeLimit bounds one question.
const gaugeLimit = 5 * time.Second

// OpenGauge connects to the agent. Close must be called.
func OpenGauge(ctx context.Context, c Container, version string) (*Gauge, error) {
	stream, err := c.Attach(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := handshake(ctx, stream, version, true)
	if err != nil {
		return nil, err
	}
	return &Gauge{conn}, nil
}

// Read asks once. An agent that is older than the question is an error like any other trouble.
func (g *Gauge) Read(ctx context.Context) (Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, gaugeLimit)
	defer cancel()
	answer, err := g.conn.query(ctx, wire.Query{Op: wire.OpUsage})
	if err != nil {
		return Usage{}, err
	}
	if answer.Usage == nil {
		return Usage{}, &contract.BackendError{
			Reason: "the agent in the sandbox cannot tell what it uses: " + clean(answer.Error),
			Hint:   "dockerbox up --recreate NAME gives the sandbox a new one and keeps its home", Err: ErrCannotTell,
		}
	}
	return *answer.Usage, nil
}

// Close hangs up.
func (g *Gauge) Close() { g.conn.close() }
