package contract

import (
	"errors"
	"fmt"
	"strings"
)

// BackendError is a failure of the backend itself: daemon, image, permission, stream. It is never a command's exit status.
// In Hermes it becomes EnvironmentConnectionError(reason, retry_hint), on the command line two lines and status 125.
type BackendError struct {
	// Reason is what failed and on what, one sentence without a full stop.
	Reason string
	// Hint is what to do next.
	Hint string
	// Err is the cause for errors.Is and errors.As; it is not part of the message. May be nil.
	Err error
}

// Error returns Reason alone: the hint is shown apart, the cause is for code.
func (e *BackendError) Error() string { return e.Reason }

// Unwrap returns the cause.
func (e *BackendError) Unwrap() error { return e.Err }

// Faults lists everything wrong with a configuration at once.
type Faults []Fault

// Fault is one wrong setting: Key as the user wrote it, Problem a sentence that says what is allowed.
type Fault struct {
	Key     string `json:"key"`
	Problem string `json:"problem"`
}

// Error joins all faults into one sentence.
func (f Faults) Error() string {
	parts := make([]string, len(f))
	for i, x := range f {
		parts[i] = x.Key + ": " + x.Problem
	}
	return strings.Join(parts, "; ")
}

// FileError is a failure about one file in the sandbox.
type FileError struct {
	Path    string
	Problem string
}

func (e *FileError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Problem) }

// ErrTooLarge is returned by [Environment.FetchFile] for a file above the limit.
var ErrTooLarge = errors.New("file is larger than the limit")
