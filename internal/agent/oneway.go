//go:build linux

package agent

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outlet is the pipe to the host. Its methods are not for concurrent use: [wire.Writer] lets one in at a time.
type outlet struct {
	raw  syscall.RawConn
	wide bool
}

// newOutlet returns nil when w is no pipe of the system's.
func newOutlet(w io.Writer) *outlet {
	f, is := w.(*os.File)
	if !is {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode().Type() != os.ModeNamedPipe {
		return nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return &outlet{raw: raw}
}

// breather is how long a pipe that is full is left alone. Docker's shim reads a page at a time, and each page it takes out of a full pipe wakes
// whoever waits to write: a gigabyte came in 147 000 pieces, each with two changes of processes. In this time the shim takes some 300 kB.
const breather = 500 * time.Microsecond

// push calls some, which moves part of what there is and returns false at its end, until all is moved.
func (o *outlet) push(some func(fd int) (more bool, err error)) error {
	var failed error
	waited := false
	err := o.raw.Write(func(fd uintptr) (done bool) {
		for {
			more, err := some(int(fd))
			switch {
			case errors.Is(err, unix.EINTR):
			case errors.Is(err, unix.EAGAIN) && waited:
				waited = false
				return false // called again when there is room
			case errors.Is(err, unix.EAGAIN):
				if !o.wide {
					_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) // see widen
					o.wide = true
				}
				time.Sleep(breather)
				waited = true
			case err != nil:
				failed = err
				return true
			case !more:
				return true
			default:
				waited = false
			}
		}
	})
	return errors.Join(failed, err)
}

// writeVector writes all pieces with as few system calls as the pipe takes them in: [net.Buffers] does so for sockets alone.
func (o *outlet) writeVector(pieces net.Buffers) error {
	return o.push(func(fd int) (bool, error) {
		n, err := unix.Writev(fd, pieces)
		if err != nil {
			return true, os.NewSyscallError("writev", err)
		}
		pieces = after(pieces, n)
		return len(pieces) > 0, nil
	})
}

// after is what follows the first n bytes of pieces.
func after(pieces net.Buffers, n int) net.Buffers {
	for len(pieces) > 0 && n >= len(pieces[0]) {
		n -= len(pieces[0])
		pieces = pieces[1:]
	}
	if n > 0 {
		pieces[0] = pieces[0][n:]
	}
	return pieces
}

// splice moves n bytes out of the pipe from, which holds them.
func (o *outlet) splice(from, n int) error {
	return o.push(func(fd int) (bool, error) {
		moved, err := unix.Splice(from, nil, fd, nil, n, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if err != nil {
			return true, os.NewSyscallError("splice", err)
		}
		n -= int(moved)
		return n > 0, nil
	})
}
