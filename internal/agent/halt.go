//go:build linux

package agent

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A chain of processes that each fork and exit cannot be caught by looking and then signalling: whoever was seen is gone. One broadcast
// stop catches it, because a fork that is under way when the signal is sent starts over.

// initialPIDs is the inode of the machine's own process namespace.
const initialPIDs = "pid:[4026531836]"

// ownContainer reports whether every process there is belongs to a container that dockerbox made. Only there may all be stopped.
var ownContainer = sync.OnceValue(func() bool {
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || space == initialPIDs {
		return false
	}
	return firstIs("idle") || firstIs("first")
})

// firstIs reports whether the first process is an agent with that verb.
func firstIs(verb string) bool {
	line, err := os.ReadFile("/proc/1/cmdline")
	return err == nil && bytes.HasSuffix(bytes.TrimRight(line, "\x00"), []byte("/agent\x00"+verb))
}

// crowd is a number of processes that no command means to have. Where there are more, looking at each of them while they run may take the
// agent, which gets its share of the processor and no more, longer than anybody waits.
const crowd = 512

func crowded() bool {
	dir, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // half of them are enough, too
	return len(names) > crowd
}

// halting is held while the container stands still.
var halting sync.Mutex

// halt stops all processes of the container but the first and the agent itself, runs f, and lets go on those that were not stopped
// before. It reports false, and does nothing, anywhere else than in a container of dockerbox's.
func halt(f func()) bool {
	if !ownContainer() {
		return false
	}
	halting.Lock()
	defer halting.Unlock()
	var before map[int]procInfo
	if !crowded() {
		before = processes()
	}
	// Not while a fork is under way: it waits for its child, which would be stopped, and everything here for it.
	children.mu.Lock()
	_ = unix.Kill(-1, unix.SIGSTOP) // fails when there is nobody else
	children.mu.Unlock()
	defer func() {
		self := os.Getpid()
		for pid, p := range processes() {
			if b, was := before[pid]; was && b.start == p.start && b.stopped || pid == 1 || pid == self {
				continue
			}
			_ = unix.Kill(pid, unix.SIGCONT) // it may have ended
		}
	}()
	f()
	return true
}

// leftBehind returns the processes of the one finished command that left most. Commands that still run do not count: they have a time-out,
// and somebody waits for them.
func leftBehind() map[int]uint64 {
	groups, running := map[uint64]map[int]uint64{}, map[uint64]bool{}
	for pid, p := range processes() {
		mark, ok := markOf(pid)
		if !ok || !isMark(mark) {
			continue
		}
		if groups[mark] == nil {
			groups[mark] = map[int]uint64{}
		}
		groups[mark][pid] = p.start
		if children.owns(pid) {
			running[mark] = true
		}
	}
	var most map[int]uint64
	for mark, members := range groups {
		if !running[mark] && len(members) > len(most) {
			most = members
		}
	}
	return most
}

// relieve makes room when the container's limit of processes is reached: if what one finished command left behind is more than half of
// the limit, it is ended, for otherwise nothing could be run here ever again. It reports whether it ended anything.
func (a *Agent) relieve() bool {
	limit, ok := pidsLimit()
	if !ok {
		return false
	}
	ended := 0
	halt(func() {
		members := leftBehind()
		if len(members) <= limit/2 {
			return
		}
		ended = len(members)
		t := tree{seen: members, deaf: map[int]bool{}}
		t.end(killLimit)
	})
	a.relieved.Add(int64(ended))
	if ended > 0 {
		a.journal.say("ended %d processes that an earlier command left behind, for the limit of %d processes was reached", ended, limit)
	}
	return ended > 0
}

// pidsDirs are where a container sees its own group: with version 2 and version 1 of control groups.
var pidsDirs = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids"}

func pidsLimit() (limit int, ok bool) {
	for _, dir := range pidsDirs {
		b, err := os.ReadFile(dir + "/pids.max")
		if err == nil {
			limit, err = strconv.Atoi(strings.TrimSpace(string(b))) // "max" is none
			return limit, err == nil
		}
	}
	return 0, false
}

// guardPause is between two looks at a container that keeps hitting its limit without one finished command being the cause, and between
// looks at all where the kernel does not tell of it.
const guardPause = time.Second

// guardLimit relieves the container each time its limit of processes is reached, and returns when that cannot be known. Waiting for the next
// command to fail would be too late: not even an attach can start then.
func (a *Agent) guardLimit() {
	events, patience := (*os.File)(nil), -1
	for version, dir := range pidsDirs {
		var err error
		if events, err = os.Open(dir + "/pids.events"); err == nil {
			if version > 0 { // in the old version the file says how often it was, but does not wake anybody
				patience = int(guardPause.Milliseconds())
			}
			break
		}
	}
	if events == nil {
		return
	}
	defer events.Close()
	wait := []unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}
	for last := ""; ; {
		b := make([]byte, 64)
		n, err := events.ReadAt(b, 0) // it is also what makes the next poll wait
		if err != nil && !errors.Is(err, io.EOF) {
			return
		}
		if now := string(b[:n]); now != last {
			if last != "" {
				a.relieve()
				time.Sleep(guardPause)
			}
			last = now
		}
		if _, err := unix.Poll(wait, patience); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// reserveThreads makes the runtime create threads now and keep them: when the limit of processes is reached it cannot, and would end.
func reserveThreads() {
	const threads = 16
	var locked, done sync.WaitGroup
	locked.Add(threads)
	for range threads {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked.Done()
			locked.Wait()
		})
	}
	done.Wait()
}
