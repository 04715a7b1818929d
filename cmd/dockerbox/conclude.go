package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// exitMisuse is the status of a command line that is wrong.
const exitMisuse = 2

// usageError is a mistake in the command line. hint is optional.
type usageError struct{ problem, hint string }

func (e *usageError) Error() string { return e.problem }

// statusError ends the program with a command's own status and not a word more: everything was said already.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

// conclude reports err, if any, and turns it into the exit status. path is the command, for the hint to its help.
func conclude(ctx context.Context, stderr io.Writer, path string, err error) int {
	var (
		status  statusError
		usage   *usageError
		faults  contract.Faults
		backend *contract.BackendError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		hint := usage.hint
		if hint == "" {
			hint = path + " --help shows what it takes"
		}
		complain(stderr, usage.problem, hint)
		return exitMisuse
	case errors.As(err, &faults):
		complain(stderr, faults.Error(), path+" --help shows what it takes")
		return exitMisuse
	case errors.Is(context.Cause(ctx), contract.ErrInterrupted):
		note(stderr, "interrupted")
		return contract.ExitInterrupted
	case errors.As(err, &backend):
		complain(stderr, backend.Reason, backend.Hint)
	default:
		complain(stderr, err.Error(), "run the command again; if it stays, report it with the output of dockerbox version")
	}
	return contract.ExitBackend
}

// complain writes the two lines of a failure. What cannot be written to stderr cannot be reported anywhere.
func complain(stderr io.Writer, problem, hint string) {
	_, _ = fmt.Fprintf(stderr, "dockerbox: error: %s\n", oneLine(problem))
	if hint != "" {
		_, _ = fmt.Fprintf(stderr, "dockerbox: hint: %s\n", oneLine(hint))
	}
}

// note writes a line that is neither the answer nor a failure.
func note(stderr io.Writer, text string) {
	_, _ = fmt.Fprintf(stderr, "dockerbox: %s\n", oneLine(text))
}

// oneLine keeps a message on its line and from commanding the terminal, whatever a daemon or an image put into it.
func oneLine(s string) string { return strings.Join(strings.FieldsFunc(s, unicode.IsControl), " ") }

// shown is a value for a table on a terminal: as it is, or quoted where it would do what oneLine keeps a message from.
func shown(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
