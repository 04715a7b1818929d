package environment

import (
	"context"
	"errors"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// Jobs is what runs in a container on somebody's behalf: commands of any client, what they left in the background, and what came in by
// other ways.
type Jobs struct {
	// Count is a number of processes, Example the name of one of them as the kernel has it, printable, "" when it could not be read.
	Count   int
	Example string
}

// jobsLimit bounds the question for jobs right after the handshake; the agent may look again for 2 s.
const jobsLimit = 10 * time.Second

// ErrCannotTell is the cause of the error for an agent that answers, and cannot tell what runs.
var ErrCannotTell = errors.New("the agent cannot tell")

// LookForJobs asks the agent of a running container what runs in it, over a stream of its own. An agent that is older than the question
// is a [*contract.BackendError] like any other trouble: then jobs may live.
func LookForJobs(ctx context.Context, c Container, version string) (Jobs, error) {
	return askOnce(ctx, c, version, wire.Query{Op: wire.OpJobs}, jobsLimit)
}

// AskToEnd has the agent ask every process of a running container to end, by TERM, and waits until all have or grace is over. What is left
// then is the caller's to end. The container itself goes on.
func AskToEnd(ctx context.Context, c Container, version string, grace time.Duration) (Jobs, error) {
	return askOnce(ctx, c, version, wire.Query{Op: wire.OpEnd, LimitMS: grace.Milliseconds()}, grace+jobsLimit)
}

// askOnce attaches for a single question.
func askOnce(ctx context.Context, box Container, version string, q wire.Query, limit time.Duration) (Jobs, error) {
	stream, err := box.Attach(ctx)
	if err != nil {
		return Jobs{}, err
	}
	c, err := handshake(ctx, stream, version)
	if err != nil {
		return Jobs{}, err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := c.query(ctx, q)
	if err != nil {
		return Jobs{}, err
	}
	if answer.Error != "" {
		return Jobs{}, &contract.BackendError{
			Reason: "the agent in the sandbox cannot tell what runs there: " + clean(answer.Error),
			Hint:   "an agent of an older version does not know that question; dockerbox up --recreate NAME gives the sandbox a new one and keeps its home", Err: ErrCannotTell,
		}
	}
	return Jobs{Count: max(0, answer.Jobs), Example: clean(answer.Example)}, nil
}
