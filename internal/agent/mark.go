//go:build linux

package agent

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A tree of processes can leave its parent, its session and its environment behind, and without SYS_PTRACE root cannot read another
// account's environment. What it cannot leave is a hard limit: each command gets its own value of RLIMIT_MSGQUEUE, a little
// below the container's, and /proc/PID/limits shows it to everybody. That finds what set itself free after bash had died; only
// root can undo it. The limit itself (bytes of POSIX message queues) stays practically what it was.

// markRange is how many values are in use before the first comes again.
const markRange = 100_000

var (
	marksMade atomic.Uint64
	markBase  = sync.OnceValue(func() uint64 {
		var limit unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &limit) != nil || limit.Max < 2*markRange {
			return 0
		}
		const usual = 819200
		return min(limit.Max, usual*100) // an unlimited value too becomes one that can be told from others
	})
)

// nextMark returns the value for the next command, 0 when the container's own limit is too low to count below it.
func nextMark() uint64 {
	base := markBase()
	if base == 0 {
		return 0
	}
	return base - 1 - marksMade.Add(1)%markRange
}

// hasMark reports whether process pid carries mark.
func hasMark(pid int, mark uint64) bool {
	if mark == 0 {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return false // it ended
	}
	for line := range bytes.Lines(b) {
		if rest, found := bytes.CutPrefix(line, []byte("Max msgqueue size")); found {
			f := bytes.Fields(rest) // soft, hard, unit
			return len(f) > 1 && string(f[1]) == strconv.FormatUint(mark, 10)
		}
	}
	return false
}
