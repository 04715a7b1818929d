package provider

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// What the golden files cannot show: no flag, mount or image gives a hardened sandbox back what it is without.
func TestHardenedSpecsKeepTheirPromises(t *testing.T) {
	cfg := contract.Defaults()
	cfg.Image, cfg.Security = "x", contract.SecurityHardened
	for name, change := range map[string]func(*contract.Config, *facts){
		"default":         func(*contract.Config, *facts) {},
		"ephemeral":       func(c *contract.Config, f *facts) { c.Persistent, f.home = false, "" },
		"no home":         func(c *contract.Config, f *facts) { c.Persistent, f.home, f.noHome = false, "", true },
		"cap-drop":        func(c *contract.Config, _ *facts) { c.ExtraArgs = []string{"--cap-drop=ALL"} },
		"cap-drop of one": func(c *contract.Config, _ *facts) { c.ExtraArgs = []string{"--cap-drop", "SETUID"} },
		"tmpfs":           func(c *contract.Config, _ *facts) { c.ExtraArgs = []string{"--tmpfs=/tmp:size=1m", "--tmpfs=/home/pn"} },
		"mounts": func(c *contract.Config, _ *facts) {
			c.Mounts = []contract.Mount{{Source: "/a", Target: "/tmp"}, {Source: "b", Target: "/home/pn"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, f := cfg, facts{user: "pn", home: "/home/pn", dir: "/home/pn", agentVolume: "v", runtimeDir: "/var/lib/x"}
			change(&cfg, &f)
			s := newSpec(cfg, f)
			h := s.host
			if !h.ReadonlyRootfs || len(h.CapAdd) > 0 || !slices.Equal(h.CapDrop, []string{"ALL"}) || !slices.Contains(h.SecurityOpt, noNewPrivileges) || len(h.SecurityOpt) != 2 {
				t.Errorf("read-only %v, cap-add %q, cap-drop %q", h.ReadonlyRootfs, h.CapAdd, h.CapDrop)
			}
			count := map[string]int{}
			for dir, options := range h.Tmpfs {
				count[dir]++
				if strings.Contains(options, "suid") != strings.Contains(options, "nosuid") {
					t.Errorf("%s: %s", dir, options)
				}
			}
			for _, m := range h.Mounts {
				count[m.Target]++
			}
			for _, dir := range []string{"/tmp", "/var/tmp", "/run", "/home/pn", "/var/lib/x", agentDir} {
				if count[dir] != 1 {
					t.Errorf("%d things are mounted at %s", count[dir], dir)
				}
			}
		})
	}
}

func TestARuntimeDirectoryThatCanBeWrittenToNeedsNoMount(t *testing.T) {
	cfg := contract.Defaults()
	cfg.Image, cfg.Security = "x", contract.SecurityHardened
	for _, dir := range []string{"/run/user/1000", "/tmp/runtime", "/home/pn/.run", "/dev/shm/x"} {
		s := newSpec(cfg, facts{user: "pn", home: "/home/pn", dir: "/home/pn", runtimeDir: dir})
		for _, m := range s.host.Mounts {
			if m.Target == dir {
				t.Errorf("%+v", m)
			}
		}
	}
	for text, want := range map[string]string{"XDG_RUNTIME_DIR=/var/x/": "/var/x", "XDG_RUNTIME_DIR=x": "", "A=XDG_RUNTIME_DIR=/x": ""} {
		if got := runtimeDir([]string{"PATH=/bin", text}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestAHardenedSandboxRefusesFlagsThatUndoIt(t *testing.T) {
	cfg := contract.Defaults()
	cfg.Name, cfg.Security = "x", contract.SecurityHardened
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--cap-add=NET_ADMIN", "--cap-add", "ALL"}, "--cap-add: a hardened sandbox has no capabilities"},
		{[]string{"--device=/dev/kvm"}, "--device: a hardened sandbox has no devices of the machine"},
		{[]string{"--device-cgroup-rule", "c 189:* rwm"}, "--device-cgroup-rule: a hardened sandbox has no devices of the machine"},
		{[]string{"--gpus=all"}, "--gpus: a hardened sandbox has no devices of the machine"},
		{[]string{"--security-opt", "apparmor=unconfined"}, "--security-opt: apparmor=unconfined takes a protection away that a hardened sandbox keeps"},
		{[]string{"--security-opt=label=disable"}, "--security-opt: label=disable takes a protection away that a hardened sandbox keeps"},
		{[]string{"--dns=1.1.1.1", "--cap-drop=ALL", "--tmpfs=/x", "--security-opt", "apparmor=mine", "--ulimit", "nofile=99"}, ""},
	} {
		cfg.ExtraArgs = tc.args
		var got []string
		for _, f := range Check(cfg) {
			got = append(got, f.Key+" "+f.Problem)
		}
		want := ""
		if tc.want != "" {
			want = "extra-args " + tc.want + insteadStandard
		}
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("%q:\n got %s\nwant %s", tc.args, text, want)
		}
	}
	cfg.ExtraArgs = []string{"--privileged"}
	if f := Check(cfg); len(f) != 1 || !strings.Contains(f[0].Problem, "no sandbox") {
		t.Errorf("%v", f)
	}
	cfg.ExtraArgs, cfg.Security = []string{"--cap-add=NET_ADMIN"}, contract.SecurityStandard
	if f := Check(cfg); f != nil {
		t.Errorf("a standard sandbox: %v", f)
	}
}

// Without a network is what nobody has asked to have one; what a living sandbox has been given it keeps.
func TestHardenedIsOfflineUnlessAskedFor(t *testing.T) {
	cfg := func(security, network string, given ...string) contract.Config {
		return contract.Config{Security: security, Network: network, Given: given}
	}
	for name, tc := range map[string]struct {
		got  contract.Config
		want string
	}{
		"new":                           {offline(cfg("hardened", "bridge", "security")), "none"},
		"new, asked for":                {offline(cfg("hardened", "bridge", "network", "security")), "bridge"},
		"new, everything chosen":        {offline(contract.Config{Security: "hardened", Network: "bridge"}), "bridge"},
		"new, standard":                 {offline(cfg("standard", "bridge", "security")), "bridge"},
		"nothing named":                 {overlay(cfg("hardened", "bridge"), cfg("standard", "bridge", "cpus")), "bridge"},
		"hardened again":                {overlay(cfg("hardened", "bridge"), cfg("hardened", "bridge", "security")), "bridge"},
		"from standard":                 {overlay(cfg("", "bridge"), cfg("hardened", "bridge", "security")), "none"},
		"from standard, with a network": {overlay(cfg("", "bridge"), cfg("hardened", "bridge", "network", "security")), "bridge"},
		"to standard":                   {overlay(cfg("hardened", "none"), cfg("standard", "bridge", "security")), "none"},
	} {
		if tc.got.Network != tc.want {
			t.Errorf("%s: %s, want %s", name, tc.got.Network, tc.want)
		}
	}
}

// The record of a standard sandbox says nothing of security, as those made before there was a choice; a hardened one's does and comes back.
func TestSecurityIsInTheRecordOfHardenedSandboxesAlone(t *testing.T) {
	cfg := contract.Defaults()
	standard := newSpec(cfg, facts{})
	cfg.Security = ""
	if diff := cmp.Diff(newSpec(cfg, facts{}).record, standard.record); diff != "" || strings.Contains(standard.record.encode(), "security") {
		t.Errorf("%s%s", standard.record.encode(), diff)
	}
	cfg.Security = contract.SecurityHardened
	hardened := newSpec(cfg, facts{})
	if again := hardened.record.wanted(hardened.id); !again.Hardened() {
		t.Errorf("%+v", again)
	}
	if d := compare(standard.record, hardened.record); !slices.Equal(d.fixed, []string{"security is standard, wanted hardened"}) {
		t.Errorf("%q", d.fixed)
	}
	if got := slices.Sorted(maps.Keys(hardened.host.Tmpfs)); !slices.Equal(got, []string{"/run", "/tmp", "/tmp/.X11-unix", "/var/tmp"}) {
		t.Errorf("%q", got)
	}
}
