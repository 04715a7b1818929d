//go:build linux

package agent

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// collector reads a status descriptor while the command runs: a state above what a pipe holds would block the shell otherwise.
type collector struct {
	f        *os.File
	buf      []byte
	overflow bool
	read     chan struct{} // closed when the reading goroutine is done
}

// collect starts reading. finish must be called.
func collect(f *os.File) *collector {
	c := &collector{f: f, read: make(chan struct{})}
	go func() {
		defer close(c.read)
		b := make([]byte, 8<<10)
		for {
			n, err := f.Read(b)
			c.add(b[:n])
			if err != nil {
				return // the end, or finish
			}
		}
	}()
	return c
}

func (c *collector) add(b []byte) {
	if c.overflow = c.overflow || len(c.buf)+len(b) > maxReport; !c.overflow {
		c.buf = append(c.buf, b...)
	}
}

// past is a deadline that makes a Read return at once.
var past = time.Unix(1, 0)

// finish returns everything that was written before the call, without waiting for the end of the stream: a background job may hold the
// other end for days. Nothing is returned of a report that is too large.
func (c *collector) finish() []byte {
	_ = c.f.SetReadDeadline(past) // fails for a closed file only, which the goroutine has noticed then
	<-c.read
	drain(c.f, c.add)
	if c.overflow {
		return nil
	}
	return c.buf
}

// drain gives f what can be read from r now, deadline or not.
func drain(r *os.File, f func([]byte)) {
	raw, err := r.SyscallConn()
	if err != nil {
		return
	}
	b := make([]byte, 32<<10)
	_ = raw.Control(func(fd uintptr) { // fails for a closed file only
		for {
			n, err := unix.Read(int(fd), b)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 || err != nil {
				return
			}
			f(b[:n])
		}
	})
}
