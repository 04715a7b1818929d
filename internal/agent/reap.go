//go:build linux

package agent

import (
	"errors"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// children is this process's only caller of wait4 and of fork. Everything that loses its parent below us becomes our child, so
// one loop has to take them all: os/exec, which waits for its own child, must not be used beside it.
var children = reaper{live: map[int]*process{}}

type reaper struct {
	mu      sync.Mutex
	waiting bool // a goroutine is in loop
	live    map[int]*process
}

// process is a child that was started here. status may be read after done is closed.
type process struct {
	pid    int
	done   chan struct{}
	status syscall.WaitStatus
}

// start forks and executes. The lock is held over the fork, or the loop could see the child's end before it knows the child.
func (r *reaper) start(path string, argv []string, attr *syscall.ProcAttr) (*process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return nil, err
	}
	p := &process{pid: pid, done: make(chan struct{})}
	r.live[pid] = p
	if !r.waiting {
		r.waiting = true
		go r.loop()
	}
	return p, nil
}

// loop collects every child there is, adopted ones included, and ends when none is left.
func (r *reaper) loop() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		r.mu.Lock()
		if err != nil && len(r.live) == 0 { // ECHILD, and start has not come in between
			r.waiting = false
			r.mu.Unlock()
			return
		}
		if p := r.live[pid]; err == nil && p != nil {
			delete(r.live, pid)
			p.status = status
			close(p.done)
		}
		r.mu.Unlock()
	}
}

// collect takes the dead that nobody here has started: in a container's first process they come at any time.
func (r *reaper) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.waiting {
		r.waiting = true
		go r.loop()
	}
}

// owns reports whether pid is a child started here that has not been collected.
func (r *reaper) owns(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[pid] != nil
}

// signal sends sig to the process itself. Once it was collected its number may be another's: nothing is sent then.
func (p *process) signal(sig unix.Signal) {
	children.mu.Lock()
	defer children.mu.Unlock()
	if children.live[p.pid] == p {
		_ = unix.Kill(p.pid, sig) // it may be a zombie already
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
