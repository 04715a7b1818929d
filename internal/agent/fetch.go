//go:build linux

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Exit statuses of fetch and realpath. The sentence on stderr is what is wrong with the file, without its name: dockerbox shows the two
// together.
const (
	exitMissing    = 3
	exitNotRegular = 4
	exitUnreadable = 5
	exitTooLarge   = 6
)

// problem is a failure about a file with the exit status that stands for it.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func fileProblem(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return &problem{exitMissing, reason(err)}
	default:
		return &problem{exitUnreadable, reason(err)}
	}
}

// reason is what the system says, without the operation and the path around it.
func reason(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

func complain(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, err)
	var p *problem
	if errors.As(err, &p) {
		return p.status
	}
	return exitFailed
}

// fetch copies a regular file, links followed, to stdout. limit is in bytes, 0 none; of a file that turns out larger while it is read,
// at most limit bytes have gone out.
func fetch(file, limit string, stdout, stderr io.Writer) int {
	most, err := strconv.ParseInt(limit, 10, 64)
	if err != nil || most < 0 {
		fmt.Fprintln(stderr, usage)
		return exitUsage
	}
	return complain(copyFile(file, most, stdout), stderr)
}

func copyFile(file string, most int64, w io.Writer) error {
	// Looked at before it is opened: opening a device can do things, opening a pipe can wait.
	if err := regular(unix.Stat, file); err != nil {
		return err
	}
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return fileProblem(err)
	}
	f := os.NewFile(uintptr(fd), file)
	defer f.Close()
	var size int64
	err = regular(func(_ string, st *unix.Stat_t) error {
		err := unix.Fstat(fd, st)
		size = st.Size
		return err
	}, file)
	if err != nil {
		return err
	}
	tooLarge := &problem{exitTooLarge, "too large"}
	if most == 0 {
		_, err = io.Copy(w, f)
		return fileProblem(err)
	}
	if size > most {
		return tooLarge
	}
	n, err := io.CopyN(w, f, most)
	if err == nil && n == most { // exactly the limit, or more
		if n, _ := f.Read(make([]byte, 1)); n > 0 {
			return tooLarge
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fileProblem(err)
}

func regular(stat func(string, *unix.Stat_t) error, file string) error {
	var st unix.Stat_t
	if err := stat(file, &st); err != nil {
		return fileProblem(err)
	}
	if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFDIR {
		return &problem{exitNotRegular, "is a directory"}
	} else if kind != unix.S_IFREG {
		return &problem{exitNotRegular, "is not a regular file"}
	}
	return nil
}

func printRealpath(file string, stdout, stderr io.Writer) int {
	real, err := realpath(file)
	if err == nil {
		_, err = io.Copy(stdout, strings.NewReader(real)) // as it is: a name may end in a newline
	}
	return complain(fileProblem(err), stderr)
}

// maxLinks is how many links the kernel follows in one path.
const maxLinks = 40

// realpath resolves file as readlink -f does: every link is followed, and the last part need not exist. Paths are bytes, not text.
func realpath(file string) (string, error) {
	if file == "" {
		return "", unix.ENOENT
	}
	done, links := "/", 0
	if !path.IsAbs(file) {
		cwd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		if done, err = realpath(cwd); err != nil {
			return "", err
		}
	}
	for rest := file; rest != ""; {
		var part string
		var slash bool
		part, rest, slash = strings.Cut(rest, "/")
		switch part {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := strings.TrimSuffix(done, "/") + "/" + part
		var st unix.Stat_t
		err := unix.Lstat(next, &st)
		last := strings.Trim(rest, "/") == ""
		switch {
		case errors.Is(err, unix.ENOENT) && last:
			return next, nil
		case err != nil:
			return "", err
		case st.Mode&unix.S_IFMT != unix.S_IFLNK:
			if st.Mode&unix.S_IFMT != unix.S_IFDIR && slash {
				return "", unix.ENOTDIR
			}
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", unix.ELOOP
		}
		target, err := readlink(next)
		if err != nil {
			return "", err
		}
		if path.IsAbs(target) {
			done = "/"
		}
		if slash {
			target += "/" + rest
		}
		rest = target
	}
	return done, nil
}

func readlink(file string) (string, error) {
	for size := 256; ; size *= 2 {
		b := make([]byte, size)
		n, err := unix.Readlink(file, b)
		if err != nil {
			return "", err
		}
		if n < size {
			return string(bytes.Clone(b[:n])), nil
		}
	}
}
