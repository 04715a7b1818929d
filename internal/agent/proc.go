//go:build linux

package agent

import (
	"bytes"
	"os"
	"strconv"
)

// procInfo is what /proc/PID/stat says of a process, readable for every account. start is its start time in clock ticks: number and
// start together name a process for good.
type procInfo struct {
	pid, parent, session int
	start                uint64
	zombie, stopped      bool
}

// processes lists what exists at about this moment.
func processes() map[int]procInfo {
	all, _ := census()
	return all
}

// census is processes with missed, how many were listed and gone before they could be looked at: their children may be in no list.
func census() (all map[int]procInfo, missed int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, 0
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil && len(names) == 0 {
		return nil, 0
	}
	all = make(map[int]procInfo, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := procStat(pid); ok {
				all[pid] = p
			} else {
				missed++
			}
		}
	}
	return all, missed
}

// procStat reads one process. ok is false when it is gone.
func procStat(pid int) (p procInfo, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	// The program's name stands in parentheses and may hold any byte, so fields are counted behind the last of them.
	const state, parent, session, threads, start = 0, 1, 3, 17, 19
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) <= start || string(f[threads]) == "0" { // without threads it was being taken out of the system: no parent is shown any more
		return p, false
	}
	p.pid = pid
	p.zombie = f[state][0] == 'Z' || f[state][0] == 'X'
	p.stopped = f[state][0] == 'T' || f[state][0] == 't'
	var errs [3]error
	p.parent, errs[0] = strconv.Atoi(string(f[parent]))
	p.session, errs[1] = strconv.Atoi(string(f[session]))
	p.start, errs[2] = strconv.ParseUint(string(f[start]), 10, 64)
	return p, errs == [3]error{}
}
