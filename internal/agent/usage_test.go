//go:build linux

package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

func TestUsageOfBothVersionsOfControlGroups(t *testing.T) {
	want := wire.Usage{CPUNanos: 5_000_000, Memory: 1000, Inactive: 300, PIDs: 7, Read: 11, Written: 22, Received: 101, Sent: 202}
	network := "Inter-|   Receive\n face |bytes packets\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n  eth0: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n" +
		"eth1:1 1 0 0 0 0 0 0 2 2 0 0 0 0 0 0\nnonsense: x\n"
	for name, files := range map[string]map[string]string{
		"version 2": {
			"cgroup.controllers": "cpu io memory pids\n", "cpu.stat": "usage_usec 5000\nuser_usec 1\n", "memory.current": "1000\n",
			"memory.stat": "anon 1\ninactive_file 300\n", "pids.current": "7\n",
			"io.stat": "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2 rios=1\n",
		},
		"version 1": {
			"cpuacct/cpuacct.usage": "5000000\n", "memory/memory.usage_in_bytes": "1000\n", "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 300\n",
			"pids/pids.current": "7\n", "blkio/blkio.throttle.io_service_bytes_recursive": "8:0 Read 10\n8:0 Write 20\n8:0 Total 30\n8:16 Read 1\n8:16 Write 2\nTotal 33\n",
		},
	} {
		dir := t.TempDir()
		for file, text := range files {
			path := filepath.Join(dir, file)
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, []byte(text), 0o644))
		}
		must(t, os.WriteFile(filepath.Join(dir, "dev"), []byte(network), 0o644))
		if got := (meter{dir, filepath.Join(dir, "dev")}).read(); *got != want {
			t.Errorf("%s: %+v, want %+v", name, *got, want)
		}
	}
	if got := (meter{t.TempDir(), "/nonexistent"}).read(); *got != (wire.Usage{}) {
		t.Errorf("of nothing: %+v", *got)
	}
	c := newWorld(t).connect(t)
	if a := c.query(wire.Query{Op: wire.OpUsage}); a.Usage == nil || a.Error != "" {
		t.Errorf("%+v", a)
	}
}
