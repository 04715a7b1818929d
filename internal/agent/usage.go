//go:build linux

package agent

import (
	"os"
	"strconv"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// Some daemons cannot tell what a container uses, on machines whose control groups they do not understand. Inside, the container's own group
// is in plain sight.

// meter is where the container's usage is; fields so that tests bring their own.
type meter struct{ cgroup, network string }

var systemMeter = meter{cgroup: "/sys/fs/cgroup", network: "/proc/self/net/dev"}

// read is what all of the container used. What cannot be read is zero.
func (m meter) read() *wire.Usage {
	u := &wire.Usage{}
	if m.text("cgroup.controllers") != "" { // version 2: one tree
		u.CPUNanos = 1000 * field(m.text("cpu.stat"), "usage_usec")
		u.Memory, u.Inactive = m.number("memory.current"), field(m.text("memory.stat"), "inactive_file")
		u.PIDs = m.number("pids.current")
		for _, word := range strings.Fields(m.text("io.stat")) {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "rbytes":
				u.Read += number(value)
			case "wbytes":
				u.Written += number(value)
			}
		}
	} else {
		for _, dir := range []string{"cpuacct", "cpu,cpuacct"} {
			u.CPUNanos = max(u.CPUNanos, m.number(dir+"/cpuacct.usage"))
		}
		u.Memory, u.Inactive = m.number("memory/memory.usage_in_bytes"), field(m.text("memory/memory.stat"), "total_inactive_file")
		u.PIDs = m.number("pids/pids.current")
		for line := range strings.Lines(m.text("blkio/blkio.throttle.io_service_bytes_recursive")) {
			const device, operation, bytes = 0, 1, 2
			f := strings.Fields(line)
			switch {
			case len(f) <= bytes || f[device] == "Total":
			case f[operation] == "Read":
				u.Read += number(f[bytes])
			case f[operation] == "Write":
				u.Written += number(f[bytes])
			}
		}
	}
	text, _ := os.ReadFile(m.network) // without a network there is none
	for line := range strings.Lines(string(text)) {
		const received, sent = 0, 8
		name, counters, ok := strings.Cut(line, ":")
		if f := strings.Fields(counters); ok && strings.TrimSpace(name) != "lo" && len(f) > sent {
			u.Received, u.Sent = u.Received+number(f[received]), u.Sent+number(f[sent])
		}
	}
	return u
}

// text is what a file of the group holds, "" when there is none.
func (m meter) text(file string) string {
	b, err := os.ReadFile(m.cgroup + "/" + file)
	if err != nil {
		return ""
	}
	return string(b)
}

func (m meter) number(file string) uint64 { return number(strings.TrimSpace(m.text(file))) }

// field is the number behind a name in lines "name number".
func field(text, name string) uint64 {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return number(strings.TrimSpace(value))
		}
	}
	return 0
}

func number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
