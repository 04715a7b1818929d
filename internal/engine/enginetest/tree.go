//go:build linux

package enginetest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// treeLimit bounds the end of a container's processes.
const treeLimit = 20 * time.Second

// endTree kills what is below the agent, where all orphans of a container are, and then the agent.
func endTree(agent *os.Process, ended <-chan struct{}) error {
	for deadline := time.Now().Add(treeLimit); ; {
		below := descendants(agent.Pid)
		if len(below) == 0 {
			break
		}
		if time.Now().After(deadline) {
			return failure(nil, "processes %v of a container do not end", below)
		}
		for _, p := range below {
			p.kill()
		}
	}
	_ = agent.Kill() // it may have ended
	<-ended
	return nil
}

// process is what /proc says of one. Its number may be given to another as soon as it has ended; with its start it is that one.
type process struct {
	pid, parent int
	start       string
	dead        bool // ended, and waits for its parent
}

// look reads one process; ok is false when there is none.
func look(pid int) (p process, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	const state, parent, start = 0, 1, 19 // behind the name, which may hold anything but ends with the last parenthesis
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) <= start {
		return p, false
	}
	p = process{pid: pid, start: string(fields[start]), dead: fields[state][0] == 'Z' || fields[state][0] == 'X'}
	p.parent, err = strconv.Atoi(string(fields[parent]))
	return p, err == nil
}

// kill ends the process and waits a moment for that. The descriptor is of whoever has the number now, and stays his.
func (p process) kill() {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return // it has ended
	}
	defer func() { _ = unix.Close(fd) }()
	if now, ok := look(p.pid); !ok || now.start != p.start || now.dead {
		return
	}
	const moment = 100                                                            // ms
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)                            // it may have ended
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, moment) // whatever came of it, the caller looks again
}

// descendants lists the living processes below root.
func descendants(root int) []process {
	all := map[int]process{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil // the pattern is right
	}
	for _, file := range files {
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			if p, ok := look(pid); ok {
				all[pid] = p
			}
		}
	}
	below := map[int]bool{root: true}
	var list []process
	for more := true; more; {
		more = false
		for pid, p := range all {
			if below[p.parent] && !below[pid] {
				below[pid], more = true, true
				if !p.dead {
					list = append(list, p)
				}
			}
		}
	}
	return list
}
