package environment

import (
	"context"
	"errors"
	"math"
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
	// Screen is how many of them are an empty desktop.
	Screen int
	// Idle is how long ago a command or a client of the sandbox began or ended, Clients how many hosts are connected that do more than look.
	// Both count only when Told is set: an older agent does not know them.
	Idle    time.Duration
	Clients int
	Told    bool
}

// jobsLimit bounds the question for jobs right after the handshake; the agent may look again for 2 s.
const jobsLimit = 10 * time.Second

// ErrCannotTell is the cause of the error for an agent that answers, and cannot tell what runs.
var ErrCannotTell = errors.New("the agent cannot tell")

// LookForJobs asks the agent of a running container what runs in it, over a stream of its own. An agent that is older than the question
// is a [*contract.BackendError] like any other trouble: then jobs may live.
func LookForJobs(ctx context.Context, c Container, version string) (Jobs, error) {
	found, _, err := askOnce(ctx, c, version, wire.Query{Op: wire.OpJobs}, jobsLimit)
	return found, err
}

// Retire asks the agent of a running container to take no connection for the next 5 s, in which the caller stops the container, if nothing
// runs there but an empty desktop, nobody is connected, and nothing was used for idle. retired says whether it does; then nobody comes in
// between this look and the stop.
func Retire(ctx context.Context, c Container, version string, idle time.Duration) (found Jobs, retired bool, err error) {
	return askOnce(ctx, c, version, wire.Query{Op: wire.OpRetire, LimitMS: idle.Milliseconds()}, jobsLimit)
}

// AskToEnd has the agent ask every process of a running container to end, by TERM, and waits until all have or grace is over. What is left
// then is the caller's to end. The container itself goes on.
func AskToEnd(ctx context.Context, c Container, version string, grace time.Duration) (Jobs, error) {
	left, _, err := askOnce(ctx, c, version, wire.Query{Op: wire.OpEnd, LimitMS: grace.Milliseconds()}, grace+jobsLimit)
	return left, err
}

// askOnce attaches for a single question, which is no use of the sandbox.
func askOnce(ctx context.Context, box Container, version string, q wire.Query, limit time.Duration) (found Jobs, retired bool, err error) {
	stream, err := box.Attach(ctx)
	if err != nil {
		return Jobs{}, false, err
	}
	c, err := handshake(ctx, stream, version, true)
	if err != nil {
		return Jobs{}, false, err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := c.query(ctx, q)
	if err != nil {
		return Jobs{}, false, err
	}
	if answer.Error != "" {
		return Jobs{}, false, &contract.BackendError{
			Reason: "the agent in the sandbox cannot tell what runs there: " + clean(answer.Error),
			Hint:   "an agent of an older version does not know that question; dockerbox up --recreate NAME gives the sandbox a new one and keeps its home", Err: ErrCannotTell,
		}
	}
	found = Jobs{Count: max(0, answer.Jobs), Example: clean(answer.Example), Screen: min(max(0, answer.Screen), max(0, answer.Jobs))}
	if u := answer.Use; u != nil {
		const most = math.MaxInt64 / int64(time.Millisecond)
		found.Told, found.Clients, found.Idle = true, max(0, u.Clients), time.Duration(min(max(0, u.IdleMS), most))*time.Millisecond
	}
	return found, answer.Retired, nil
}
