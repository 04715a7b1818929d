//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// facts are what must not grow with the number of commands.
type facts struct {
	rss       int64 // bytes
	fds       int64
	processes int64
	files     int64 // in /tmp and the home
}

// agentGauge prints, for the agent's processes in a container, memory in kB and open files, then the number of all processes, the files in
// /tmp and the home, and how many resident agents there are. It is one shell for the same each time; what it starts itself is in the numbers before and after alike.
const agentGauge = `rss=0 fds=0 all=0 resident=0
for p in /proc/[0-9]*; do
  read -rd '' word <"$p/cmdline" || continue
  all=$((all + 1))
  case $word in /.dockerbox/agent) ;; dockerbox-agent) resident=$((resident + 1)) ;; *) continue ;; esac
  while read -r name value _; do [[ $name == VmRSS: ]] && rss=$((rss + value)); done <"$p/status"
  open=("$p"/fd/*)
  fds=$((fds + ${#open[@]}))
done 2>/dev/null
files=$(find /tmp "$1" -xdev 2>/dev/null | wc -l)
echo "$rss $fds $all $files $resident"`

// agentFacts looks into a sandbox from beside the agent, which would otherwise be in its own way; as root, to whom its descriptors are shown.
func (b *bench) agentFacts(ctx context.Context, container, home string) (facts, error) {
	out, err := b.output(ctx, "docker", "exec", "--user", "0:0", container, "bash", "-c", agentGauge, "bash", home)
	if err != nil {
		return facts{}, err
	}
	return parseGauge(out)
}

// parseGauge wants the resident agent to be among what was seen: without it the numbers would never grow.
func parseGauge(out string) (f facts, err error) {
	var resident int
	if n, err := fmt.Sscanf(out, "%d %d %d %d %d", &f.rss, &f.fds, &f.processes, &f.files, &resident); err != nil || n != 5 {
		return f, fmt.Errorf("the gauge printed %.200q", out)
	}
	if resident == 0 || f.rss == 0 || f.fds == 0 {
		return f, fmt.Errorf("the gauge saw no agent: %.200q", out)
	}
	f.rss <<= 10
	return f, nil
}

// processFacts looks at a process of this machine. It counts the process and its children.
func processFacts(pid int) (f facts, err error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if f.rss, err = memory(pid, "VmRSS"); err != nil {
		return f, err
	}
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return f, err
	}
	f.fds = int64(len(open))
	tasks, err := filepath.Glob(filepath.Join(dir, "task", "*", "children"))
	if err != nil {
		return f, err
	}
	f.processes = 1
	for _, path := range tasks {
		children, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) { // a thread that has ended has no children
			return f, err
		}
		f.processes += int64(len(strings.Fields(string(children))))
	}
	return f, nil
}

// memory is a value of /proc/PID/status, in bytes.
func memory(pid int, name string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseMemory(string(status), name)
}

func parseMemory(status, name string) (int64, error) {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/PID/status has no %s", name)
}

// resetPeak has VmHWM of a process begin anew.
func resetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// growth are rows of what became more between two looks. Memory breathes with the garbage collector, so up to breath bytes are none.
func growth(part, what, who string, before, after facts) []row {
	const breath = 2.0 // MB
	grown := func(name, unit string, by float64, limit float64) row {
		return fact(part, what+": more "+name, who, unit, by).atMost(itself, by, unit, limit)
	}
	rows := []row{
		grown("memory", inMB, float64(after.rss-before.rss)/1e6, breath),
		grown("open files", inPieces, float64(after.fds-before.fds), 0),
		grown("processes", inPieces, float64(after.processes-before.processes), 0),
	}
	if before.files > 0 {
		rows = append(rows, grown("files in /tmp and ~", inPieces, float64(after.files-before.files), 0))
	}
	return rows
}
