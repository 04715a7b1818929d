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
	n := marksMade.Add(1) % markRange
	given[n].Store(false)
	return base - 1 - n
}

// given holds, for each mark, whether what carries it has been given a command. A shell that waits has not, nor has a login.
var given [markRange]atomic.Bool

// give notes that a command begins under mark.
func give(mark uint64) {
	if isMark(mark) {
		given[markBase()-1-mark].Store(true)
	}
}

// isGiven reports whether a command began under mark.
func isGiven(mark uint64) bool { return isMark(mark) && given[markBase()-1-mark].Load() }

// isMark reports whether a hard limit is one that nextMark gives.
func isMark(limit uint64) bool {
	base := markBase()
	return base != 0 && limit < base && limit >= base-markRange
}

// markOf reads the mark of process pid: its hard limit, whoever set it. ok is false when the process is gone or has no limit.
func markOf(pid int) (mark uint64, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(b) {
		if rest, found := bytes.CutPrefix(line, []byte("Max msgqueue size")); found {
			const hard = 1 // behind the soft one, before the unit
			f := bytes.Fields(rest)
			if len(f) <= hard {
				return 0, false
			}
			mark, err := strconv.ParseUint(string(f[hard]), 10, 64)
			return mark, err == nil // "unlimited" is no number
		}
	}
	return 0, false
}
