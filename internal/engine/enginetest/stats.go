//go:build linux

package enginetest

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
)

// Stats implements the provider's engine: what [Engine.Uses] set, else the processor time of the container's agent and made-up constants.
func (e *Engine) Stats(ctx context.Context, id string) (container.StatsResponse, error) {
	var s container.StatsResponse
	if err := e.enter(ctx, OpStats); err != nil {
		return s, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.find(id)
	if !ok {
		return s, notFound("measuring container %s: there is none", id)
	}
	if e.uses != nil {
		return e.uses(b.name), nil
	}
	if !b.running() {
		return s, nil
	}
	s.Read = time.Now()
	s.CPUStats.OnlineCPUs = 2
	if !b.bare {
		s.CPUStats.CPUUsage.TotalUsage = processorTime(b.agent.Process.Pid)
	}
	const memory, cache = 30 << 20, 10 << 20
	s.MemoryStats.Usage, s.MemoryStats.Stats, s.MemoryStats.Limit = memory, map[string]uint64{"total_inactive_file": cache}, uint64(max(b.host.Memory, 0))
	s.PidsStats.Current = 1
	if b.host.PidsLimit != nil {
		s.PidsStats.Limit = uint64(max(*b.host.PidsLimit, 0))
	}
	s.Networks = map[string]container.NetworkStats{"eth0": {RxBytes: 1000, TxBytes: 500}}
	return s, nil
}

// Uses sets what containers use from now on, by their names. A nil f is what they use in truth.
func (e *Engine) Uses(f func(name string) container.StatsResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.uses = f
}

// processorTime is a process's, in nanoseconds, 0 when it has ended.
func processorTime(pid int) uint64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// written is how much every container wrote, in bytes.
const written = 4096

// WrittenSize implements the provider's engine.
func (e *Engine) WrittenSize(ctx context.Context, id string) (int64, error) {
	if err := e.enter(ctx, OpWrittenSize); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.find(id); !ok {
		return 0, notFound("measuring what container %s wrote: there is none", id)
	}
	return written, nil
}
