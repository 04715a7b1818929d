//go:build linux

package agent

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// role is what a process is to the question who would miss it.
type role int

const (
	roleAgent  role = iota // the agent's own program, or dead
	roleIdle               // a shell that waits for its command, or what a login left running: the next container has it again
	roleComing             // about to become a program; which one cannot be seen yet
	roleJob                // somebody's
)

// roleOf looks at one process. What a process says of itself, such as its name, is believed: whoever lies about it deceives himself.
func roleOf(p procInfo) role {
	if p.zombie || p.pid == 1 || p.pid == os.Getpid() {
		return roleAgent
	}
	dir := "/proc/" + strconv.Itoa(p.pid)
	line, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return roleAgent // it has ended
	}
	words := strings.Split(string(line), "\x00")
	switch {
	case len(line) == 0, words[0] == shellShim, words[0] == execShim: // at the moment of its execve, or not marked yet
		return roleComing
	case p.parent == os.Getpid() && bytes.Equal(line, ownLine()): // not even that: forked a moment ago
		return roleComing
	case isAgent(dir, words):
		return roleAgent
	}
	// Between the daemon's request and the program there is runc, which cannot be told from the program by its place.
	if name := nameOf(p.pid); strings.HasPrefix(name, "runc:[") {
		return roleComing
	}
	if isFirst.Load() && !isOwn(dir) { // another account's agent has marks of its own, and no shell that waits
		return roleJob
	}
	mark, ok := markOf(p.pid)
	if ok && isMark(mark) && !isGiven(mark) {
		return roleIdle
	}
	return roleJob
}

// ownLine is the agent's own command line.
var ownLine = sync.OnceValue(func() []byte {
	line, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		return nil // equal to no process's
	}
	return line
})

// isAgent reports whether words are those of an agent that this account started. What file a process executes is not asked: a profile of the
// kernel's may forbid that even root.
func isAgent(dir string, words []string) bool {
	const verb = 1
	if len(words) <= verb || !slices.Contains([]string{"attach", "resident", "idle", "first"}, words[verb]) {
		return false
	}
	if name := path.Base(words[0]); name != "agent" && name != "dockerbox-agent" {
		return false
	}
	if isFirst.Load() { // attaches and the agents of other accounts are not this one's
		return true
	}
	return isOwn(dir)
}

// isOwn reports whether the process of that directory below /proc runs as the agent's account.
func isOwn(dir string) bool {
	var st unix.Stat_t
	return unix.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid()
}

// nameOf is the program's name as the kernel has it, at most 15 bytes, "" when the process is gone.
func nameOf(pid int) string {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSuffix(name, []byte("\n")))
}

// inhabitants returns the container's processes, and whether there may be more. Where the agent is not in a container of its own, which is
// so in tests, they are those below it.
func inhabitants() (all map[int]procInfo, unsure bool) {
	all, missed := census()
	if ownContainer() {
		return all, missed > 0
	}
	below := map[int]procInfo{}
	for last := -1; len(below) > last; {
		last = len(below)
		for pid, p := range all {
			if _, found := below[p.parent]; found || p.parent == os.Getpid() {
				below[pid] = p
			}
		}
	}
	return below, missed > 0
}

// comingLimit is how long a process may be on the way to its program. There is nothing to wait for but time.
const (
	comingLimit = 2 * time.Second
	comingPause = 2 * time.Millisecond
)

var errUnmarked = errors.New("the sandbox's limit for message queues is too low to tell commands from shells that wait for one")

// jobs lists the processes that run on somebody's behalf, the oldest first: commands of any client, what they left in the background, and
// what came into the container by other ways than the agent.
func jobs() ([]procInfo, error) {
	if markBase() == 0 {
		return nil, errUnmarked
	}
	deadline := time.Now().Add(comingLimit)
	for look := 1; ; look++ {
		all, unsure := inhabitants()
		var found, coming []procInfo
		for _, p := range all {
			switch roleOf(p) {
			case roleJob:
				found = append(found, p)
			case roleComing:
				coming = append(coming, p)
			case roleAgent, roleIdle:
			}
		}
		late := time.Now().After(deadline)
		switch {
		case len(found) > 0, late, len(coming) == 0 && (!unsure || look >= looks):
			if late {
				found = append(found, coming...)
			}
			slices.SortFunc(found, func(a, b procInfo) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid)) })
			return found, nil
		}
		time.Sleep(comingPause)
	}
}

// answerJobs names the oldest of the jobs, rather not a shell: that has a name for what it runs.
func answerJobs(found []procInfo, err error) wire.Answer {
	if err != nil {
		return wire.Answer{Error: err.Error()}
	}
	a := wire.Answer{Jobs: len(found)}
	for _, p := range found {
		if isFurniture(p) {
			a.Screen++
		}
	}
	for _, p := range found {
		name := nameOf(p.pid)
		if name == "" {
			continue
		}
		if shell := name == "bash" || name == "sh"; a.Example == "" || !shell {
			a.Example = name
			if !shell {
				break
			}
		}
	}
	return a
}

// endAll asks everything in the container to end, by TERM, and waits until it has or limit is over. The container's first process, which
// hears of nothing, the agents and those who are connected to them stay. It returns what is left.
func (a *Agent) endAll(limit time.Duration) []procInfo {
	deadline := time.Now().Add(limit)
	// A program counts as another one than the shell it was forked from, which may have taken the signal for itself in between.
	type program struct {
		start uint64
		name  string
	}
	told := map[int]program{}
	for {
		all, _ := inhabitants()
		var left []procInfo
		var pids []int
		for _, p := range all {
			if roleOf(p) == roleAgent {
				continue
			}
			left, pids = append(left, p), append(pids, p.pid)
			if now := (program{p.start, nameOf(p.pid)}); told[p.pid] != now {
				told[p.pid] = now
				_ = unix.Kill(p.pid, unix.SIGTERM) // it may have ended
				_ = unix.Kill(p.pid, unix.SIGCONT) // a stopped process gets TERM only when it goes on
			}
		}
		wait := min(time.Until(deadline), rescan)
		if len(left) == 0 || wait <= 0 {
			return left
		}
		select {
		case <-a.closing:
			return left
		default:
			awaitEnd(pids, wait)
		}
	}
}
