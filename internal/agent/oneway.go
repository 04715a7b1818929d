//go:build linux

package agent

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// oneWay is the stream to the host. It ends the connection when writing fails: a host that cannot hear is gone, even if it could still be heard.
// Not for concurrent use: [wire.Writer] lets one in at a time.
type oneWay struct {
	w      io.Writer
	pipe   syscall.RawConn // w, if that is a pipe of the system's, else nil
	hangUp func()
}

func newOneWay(w io.Writer, hangUp func()) *oneWay {
	o := &oneWay{w: w, hangUp: hangUp}
	if f, is := w.(*os.File); is {
		if info, err := f.Stat(); err == nil && info.Mode().Type() == os.ModeNamedPipe {
			o.pipe, _ = f.SyscallConn() // fails for a closed file, which writing to it tells
		}
	}
	return o
}

func (o *oneWay) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	return n, o.judge(err)
}

// WriteVector implements [wire.Vectored]. [net.Buffers] makes one system call of it for sockets alone.
func (o *oneWay) WriteVector(pieces net.Buffers) error {
	if o.pipe == nil {
		_, err := pieces.WriteTo(o.w)
		return o.judge(err)
	}
	return o.push(func(fd int) (more bool, err error) {
		n, err := unix.Writev(fd, pieces)
		if err != nil {
			return true, os.NewSyscallError("writev", err)
		}
		pieces = after(pieces, n)
		return len(pieces) > 0, nil
	})
}

// splice writes header and then the n bytes that the pipe from holds. There has to be a pipe.
func (o *oneWay) splice(header []byte, from, n int) error {
	if _, err := o.Write(header); err != nil {
		return err
	}
	return o.push(func(fd int) (more bool, err error) {
		moved, err := unix.Splice(from, nil, fd, nil, n, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if err != nil {
			return true, os.NewSyscallError("splice", err)
		}
		n -= int(moved)
		return n > 0, nil
	})
}

// push calls some, which moves a part to the pipe and returns false with the last, whenever there is room for one.
func (o *oneWay) push(some func(fd int) (more bool, err error)) error {
	var failed error
	err := o.pipe.Write(func(fd uintptr) (done bool) {
		for {
			more, err := some(int(fd))
			switch {
			case errors.Is(err, unix.EINTR):
			case errors.Is(err, unix.EAGAIN):
				return false // called again when there is room
			case err != nil:
				failed = err
				return true
			case !more:
				return true
			}
		}
	})
	return o.judge(errors.Join(failed, err))
}

func (o *oneWay) judge(err error) error {
	if err != nil {
		o.hangUp()
	}
	return err
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
