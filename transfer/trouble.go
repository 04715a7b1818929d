package transfer

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"unicode"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/archive"
)

// side is where something failed.
type side string

const (
	here  side = "on this machine"
	there side = "in the sandbox"
)

// hints are what to do next, on this machine and in the sandbox.
var hints = map[archive.Kind][2]string{
	archive.Missing:   {"look at the path; the directory that something goes into has to exist", "look at the path, which begins at / or ~; the directory that something goes into has to exist"},
	archive.Mismatch:  {"choose another destination, or remove what is in the way", "choose another destination, or remove what is in the way"},
	archive.Denied:    {"choose a path that you may use", "choose a path of the account's own, such as ~ or /tmp, or another account with --user"},
	archive.NoSpace:   {"make room on this machine and copy again", "make room there: a tmpfs such as /tmp has a fixed size, all else is on the daemon's disk"},
	archive.ReadOnly:  {"choose a path that can be written to", "choose a path that can be written to, such as ~ or /tmp"},
	archive.Directory: {"add -r to copy a directory with all that is in it", "add -r to copy a directory with all that is in it"},
	archive.Broken:    {"nothing outside the destination was written; look at what is in the sandbox before you copy from it again", "look at where the archive comes from"},
	archive.Partial:   {"everything else was copied", "everything else was copied; --user 0 may be allowed to read the rest"},
	archive.Other:     {"copy again", "copy again; dockerbox run NAME true tells whether the sandbox answers"},
}

// trouble is what people are told of a failure.
func trouble(where side, err error) error {
	var told *contract.BackendError
	if errors.As(err, &told) {
		return told
	}
	var fault *archive.Fault
	if !errors.As(err, &fault) {
		fault = &archive.Fault{Kind: archive.Other, Problem: because(err), Err: err}
	}
	choice, known := hints[fault.Kind]
	if !known {
		choice = hints[archive.Other]
	}
	hint := choice[0]
	if where == there {
		hint = choice[1]
	}
	reason := fault.Problem
	if fault.Path != "" {
		reason = archive.Shown(fault.Path) + " " + string(where) + ": " + reason
	}
	return &contract.BackendError{Reason: clean(reason), Hint: hint, Err: fault}
}

// IsPartial reports whether all was copied but what the error names.
func IsPartial(err error) bool {
	var fault *archive.Fault
	return errors.As(err, &fault) && fault.Kind == archive.Partial
}

func interrupted(ctx context.Context) error {
	return &contract.BackendError{
		Reason: "the copy was interrupted", Hint: "copy again; each file is there whole, as it was before, or not at all", Err: context.Cause(ctx),
	}
}

func unwritten(err error) error {
	return &contract.BackendError{
		Reason: "the archive could not be written: " + because(err), Hint: "see where standard output goes: a full disk, a device, a program that ended", Err: err,
	}
}

// because is why a file could not be used, without the system call and its name.
func because(err error) string {
	var file *fs.PathError
	if errors.As(err, &file) {
		return file.Err.Error()
	}
	return err.Error()
}

// clean keeps what comes from inside on one line and from commanding a terminal.
func clean(text string) string { return strings.Join(strings.FieldsFunc(text, unicode.IsControl), " ") }
