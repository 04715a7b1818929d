package provider

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The script is bash's, so bash reads the trees.
func TestLimitsOfACgroup(t *testing.T) {
	const v1Place = "9:name=systemd:/docker/f00\n8:pids:/docker/f00\n4:memory:/docker/f00\n2:cpu,cpuacct:/docker/f00\n0::/docker/f00\n"
	for name, tc := range map[string]struct {
		place string
		files map[string]string
		want  limits
	}{
		"version 1": {v1Place, map[string]string{
			"memory/memory.limit_in_bytes": "67108864\n", "cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n", "pids/pids.max": "64\n",
		}, limits{64 << 20, 0.5, 64}},
		"version 1 without limits": {v1Place, map[string]string{
			"memory/memory.limit_in_bytes": "9223372036854771712\n", "cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n", "pids/pids.max": "max\n",
		}, limits{}},
		"version 1 seen from the machine": {v1Place, map[string]string{
			"memory/docker/f00/memory.limit_in_bytes": "6291456\n", "memory/memory.limit_in_bytes": "9223372036854771712\n",
			"cpu/docker/f00/cpu.cfs_quota_us": "200000\n", "cpu/docker/f00/cpu.cfs_period_us": "100000\n", "cpu/cpu.cfs_quota_us": "-1\n",
			"pids/docker/f00/pids.max": "100\n",
		}, limits{6 << 20, 2, 100}},
		"version 2": {"0::/\n", map[string]string{"memory.max": "67108864\n", "cpu.max": "50000 100000\n", "pids.max": "64\n"}, limits{64 << 20, 0.5, 64}},
		"version 2 without limits": {
			"0::/\n", map[string]string{"memory.max": "max\n", "cpu.max": "max 100000\n", "pids.max": "max\n"}, limits{},
		},
		"version 2 seen from the machine": {"0::/system.slice/docker-f00.scope\n", map[string]string{
			"system.slice/docker-f00.scope/memory.max": "67108864\n", "system.slice/docker-f00.scope/cpu.max": "50000 100000\n",
			"system.slice/docker-f00.scope/pids.max": "64\n",
		}, limits{64 << 20, 0.5, 64}},
		"a controller less": {"0::/\n", map[string]string{"memory.max": "67108864\n", "pids.max": "64\n"}, limits{64 << 20, unknownLimit, 64}},
		"nothing to see":    {"", nil, limits{unknownLimit, unknownLimit, unknownLimit}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			place := filepath.Join(dir, "place")
			write(t, place, tc.place)
			for file, text := range tc.files {
				write(t, filepath.Join(dir, "tree", file), text)
			}
			out, err := exec.Command("bash", "-c", limitsScript, "limits", filepath.Join(dir, "tree"), place).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := readLimits(string(out)); got != tc.want {
				t.Errorf("%+v, want %+v, of\n%s", got, tc.want, out)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
