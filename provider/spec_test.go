package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
)

var update = flag.Bool("update", false, "write the golden files")

func TestSpecsMatchTheirGoldenFiles(t *testing.T) {
	f := facts{
		agentVolume: "dockerbox-agent-0123456789ab", user: "pn", home: "/home/pn", dir: "/home/pn",
		owner: "me@here", version: "1.2.3", created: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC),
	}
	base := contract.Defaults()
	base.Image = "dockerbox/desktop:latest"
	with := func(change func(*contract.Config, *facts)) func() (contract.Config, facts) {
		return func() (contract.Config, facts) {
			cfg, f := base, f
			change(&cfg, &f)
			return cfg, f
		}
	}
	for name, in := range map[string]func() (contract.Config, facts){
		"default": with(func(*contract.Config, *facts) {}),
		"no-limits": with(func(c *contract.Config, _ *facts) {
			c.CPUs, c.MemoryMB, c.PIDs, c.ShmBytes = 0, 0, 0, 0
		}),
		"ephemeral-offline": with(func(c *contract.Config, f *facts) {
			c.Persistent, c.Network, f.home = false, contract.NetworkNone, ""
		}),
		"everything-set": with(func(c *contract.Config, f *facts) {
			*c = contract.Config{
				Name: "p:x", Profile: "work", Task: "t-1", Image: "debian:trixie", User: "4242:100", CPUs: 1.5, MemoryMB: 256, PIDs: 64,
				DiskMB: 1000, ShmBytes: 64 << 20, Network: contract.NetworkBridge, Env: map[string]string{"B": "2 =x", "A": ""}, Persistent: true,
				ForwardEnv: []string{"TOKEN", "KEY"},
				Mounts: []contract.Mount{
					{Source: "/srv/data", Target: "/z", ReadOnly: true}, {Source: "/home/me/src", Target: "/home/4242/src"}, {Source: "cache", Target: "/cache"},
				},
				ExtraArgs: []string{"--tmpfs", "/scratch:size=64m", "--ulimit=nofile=1024:2048", "--cap-drop=setfcap", "--cap-add", "NET_ADMIN", "--label=team=a"},
			}
			f.user, f.home, f.dir, f.homeVariable, f.quota = "4242:100", "/home/4242", "/home/4242", "/home/4242", true
		}),
		"hardened": with(func(c *contract.Config, f *facts) {
			c.Security, c.Network, f.runtimeDir = contract.SecurityHardened, contract.NetworkNone, "/var/lib/dockerbox/runtime"
		}),
		"home-mounted": with(func(c *contract.Config, _ *facts) {
			c.Mounts = []contract.Mount{{Source: "/home/me", Target: "/home/pn"}}
		}),
		"every-extra-arg": with(func(c *contract.Config, f *facts) {
			c.CPUs, f.noCPUs, f.noSeccomp = 2, true, true
			for _, tc := range acceptedArgs {
				c.ExtraArgs = append(c.ExtraArgs, tc.args...)
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpec(in())
			abridgeSeccomp(s.host)
			got, err := json.MarshalIndent(map[string]any{
				"container": s.id.container(), "home": s.id.home(), "config": s.config, "host": s.host,
			}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
				t.Fatalf("%s differs (go test ./provider -update writes it anew):\n%s", golden, diff)
			}
		})
	}
}

// abridgeSeccomp puts a digest in place of the profile's 12 kB, which package image holds to Docker's.
func abridgeSeccomp(host *container.HostConfig) {
	const digits = 12
	for i, option := range host.SecurityOpt {
		if profile, ok := strings.CutPrefix(option, "seccomp="); ok {
			sum := sha256.Sum256([]byte(profile))
			host.SecurityOpt[i] = "seccomp=sha256:" + hex.EncodeToString(sum[:])[:digits]
		}
	}
}

// What the golden files cannot show: the promises about safety hold for every configuration.
func TestSpecsKeepTheirPromises(t *testing.T) {
	cfg := contract.Defaults()
	cfg.Image = "x"
	s := newSpec(cfg, facts{user: "pn", home: "/home/pn", agentVolume: "v"})
	h := s.host
	switch {
	case h.Privileged, h.PublishAllPorts, len(h.PortBindings) > 0, len(h.Binds) > 0, len(h.Devices) > 0:
		t.Error("a sandbox must publish nothing, bind nothing and hold no device")
	case h.PidMode != "", h.IpcMode != "", h.UTSMode != "", h.UsernsMode != "" || h.NetworkMode == "host":
		t.Error("a sandbox must not share a namespace with the host")
	case len(h.SecurityOpt) != 1 || h.SecurityOpt[0] != "seccomp="+image.Seccomp():
		t.Error("a sandbox runs with our profile of system calls, whatever the daemon's is")
	case len(h.CapDrop) != 1 || h.CapDrop[0] != "ALL":
		t.Error("capabilities are added to none, not to Docker's default")
	}
	for _, c := range h.CapAdd {
		switch c {
		case "SYS_ADMIN", "SYS_PTRACE", "NET_ADMIN", "NET_RAW", "SYS_MODULE", "MKNOD", "ALL":
			t.Errorf("capability %s has no business in a sandbox", c)
		}
	}
	for _, m := range h.Mounts {
		if strings.Contains(m.Source, "docker.sock") {
			t.Error("the docker socket must never be inside")
		}
		if m.Target == agentDir && !m.ReadOnly {
			t.Error("the agent must be read-only inside")
		}
	}
}

func TestSpecDigestFollowsWhatShapesTheContainer(t *testing.T) {
	cfg := contract.Defaults()
	one := newSpec(cfg, facts{owner: "a", version: "1", created: time.Unix(1, 0)})
	two := newSpec(cfg, facts{owner: "b", version: "2", created: time.Unix(2, 0)})
	if one.config.Labels[labelSpec] != two.config.Labels[labelSpec] {
		t.Error("who made it, when and with which version must not count")
	}
	cfg.MemoryMB++
	if three := newSpec(cfg, facts{}); three.config.Labels[labelSpec] == one.config.Labels[labelSpec] {
		t.Error("memory must count")
	}
}

// Docker would give a directory in memory the mode of the one below it, 0700, and root: the account could not enter its own home.
func TestHomeInMemoryBelongsToItsAccount(t *testing.T) {
	for args, want := range map[string]string{
		"/home/pn": "uid=1000,gid=1001", "/home/pn:size=1m": "size=1m,uid=1000,gid=1001", "/home/pn:gid=7,uid=5": "gid=7,uid=5", "/home/pn:gid=7": "gid=7,uid=1000", "/srv": "",
	} {
		cfg := contract.Defaults()
		cfg.ExtraArgs = []string{"--tmpfs", args}
		s := newSpec(cfg, facts{user: "pn", dir: "/home/pn", home: "/home/pn", uid: 1000, gid: 1001})
		target, _, _ := strings.Cut(args, ":")
		if got := s.host.Tmpfs[target]; got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

func TestIdentitiesNeverMeet(t *testing.T) {
	ids := []identity{
		{"", "p:x"}, {"", "p_x"}, {"p", "x"}, {"", "p-x"}, {"", "P_x"}, {"p", "p_x"}, {"px", ""}, {"", "px"},
		{"", strings.Repeat("a", 40)}, {"", strings.Repeat("a", 41)},
	}
	names, homes, hosts := map[string]identity{}, map[string]identity{}, map[string]identity{}
	for _, id := range ids {
		for _, m := range []struct {
			seen map[string]identity
			name string
		}{{names, id.container()}, {homes, id.home()}, {hosts, id.hostname()}} {
			if other, taken := m.seen[m.name]; taken {
				t.Errorf("%v and %v are both %s", id, other, m.name)
			}
			m.seen[m.name] = id
		}
		if len(id.hostname()) > 63 {
			t.Errorf("hostname %s is too long", id.hostname())
		}
		if id.name != "" && parseIdentity(id.String()) != id {
			t.Errorf("%v does not survive as %q", id, id)
		}
	}
}

func TestLookupFollowsDockersRules(t *testing.T) {
	passwd := []byte("root:x:0:0:root:/root:/bin/bash\n# a comment\nbroken:line\nodd:x:y:1:::\npn:x:1000:1001:,,,:/home/pn/:/bin/bash\nbin:x:2:2::/bin:\nsync:x:4:65534::/:/bin/sync\nbinder:x:9:9::/binder:\nsvc:x:7:7::relative:/bin/sh\n1000x:x:8:8::/eight:/bin/sh\n")
	for user, want := range map[string]struct {
		account
		ok bool
	}{
		"pn": {account{1000, 1001, "/home/pn"}, true}, "1000": {account{1000, 1001, "/home/pn"}, true}, "pn:users": {account{1000, 1001, "/home/pn"}, true},
		"root": {account{0, 0, "/root"}, true}, "0:0": {account{0, 0, "/root"}, true},
		"4242": {account{4242, 0, ""}, true}, "4242:0": {account{4242, 0, ""}, true},
		"nobody": {}, "broken": {}, "#": {}, "-1": {}, "odd": {}, "99999999999": {}, "4294967295": {},
		"svc": {account{7, 7, ""}, true}, "1000x": {account{8, 8, "/eight"}, true}, "2147483647": {account{2147483647, 0, ""}, true},
		"bin": {account{2, 2, ""}, true}, "sync": {account{4, 65534, ""}, true}, "binder": {account{9, 9, "/binder"}, true},
	} {
		a, ok := lookup(passwd, user)
		if ok != want.ok || a != want.account {
			t.Errorf("%s: %+v %v, want %+v", user, a, ok, want)
		}
	}
}

func TestGroupsAreLookedUpOnlyByName(t *testing.T) {
	group := []byte("root:x:0:\nusers:x:100:pn\nbroken\nodd:x:y:\n")
	for user, want := range map[string]int{
		"pn": 7, "pn:users": 100, "pn:100": 100, "pn:4343": 4343, "1000:root": 0,
		"pn:nosuch": -1, "pn:broken": -1, "pn:x": -1, "pn:odd": -1, "pn:4294967295": -1, "pn:": -1,
	} {
		if gid, ok := groupOf(group, user, 7); ok != (want >= 0) || ok && gid != want {
			t.Errorf("%s: %d %v, want %d", user, gid, ok, want)
		}
	}
}

func TestReadBoxTellsForeignContainersApart(t *testing.T) {
	s := newSpec(contract.Defaults(), facts{user: "pn"})
	mine := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{ID: "abc", Name: "/" + s.id.container()}, Config: s.config}
	b, err := readBox(mine)
	if err != nil || b.id != s.id || b.record.User != "pn" || b.containerID != "abc" {
		t.Fatalf("%+v %v", b, err)
	}
	for name, labels := range map[string]map[string]string{
		"not dockerbox's": nil, "cannot be read": {labelName: "x", labelConfig: "{"},
	} {
		other := mine
		other.Config = &container.Config{Labels: labels}
		if _, err := readBox(other); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
