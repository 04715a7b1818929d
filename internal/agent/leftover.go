//go:build linux

package agent

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// What remains of a command's pipes when its Exit has been sent.
const (
	// quiet is how long a pipe that a background job holds open must carry nothing before the Exit is sent: a child that is about to
	// end, such as the tee of a process substitution, gets its last words in.
	quiet = 300 * time.Millisecond
	// restless bounds that wait for a job that never is quiet.
	restless = 2 * time.Second
	// discardMost per discardEvery is how fast output nobody asked for is thrown away; a job that writes more waits.
	discardMost  = 1 << 20
	discardEvery = 100 * time.Millisecond
)

// settle waits after the main process ended until its output is out: until all pumps are done, or a while after the last byte. What the command
// itself wrote is waited for as long as it takes: the host may give its credit late.
//
// It ends without that once the host wants the command dead: then it may not be reading any more, and waits for the Exit.
func (o *output) settle(pumps, abandoned, killed <-chan struct{}, own *remains) {
	idle, limit := time.NewTimer(quiet), time.NewTimer(restless)
	defer idle.Stop()
	defer limit.Stop()
	dead := func() bool {
		select {
		case <-killed:
			return true
		default:
			return false
		}
	}
	for {
		left := own.left()
		select {
		case <-pumps:
			return
		case <-abandoned:
			return
		case <-o.moved:
			idle.Reset(quiet)
		case <-idle.C:
			// With its own out, what waits for credit is a job's: the limit is enough for that.
			if left = left && own.left(); dead() || !left && !o.waiting() {
				return
			}
			idle.Reset(quiet)
		case <-limit.C:
			if left = left && own.left(); dead() || !left {
				return
			}
			limit.Reset(restless)
		}
	}
}

// remains are what a command wrote before it ended and is still in its pipes. For settle's goroutine.
type remains struct {
	out   *output
	files []*os.File // that have not been seen empty
	// enough is how many bytes have been read in all when nothing of it can be left: a job may write on and never let a pipe be empty.
	enough int64
}

// remain is to be called when the command has ended, with the pipes that pumps read.
func remain(o *output, files ...*os.File) *remains {
	w := &remains{out: o, enough: o.total()}
	for _, f := range files {
		if f != nil {
			w.files = append(w.files, f)
			w.enough += pipeSize + wire.MaxData // what a pipe holds, and a pump may have read and not counted yet
		}
	}
	return w
}

// left reports whether there may be some.
func (w *remains) left() bool {
	w.files = slices.DeleteFunc(w.files, isEmpty)
	return len(w.files) > 0 && w.out.total() < w.enough
}

// isEmpty reports whether there is nothing to read. What a pump has read already it sends in any case.
func isEmpty(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return true
	}
	empty := true
	err = raw.Control(func(fd uintptr) {
		look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		empty = again(func() error { _, err := unix.Poll(look, 0); return err }) != nil || look[0].Revents&unix.POLLIN == 0
	})
	return err != nil || empty
}

// leave keeps reading f, which a surviving job may write to, and throws away what comes: without a reader the job would be ended by
// SIGPIPE, or wait for ever. It costs one descriptor and a sleeping goroutine until the last writer is gone.
func (a *Agent) leave(f *os.File) {
	if f == nil {
		return
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		_ = f.Close()
		return
	}
	a.leftovers[f] = true
	a.mu.Unlock()
	a.wait.Go(func() {
		defer func() {
			a.mu.Lock()
			delete(a.leftovers, f)
			a.mu.Unlock()
			_ = f.Close()
		}()
		if f.SetReadDeadline(time.Time{}) != nil {
			return
		}
		raw, err := f.SyscallConn()
		if err != nil {
			return
		}
		for {
			if ended := discard(raw.Read); ended {
				return
			}
			select {
			case <-time.After(discardEvery):
			case <-a.closing:
				return
			}
		}
	})
}

// discard reads up to discardMost bytes. It holds a buffer only while there is something to read.
func discard(read func(func(uintptr) bool) error) (ended bool) {
	total := 0
	err := read(func(fd uintptr) bool {
		buf := make([]byte, 16<<10)
		for total < discardMost {
			n, err := unix.Read(int(fd), buf)
			switch {
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				return false
			case n <= 0:
				ended = true
				return true
			default:
				total += n
			}
		}
		return true
	})
	return ended || err != nil
}
