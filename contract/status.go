package contract

import (
	"errors"
	"fmt"
	"time"
)

// Exit statuses with a meaning of their own. This file is the only place that produces them.
const (
	// ExitTimedOut: the command was killed because its time was up.
	ExitTimedOut = 124
	// ExitBackend: dockerbox itself failed; only the command line uses it, as docker does.
	ExitBackend = 125
	// ExitNotExecutable: the program cannot be executed, or the working directory cannot be entered.
	ExitNotExecutable = 126
	// ExitNotFound: there is no such program.
	ExitNotFound = 127
	// ExitInterrupted: the command was killed because its caller gave up.
	ExitInterrupted = 130
)

// ErrTimedOut is the context cause that makes [Environment.Execute] report [ExitTimedOut]; any other cause is an interrupt.
var ErrTimedOut = errors.New("timed out")

// ErrInterrupted is the context cause of a caller that gave up.
var ErrInterrupted = errors.New("interrupted")

// Killed completes the result of a command that was killed for cause after limit; a limit of 0 is one that only the caller knew.
// It appends the line people and models look for, on a line of its own.
func Killed(r Result, cause error, limit time.Duration) Result {
	line := "[Command interrupted]"
	if errors.Is(cause, ErrTimedOut) {
		r.ExitCode, r.TimedOut = ExitTimedOut, true
		if line = "[Command timed out]"; limit > 0 {
			line = fmt.Sprintf("[Command timed out after %s]", limit)
		}
	} else {
		r.ExitCode, r.Interrupted = ExitInterrupted, true
	}
	if n := len(r.Output); n > 0 && r.Output[n-1] != '\n' {
		line = "\n" + line
	}
	r.Output = append(r.Output, line...)
	return r
}

// StartFailure is why a command never ran.
type StartFailure int

// The reasons a command did not start.
const (
	Started       StartFailure = iota // it did start
	BadDirectory                      // the working directory cannot be entered
	NotExecutable                     // the program exists and cannot be executed
	NotFound                          // there is no such program
)

// Status is the exit status that stands for f. Started has none of its own and gives 0.
func (f StartFailure) Status() int {
	switch f {
	case BadDirectory, NotExecutable:
		return ExitNotExecutable
	case NotFound:
		return ExitNotFound
	default:
		return 0
	}
}

// Signalled is the status of a command that signal number sig ended, as shells report it.
func Signalled(sig int) int { return 128 + sig }
