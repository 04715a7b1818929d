package archive

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// Kind is what a fault calls for.
type Kind int

// The kinds of faults. Their numbers are exit statuses of the agent, so they stay as they are.
const (
	Other     Kind = 1  // anything else
	Missing   Kind = 3  // there is no such file or directory
	Mismatch  Kind = 4  // a directory where there should be none, or the other way round
	Denied    Kind = 5  // permissions
	NoSpace   Kind = 10 // the disk or a quota is full
	ReadOnly  Kind = 11 // the file system cannot be written to
	Directory Kind = 12 // the source is a directory, and only files were asked for
	Broken    Kind = 13 // the stream is not what a stream should be
	Partial   Kind = 14 // everything was copied but what was complained about
)

// Fault is why a copy failed. Path is a file's, as a person would name it; it may be empty, and any bytes.
type Fault struct {
	Kind    Kind
	Path    string
	Problem string
	Err     error // the cause, may be nil
}

// Error is the problem behind the file's name.
func (f *Fault) Error() string {
	if f.Path == "" {
		return f.Problem
	}
	return Shown(f.Path) + ": " + f.Problem
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Shown is a name for people: as it is, or quoted where it would disturb a terminal or a line.
func Shown(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(name)
	}
	return name
}

// faultOf explains an error of the system about path.
func faultOf(path string, err error) *Fault {
	var known *Fault
	if errors.As(err, &known) {
		if known.Path == "" && known.Kind != Broken {
			known.Path = path
		}
		return known
	}
	f := &Fault{Kind: Other, Path: path, Problem: because(err), Err: err}
	for kind, errnos := range kinds {
		for _, errno := range errnos {
			if errors.Is(err, errno) {
				f.Kind = kind
			}
		}
	}
	return f
}

var kinds = map[Kind][]error{
	Missing:  {fs.ErrNotExist},
	Denied:   {fs.ErrPermission},
	NoSpace:  {syscall.ENOSPC, quota},
	ReadOnly: {syscall.EROFS},
	Mismatch: {syscall.EISDIR, syscall.ENOTDIR},
}

// because is what the system says, without the operation and the path around it.
func because(err error) string {
	for {
		var (
			path *fs.PathError
			link *os.LinkError
			call *os.SyscallError
		)
		switch {
		case errors.As(err, &path):
			err = path.Err
		case errors.As(err, &link):
			err = link.Err
		case errors.As(err, &call):
			err = call.Err
		default:
			return err.Error()
		}
	}
}
