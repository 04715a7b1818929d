package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// caller is the environment that K without a value takes.
func caller(name string) (string, bool) {
	v, ok := map[string]string{"FROM": "caller", "EMPTY": ""}[name]
	return v, ok
}

// parseUp reads args as up does.
func parseUp(t *testing.T, args ...string) (contract.Config, error) {
	t.Helper()
	var o upOptions
	flags := o.flags()
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o.config(flags.Args(), flags, caller)
}

func TestUpConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("\uFEFF# comment\n\nA=file\r\n  B= spaced \nFROM\nNOWHERE\nC=x=y # z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want func(*contract.Config)
	}{
		"nothing": {nil, func(*contract.Config) {}},
		"name":    {[]string{"box"}, func(c *contract.Config) { c.Name = "box" }},
		"flags that do not shape it": {
			[]string{"--json", "--recreate"}, func(c *contract.Config) { c.Recreate = true },
		},
		"flags on both sides": {
			[]string{"--image", "i:1", "box", "--user", "4242:0"}, func(c *contract.Config) {
				c.Name, c.Image, c.User, c.Given = "box", "i:1", "4242:0", []string{"image", "user"}
			},
		},
		"a default by name is still asked for": {[]string{"--cpus", "1"}, func(c *contract.Config) { c.Given = []string{"cpus"} }},
		"numbers":                              {[]string{"--cpus", "0.5", "--pids", "0"}, func(c *contract.Config) { c.CPUs, c.PIDs, c.Given = 0.5, 0, []string{"cpus", "pids"} }},
		"memory in units":                      {[]string{"--memory", "2.5g"}, func(c *contract.Config) { c.MemoryMB, c.Given = 2560, []string{"memory_mb"} }},
		"memory in bytes":                      {[]string{"--memory", "536870912"}, func(c *contract.Config) { c.MemoryMB, c.Given = 512, []string{"memory_mb"} }},
		"memory is rounded up":                 {[]string{"--memory", "536870913"}, func(c *contract.Config) { c.MemoryMB, c.Given = 513, []string{"memory_mb"} }},
		"no memory limit":                      {[]string{"--memory", "0"}, func(c *contract.Config) { c.MemoryMB, c.Given = 0, []string{"memory_mb"} }},
		"shm":                                  {[]string{"--shm-size", "64m"}, func(c *contract.Config) { c.ShmBytes, c.Given = 64<<20, []string{"shm_bytes"} }},
		"network":                              {[]string{"--network", "none"}, func(c *contract.Config) { c.Network, c.Given = "none", []string{"network"} }},
		"disk":                                 {[]string{"--disk", "1000m"}, func(c *contract.Config) { c.DiskMB, c.Given = 1000, []string{"disk_mb"} }},
		"no disk limit":                        {[]string{"--disk", "0"}, func(c *contract.Config) { c.DiskMB, c.Given = 0, []string{"disk_mb"} }},
		"forwarded": {[]string{"--forward-env", "A", "--forward-env", "B"}, func(c *contract.Config) {
			c.ForwardEnv, c.Given = []string{"A", "B"}, []string{"forward_env"}
		}},
		"mounts": {
			[]string{"-v", "/a/../b:/x/", "-v", "cache:/c:ro", "--volume", "./src:/src:rw", "-v", "..:/up", "-v", ".git:/git", "-v", "~/y:/y"},
			func(c *contract.Config) {
				here, err := os.Getwd()
				if err != nil {
					t.Fatal(err)
				}
				c.Given = []string{"mounts"}
				c.Mounts = []contract.Mount{
					{Source: "/a/../b", Target: "/x"}, {Source: "cache", Target: "/c", ReadOnly: true}, {Source: filepath.Join(here, "src"), Target: "/src"},
					{Source: filepath.Dir(here), Target: "/up"}, {Source: filepath.Join(here, ".git"), Target: "/git"}, {Source: "~/y", Target: "/y"},
				}
			},
		},
		"ephemeral": {[]string{"--ephemeral"}, func(c *contract.Config) { c.Persistent, c.Given = false, []string{"persistent"} }},
		"variables": {
			[]string{"-e", "A=1=2", "-e", "FROM", "-e", "EMPTY", "-e", "NOWHERE", "-e", "A=last", "-e", "N=a\nb"},
			func(c *contract.Config) {
				c.Env, c.Given = map[string]string{"A": "last", "FROM": "caller", "EMPTY": "", "N": "a\nb"}, []string{"env"}
			},
		},
		"file, and -e over it": {
			[]string{"-e", "A=flag", "--env-file", file},
			func(c *contract.Config) {
				c.Env, c.Given = map[string]string{"A": "flag", "B": " spaced ", "FROM": "caller", "C": "x=y # z"}, []string{"env"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := contract.Defaults()
			want.Env, want.Given = map[string]string{}, []string{}
			tc.want(&want)
			got, err := parseUp(t, tc.args...)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("%v\n-want +got\n%s", err, diff)
			}
		})
	}
}

// Everything wrong is said at once, under the flag's own name.
func TestUpConfigListsEveryFault(t *testing.T) {
	_, err := parseUp(t, "--memory", "x", "--disk", "z", "-v", "/a", "--forward-env", "1", "--shm-size", "y", "-e", "=", "--cpus", "-1", "--network", "host", "--", "-bad-")
	for _, key := range []string{"memory: ", "disk: ", "volume: ", "forward-env: ", "shm-size: ", "env: ", "cpus: ", "network: ", "name: "} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("nothing about %q in: %v", key, err)
		}
	}
}

// A flag that nobody thought of here would be taken for one that changes nothing.
func TestEachFlagOfUpIsASettingOrNone(t *testing.T) {
	var o upOptions
	o.flags().VisitAll(func(f *pflag.Flag) {
		_, shapes := settingOf[f.Name]
		if known := shapes || f.Name == "recreate" || f.Name == "desktop" || f.Name == "json"; !known {
			t.Errorf("--%s is in no list", f.Name)
		}
	})
}

func TestForwardTakesWhatTheCallerHas(t *testing.T) {
	given := map[string]string{"A": "given", "FROM": "also given"}
	got := forward([]string{"FROM", "EMPTY", "NOWHERE"}, given, caller)
	if diff := cmp.Diff(map[string]string{"A": "given", "FROM": "also given", "EMPTY": ""}, got); diff != "" {
		t.Error(diff)
	}
	if _, there := given["EMPTY"]; there {
		t.Error("what was given has changed")
	}
	if got := forward([]string{"FROM"}, nil, caller); got["FROM"] != "caller" {
		t.Error(got)
	}
	if got := forward(nil, nil, caller); len(got) != 0 {
		t.Error(got)
	}
}
