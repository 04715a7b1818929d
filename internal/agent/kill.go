//go:build linux

package agent

import (
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// killGrace is between TERM and KILL.
	killGrace = time.Second
	// killLimit is how long KILL may take to work. A process in an uninterruptible wait, or another account's when the agent is not
	// root, cannot be waited for longer.
	killLimit = 5 * time.Second
	// rescan is how long new members of a tree may go unnoticed: the kernel tells of ends, not of births.
	rescan = 20 * time.Millisecond
	// freezeLimit bounds the attempts to stop a tree process by process, endLimit those to end it so. One that forks faster than it can be
	// looked at, or leaves the agent no processor time, is ended while the whole container stands still.
	freezeLimit = 300 * time.Millisecond
	endLimit    = time.Second
	// looks is how often nothing may be found while something got away unseen: other commands come and go too.
	looks = 8
)

// tree is a command's processes: whatever descends from its main process, shares a session with one that did, or carries its mark.
// Survivors of earlier commands are neither, and so are out of reach.
type tree struct {
	root int
	mark uint64
	seen map[int]uint64 // start time by pid of everything that ever belonged
	deaf map[int]bool   // may not be signalled
	last []int          // what the last scan returned
	// unsure is set when there may be more than the last scan returned: somebody ended who can have forked after the list was made.
	unsure bool
}

// kill ends the whole tree and returns when it is dead: TERM, at most grace, then KILL. What has a terminal hears that it was hung up (HUP)
// first, and TERM after half of grace: that is what interactive shells end on, and what an editor saves its work on. The main process must not
// have been collected when it is called; if it has, the command is over, nothing is done and the result is false.
func (c *child) kill(grace time.Duration) bool {
	if c.ended() {
		return false
	}
	p, ok := procStat(c.pid)
	if !ok {
		return false
	}
	t := &tree{root: c.pid, mark: c.mark, seen: map[int]uint64{p.pid: p.start}, deaf: map[int]bool{}}
	if crowded() && halt(func() { t.end(killLimit) }) {
		return true
	}
	// The shell first, or it would take its child's end for a reason to go on to its next command.
	word := unix.SIGTERM
	if c.terminal {
		word = unix.SIGHUP
	}
	c.signal(word)
	deadline := time.Now().Add(grace)
	told := map[int]bool{c.pid: true}
	c.signal(unix.SIGCONT) // a stopped process gets TERM only when it goes on
	for empty := 0; ; {
		alive := t.scan()
		if len(alive) == 0 {
			if !t.unsure {
				return true
			}
			if empty++; empty == looks {
				break
			}
			continue
		}
		left := time.Until(deadline)
		if word == unix.SIGHUP && left < grace/2 {
			word = unix.SIGTERM
			clear(told)
		}
		for _, pid := range alive {
			if !told[pid] {
				told[pid] = true
				t.signal(pid, word)
				t.signal(pid, unix.SIGCONT)
			}
		}
		if left <= 0 {
			break
		}
		awaitEnd(alive, min(left, rescan))
	}
	if t.freeze() && t.end(endLimit) {
		return true
	}
	done := false
	if !halt(func() { done = t.end(killLimit) }) {
		done = t.end(killLimit)
	}
	c.survived = !done
	return true
}

// freeze stops the tree until a look finds nothing new in it, so that KILL meets all of it at once and nothing can fork in between. False
// means that it did not come to rest.
func (t *tree) freeze() bool {
	stopped := map[int]bool{}
	for deadline := time.Now().Add(freezeLimit); time.Now().Before(deadline); {
		more := false
		for _, pid := range t.scan() {
			if !stopped[pid] {
				stopped[pid], more = true, true
				t.signal(pid, unix.SIGSTOP)
			}
		}
		if !more && !t.unsure {
			return true
		}
	}
	return false
}

// end sends KILL until nothing is left. False means that something may be.
func (t *tree) end(limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for empty := 0; empty < looks; {
		alive := t.scan()
		switch {
		case len(alive) > 0:
			empty = 0
		case !t.unsure:
			return true
		default:
			empty++
			continue
		}
		if time.Now().After(deadline) {
			return false
		}
		for _, pid := range alive {
			t.signal(pid, unix.SIGKILL)
		}
		awaitEnd(alive, rescan)
	}
	return false
}

// scan looks for new members until there are none and returns those that live and can be signalled, the main process first.
func (t *tree) scan() []int {
	all, missed := census()
	t.unsure = missed > 0
	for pid, start := range t.seen {
		if p, ok := all[pid]; ok && p.start != start {
			delete(t.seen, pid) // the number went to somebody else
		}
	}
	self := os.Getpid()
	unmarked := map[int]bool{}
	for more := true; more; {
		more = false
		for pid, p := range all {
			if _, known := t.seen[pid]; known || pid == self || unmarked[pid] {
				continue
			}
			if _, below := t.seen[p.parent]; !below {
				// A session's number is not given away while anybody is in it, so its leader may be long gone.
				if _, beside := t.seen[p.session]; !beside {
					// An orphan is ours to judge; a child of something else is judged with that.
					orphan := p.parent == self || p.parent == 1
					if !orphan || children.owns(pid) || !t.carries(pid) {
						unmarked[pid] = orphan
						continue
					}
				}
			}
			t.seen[pid], more = p.start, true
			t.unsure = t.unsure || p.zombie
		}
	}
	var alive []int
	for pid := range t.seen {
		if p, ok := all[pid]; ok && !p.zombie && !t.deaf[pid] {
			alive = append(alive, pid)
		}
	}
	for _, pid := range t.last {
		if p, ok := all[pid]; (!ok || p.zombie) && !t.deaf[pid] {
			t.unsure = true
		}
	}
	t.last = alive
	slices.SortFunc(alive, func(a, b int) int {
		switch {
		case a == t.root:
			return -1
		case b == t.root:
			return 1
		}
		return a - b
	})
	return alive
}

// carries reports whether a process has the tree's mark.
func (t *tree) carries(pid int) bool {
	if t.mark == 0 {
		return false
	}
	mark, ok := markOf(pid)
	if !ok {
		t.unsure = true
	}
	return mark == t.mark
}

// signal sends sig to a member. One that may not be signalled, such as a sudo below an agent that is not root, is let go.
func (t *tree) signal(pid int, sig unix.Signal) {
	if errors.Is(unix.Kill(pid, sig), unix.EPERM) {
		t.deaf[pid] = true
	}
}

// awaitEnd waits until one of pids ends, at most for limit.
func awaitEnd(pids []int, limit time.Duration) {
	const most = 256 // descriptors, not processes: of more it is enough to hear from some
	var fds []unix.PollFd
	for _, pid := range pids[:min(len(pids), most)] {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			limit = 0
		}
		if err == nil {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	defer func() {
		for _, f := range fds {
			_ = unix.Close(int(f.Fd))
		}
	}()
	_, _ = unix.Poll(fds, int(limit.Milliseconds())) // interrupted, timed out or told: the caller looks again in any case
}
