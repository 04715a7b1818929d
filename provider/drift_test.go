package provider

import (
	"math"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestCompareNamesEachDifferenceAndNoValueOfEnv(t *testing.T) {
	a := record{
		Image: "i", User: "pn", CPUs: 1, MemoryMB: 5120, PIDs: 64, ShmBytes: 1 << 20, Network: "bridge", Persistent: true,
		Env: map[string]string{"KEEP": "1", "TOKEN": "hunter2", "OLD": "x"},
	}
	if d := compare(a, a); d.live != nil || d.fixed != nil {
		t.Errorf("no difference gave %+v", d)
	}
	b := a
	b.Image, b.User, b.CPUs, b.MemoryMB, b.PIDs, b.DiskMB, b.ShmBytes, b.Network, b.Persistent = "j", "0", 1.5, 256, 0, 1000, 0, "none", false
	b.Env, b.Agent = map[string]string{"KEEP": "1", "TOKEN": "hunter3", "NEW": "y"}, "newer"
	b.Security = "hardened"
	b.ForwardEnv, b.Mounts, b.ExtraArgs = []string{"F"}, []contract.Mount{{Source: "/s", Target: "/t", ReadOnly: true}}, []string{"--dns", "1.1.1.1"}
	want := drift{
		live: []string{"cpus is 1, wanted 1.5", "memory is 5120 MB, wanted 256 MB", "pids is 64, wanted no limit"},
		fixed: []string{
			"image is i, wanted j", "user is pn, wanted 0", "disk is no limit, wanted 1000 MB",
			"shm-size is 1048576 bytes, wanted the daemon's default", "security is standard, wanted hardened", "network is bridge, wanted none", "persistent is true, wanted false",
			"env differs in NEW, OLD, TOKEN", "forward-env is none, wanted F", "volumes is none, wanted /s:/t:ro", "extra-args is none, wanted --dns 1.1.1.1",
		},
	}
	if diff := cmp.Diff(want, compare(a, b), cmp.AllowUnexported(drift{})); diff != "" {
		t.Error(diff)
	}
}

// The API cannot take a limit of cores or memory away, but gives one where there was none.
func TestALimitThatIsLifted(t *testing.T) {
	limited, free := record{CPUs: 0.5, MemoryMB: 256, PIDs: 64}, record{}
	want := drift{
		live:  []string{"pids is 64, wanted no limit"},
		fixed: []string{"cpus is 0.5, wanted no limit", "memory is 256 MB, wanted no limit"},
	}
	if diff := cmp.Diff(want, compare(limited, free), cmp.AllowUnexported(drift{})); diff != "" {
		t.Error(diff)
	}
	want = drift{live: []string{"cpus is no limit, wanted 0.5", "memory is no limit, wanted 256 MB", "pids is no limit, wanted 64"}}
	if diff := cmp.Diff(want, compare(free, limited), cmp.AllowUnexported(drift{})); diff != "" {
		t.Error(diff)
	}
}

func TestLiveLimits(t *testing.T) {
	has := record{CPUs: 1, MemoryMB: 256, PIDs: 64}
	pids := func(n int64) *int64 { return &n }
	for name, tc := range map[string]struct {
		change func(*contract.Config)
		swap   int64
		want   container.Resources
	}{
		"nothing": {func(*contract.Config) {}, 0, container.Resources{}},
		"memory":  {func(c *contract.Config) { c.MemoryMB = 512 }, 0, container.Resources{Memory: 512 << 20, MemorySwap: 1024 << 20}},
		"memory where swap was chosen": {
			func(c *contract.Config) { c.MemoryMB = 512 }, -1, container.Resources{Memory: 512 << 20, MemorySwap: -1},
		},
		"memory without a limit": {func(c *contract.Config) { c.MemoryMB = 0 }, 0, container.Resources{}},
		"cpus":                   {func(c *contract.Config) { c.CPUs = 0.57 }, 0, container.Resources{NanoCPUs: 570_000_000}},
		"pids":                   {func(c *contract.Config) { c.PIDs = 100 }, 0, container.Resources{PidsLimit: pids(100)}},
		"pids without a limit":   {func(c *contract.Config) { c.PIDs = 0 }, 0, container.Resources{PidsLimit: pids(-1)}},
	} {
		cfg := has.wanted(identity{name: "x"})
		tc.change(&cfg)
		wants := newSpec(cfg, facts{})
		wants.host.MemorySwap = tc.swap
		if diff := cmp.Diff(tc.want, liveLimits(has, wants)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A label cannot change, so the limits are read from the container itself.
func TestLimitsAreThoseOfTheContainer(t *testing.T) {
	s := newSpec(contract.Defaults(), facts{user: "pn"})
	pids := int64(-1)
	s.host.NanoCPUs, s.host.Memory, s.host.PidsLimit = 250_000_000, 512<<20, &pids
	found := container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{ID: "abc", Name: "/" + s.id.container(), HostConfig: s.host}, Config: s.config,
	}
	b, err := readBox(found)
	if err != nil || b.record.CPUs != 0.25 || b.record.MemoryMB != 512 || b.record.PIDs != 0 {
		t.Errorf("%+v, %v", b.record, err)
	}
	if b.config.CPUs != 0.25 || b.config.MemoryMB != 512 || b.config.PIDs != 0 {
		t.Errorf("%+v", b.config)
	}
	// A daemon that cannot set limits leaves them out of the container it makes.
	s.host.NanoCPUs, s.host.Memory, s.host.PidsLimit = 0, 0, nil
	d := contract.Defaults()
	if b, err = readBox(found); err != nil || b.record.CPUs != d.CPUs || b.record.MemoryMB != d.MemoryMB || b.record.PIDs != d.PIDs {
		t.Errorf("%+v, %v", b.record, err)
	}
}

func TestCoresSurviveTheAPI(t *testing.T) {
	for n := int64(1); n < 2000; n++ {
		c := float64(n) / 100
		if got := cores(nanoCPUs(c)); math.Abs(got-c) > 1e-9 || nanoCPUs(got) != nanoCPUs(c) {
			t.Fatalf("%v became %v", c, got)
		}
	}
}
