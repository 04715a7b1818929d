//go:build linux

package agent

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The resident has no stream of its own that anybody reads. What the owner of a sandbox should know when he asks why something is gone goes to
// the container's log, which is what its first process has for standard error: a line per event, and few events.

// journal is where such lines go.
type journal struct {
	// open gives a writer for one line.
	open func() (io.WriteCloser, error)
}

// containerLog opens the first process's standard error. It belongs to the container's account, not to root, who may not even look at it
// without the capability to trace. It must not block: a daemon that reads no more would stop the agent.
func containerLog() (io.WriteCloser, error) {
	const first = "/proc/1"
	var st unix.Stat_t
	if err := unix.Stat(first, &st); err != nil {
		return nil, fmt.Errorf("%s: %w", first, err)
	}
	var f *os.File
	err := asUser(int(st.Uid), int(st.Gid), func() (err error) {
		f, err = os.OpenFile(first+"/fd/2", os.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	return f, err
}

// kept is a writer that stays open.
type kept struct{ io.Writer }

// Close implements [io.Closer].
func (kept) Close() error { return nil }

// say writes a line. A log that takes nothing is no reason to do anything else.
func (j journal) say(format string, args ...any) {
	if j.open == nil {
		return
	}
	w, err := j.open()
	if err != nil {
		return
	}
	_, _ = io.WriteString(w, "dockerbox-agent: "+strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")+"\n")
	_ = w.Close()
}
