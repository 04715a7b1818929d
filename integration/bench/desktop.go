//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// How long a screen is left alone, in seconds: first until what its programs do after their start is done, then to be watched.
const (
	deskSettle = 8
	deskWatch  = 10
)

// deskGauge prints the memory in bytes and the processor time in nanoseconds that the container uses, as docker stats counts them, then
// the processor time again after a while. It is one shell without a process of its own to run, because each would be counted.
const deskGauge = `cpu() {
  if [[ -r /sys/fs/cgroup/cpu.stat ]]; then
    while read -r name value; do [[ $name == usage_usec ]] && echo "${value}000"; done </sys/fs/cgroup/cpu.stat
  else
    echo "$(</sys/fs/cgroup/cpuacct/cpuacct.usage)"
  fi
}
memory() {
  dir=/sys/fs/cgroup used=memory.current cache=inactive_file
  [[ -r $dir/$used ]] || dir=$dir/memory used=memory.usage_in_bytes cache=total_inactive_file
  while read -r name value; do [[ $name == "$cache" ]] && echo "$(($(<"$dir/$used") - value))"; done <"$dir/memory.stat"
}
memory
cpu
read -rt "$1" <> <(:) || cpu`

// desk is a sandbox with a screen. It is made anew for each start.
type desk struct {
	b    *bench
	name string
}

// runDesktop times and weighs the screen. No other subject has one, so nothing takes turns.
func runDesktop(ctx context.Context, b *bench) ([]row, error) {
	d := desk{b, b.tag + "-desk"}
	b.atEnd("remove sandbox "+d.name, d.remove)
	if _, _, err := d.start(ctx, 0); err != nil { // not counted: first use of everything
		return nil, err
	}
	var limited, free, whole samples
	for range b.count(3, 1) {
		took, _, err := d.start(ctx, 1)
		if err != nil {
			return nil, err
		}
		limited = append(limited, took)
	}
	for range b.count(5, 1) {
		took, all, err := d.start(ctx, 0)
		if err != nil {
			return nil, err
		}
		free, whole = append(free, took), append(whole, all)
	}
	if err := d.rest(ctx, b.count(deskSettle, 1)); err != nil {
		return nil, err
	}
	idle, share, err := d.gauge(ctx, b.count(deskWatch, 2))
	if err != nil {
		return nil, err
	}
	var pictures samples
	for range b.count(10, 2) {
		began := time.Now()
		if _, err := d.dockerbox(ctx, "desktop", "screenshot", "-o", filepath.Join(b.dir, "screen.png"), d.name); err != nil {
			return nil, err
		}
		pictures = append(pictures, time.Since(began).Seconds())
	}
	if _, err := d.dockerbox(ctx, "desktop", "stop", d.name); err != nil {
		return nil, err
	}
	without, _, err := d.gauge(ctx, 1)
	if err != nil {
		return nil, err
	}
	const who, mib = "dockerbox desktop", 1 << 20
	start := measured("desktop", "container's start to desktop ready, no limit of cores", who, inSeconds, free)
	picture := measured("desktop", "screenshot, as a process", who, inSeconds, pictures)
	return []row{
		start.atMost(itself, start.Median, inSeconds, 1.5),
		measured("desktop", "container's start to desktop ready, one core", who, inSeconds, limited),
		measured("desktop", "`up` and `desktop start`, as processes", who, inSeconds, whole),
		picture.atMost(itself, picture.Median, inSeconds, 0.5),
		fact("desktop", "processor at rest, of one core", who, "%", share).atMost(itself, share, "%", 1),
		fact("desktop", "memory of the container at rest", who, "MiB", idle/mib).atMost(itself, idle/mib, "MiB", 120).
			note("once the desktop has stopped", without/mib, "MiB"),
	}, nil
}

func (d desk) dockerbox(ctx context.Context, words ...string) (string, error) {
	return d.b.output(ctx, d.b.dockerbox, words...)
}

func (d desk) remove(ctx context.Context) error {
	_, err := d.dockerbox(ctx, "rm", "-f", d.name)
	return err
}

// start makes the sandbox anew, 0 cores for no limit, and starts its desktop. Seconds from the start of the container, as the daemon dates
// it, and from that of the first command.
func (d desk) start(ctx context.Context, cores int) (took, whole float64, err error) {
	if err := d.remove(ctx); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if _, err := d.dockerbox(ctx, "up", "--ephemeral", "--cpus", strconv.Itoa(cores), d.name); err != nil {
		return 0, 0, err
	}
	if _, err := d.dockerbox(ctx, "desktop", "start", d.name); err != nil {
		return 0, 0, err
	}
	ended := time.Now()
	var about struct{ ID string }
	inspected, err := d.dockerbox(ctx, "inspect", "--json", d.name)
	if err != nil {
		return 0, 0, err
	}
	if err := json.Unmarshal([]byte(inspected), &about); err != nil {
		return 0, 0, err
	}
	container, err := d.b.engine.Inspect(ctx, about.ID)
	if err != nil {
		return 0, 0, err
	}
	started, err := time.Parse(time.RFC3339Nano, container.State.StartedAt)
	return ended.Sub(started).Seconds(), ended.Sub(began).Seconds(), err
}

// gauge is the memory in bytes, and the percentage of a core that was used over that many seconds.
func (d desk) gauge(ctx context.Context, seconds int) (bytes, share float64, err error) {
	out, err := d.dockerbox(ctx, "exec", d.name, "bash", "-c", deskGauge, "bash", strconv.Itoa(seconds))
	if err != nil {
		return 0, 0, err
	}
	return parseDesk(out, seconds)
}

func parseDesk(out string, seconds int) (bytes, share float64, err error) {
	var before, after float64
	words := strings.Fields(out)
	if n, err := fmt.Sscan(out, &bytes, &before, &after); err != nil || n != len(words) {
		return 0, 0, fmt.Errorf("the gauge printed %.200q", out)
	}
	return bytes, (after - before) / (float64(seconds) * 1e9) * 100, nil
}

// rest waits for nothing: an idle screen is the thing to be measured.
func (d desk) rest(ctx context.Context, seconds int) error {
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
