//go:build linux

package agent

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
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

// settle waits after the main process ended until its output is out: until all pumps are done, or a while after the last byte. Time
// during which the host gives no credit does not count, because then what the command itself wrote may still be in the pipe.
//
// It ends without the credit once the host wants the command dead: then it may not be reading any more, and waits for the Exit.
func (o *output) settle(pumps, abandoned, killed <-chan struct{}) {
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
		waited := o.waiting()
		select {
		case <-pumps:
			return
		case <-abandoned:
			return
		case <-o.moved:
			idle.Reset(quiet)
		case <-idle.C:
			if waited = waited || o.waiting(); !waited || dead() {
				return
			}
			idle.Reset(quiet)
		case <-limit.C:
			if waited = waited || o.waiting(); !waited || dead() {
				return
			}
		}
		if waited {
			limit.Reset(restless)
		}
	}
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
