package provider_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// cgroup is what the scripts of a doctor print in a container.
type cgroup struct{ memory, cpu, pids, userns string }

// asked is that of a container which has what it was given, on a kernel with user namespaces.
var asked = cgroup{"memory 67108864", "cpu 50000 100000", "pids 64", "userns-max 96365"}

func (c cgroup) String() string {
	return strings.Join(slices.DeleteFunc([]string{c.memory, c.cpu, c.pids, c.userns, "end\n"}, func(s string) bool { return s == "" }), "\n")
}

// well is an engine on which a doctor finds nothing but the missing quota.
func well(t *testing.T) *enginetest.Engine {
	t.Helper()
	e := newEngine(t)
	e.AddImage(image.DefaultTag)
	e.Programs(func([]string) string { return asked.String() })
	return e
}

// describe changes what a daemon says about itself.
func describe(t *testing.T, e *enginetest.Engine, change func(*system.Info)) {
	t.Helper()
	info, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change(&info)
	e.Describe(info)
}

var allRows = []string{
	"daemon", "API version", "engine", "disk limit", "seccomp", "image", "agent", "container", "memory limit", "CPU limit", "process limit",
	"user namespaces", "sandboxes",
}

func without(rows ...string) []string {
	return slices.DeleteFunc(slices.Clone(allRows), func(r string) bool { return slices.Contains(rows, r) })
}

// Each row as it is on machines of all kinds. What a case does not name is as on a machine where all is well.
func TestDoctorRows(t *testing.T) {
	usual := map[string]string{}
	for _, r := range allRows {
		usual[r] = "ok"
	}
	usual["disk limit"] = "warn not enforced"
	type change = func(*system.Info)
	for name, tc := range map[string]struct {
		describe change
		engine   func(*enginetest.Engine)
		inside   *cgroup
		rows     []string          // nil: all
		want     map[string]string // row: status, and words of its detail and remedy separated by "|"
	}{
		"all is well": {want: map[string]string{
			"daemon": "ok version 20.10 answers at memory://", "API version": "ok 1.41", "engine": "ok Docker 20.10", "seccomp": "ok dockerbox's profile",
			"image": "ok " + image.DefaultTag, "memory limit": "ok 64 MB", "CPU limit": "ok 0.5 cores", "process limit": "ok 64 processes",
			"user namespaces": "ok 96365", "sandboxes": "ok 0, of which 0 running", "disk limit": "warn not enforced|overlay2 on extfs|pquota",
		}},
		"no daemon": {
			engine: func(e *enginetest.Engine) { e.Down(true) }, rows: []string{"daemon"}, want: map[string]string{"daemon": "fail does not answer"},
		},
		"no permission": {
			engine: func(e *enginetest.Engine) {
				e.Fail(enginetest.OpPing, &contract.BackendError{Reason: "no permission to talk to it", Hint: "join the group", Err: engine.ErrUnreachable})
			},
			rows: []string{"daemon"}, want: map[string]string{"daemon": "fail no permission|join the group"},
		},
		"an old daemon": {
			engine: func(e *enginetest.Engine) { e.DescribeVersion(types.Version{APIVersion: "1.40"}) },
			rows:   []string{"daemon", "API version"}, want: map[string]string{"API version": "fail 1.40|older than 1.41"},
		},
		"a daemon that hides what it can do": {
			engine: func(e *enginetest.Engine) { e.Fail(enginetest.OpInfo, errBad); e.Fail(enginetest.OpVersion, errBad) },
			rows:   without("disk limit", "seccomp", "agent"),
			want:   map[string]string{"daemon": "warn bad day|socket proxy", "engine": "warn bad day|socket proxy", "memory limit": "ok 64 MB"},
		},
		"Windows containers": {describe: func(i *system.Info) { i.OSType = "windows" }, want: map[string]string{"engine": "fail containers of windows|Linux containers"}},
		"Podman": {
			engine: func(e *enginetest.Engine) {
				e.DescribeVersion(types.Version{Version: "4.3.1", APIVersion: "1.41", Components: []types.ComponentVersion{{Name: "Podman Engine", Version: "4.3.1"}, {Name: "Conmon"}}})
			},
			want: map[string]string{"engine": "ok Podman 4.3.1|--recreate"},
		},
		"an unknown engine": {
			engine: func(e *enginetest.Engine) {
				v := types.Version{Version: "1", APIVersion: "1.41"}
				v.Platform.Name = "Whale 1"
				e.DescribeVersion(v)
			},
			want: map[string]string{"engine": `warn "Whale 1"|conformance`},
		},
		"rootless, cgroup version 1": {
			describe: func(i *system.Info) {
				i.SecurityOptions = []string{"name=seccomp,profile=builtin", "name=rootless"}
				i.CgroupDriver, i.MemoryLimit, i.CPUCfsQuota, i.PidsLimit = "none", false, false, false
			},
			inside: &cgroup{"memory 9223372036854771712", "quota -1\nperiod 100000", "pids max", "userns-max 1"},
			want: map[string]string{
				"engine": "ok rootless", "seccomp": "ok dockerbox's profile", "memory limit": "warn not enforced|has no limit|rootless|version 2",
				"CPU limit": "warn not enforced|has no limit|version 2", "process limit": "warn not enforced|has no limit",
			},
		},
		"userns-remap": {
			describe: func(i *system.Info) { i.SecurityOptions = []string{"name=seccomp,profile=default", "name=userns"} },
			want:     map[string]string{"engine": "ok userns-remap"},
		},
		"no memory controller": {
			describe: func(i *system.Info) { i.MemoryLimit = false }, inside: &cgroup{"", asked.cpu, asked.pids, asked.userns},
			want: map[string]string{"memory limit": "warn not enforced|no such limit|cgroup_enable=memory"},
		},
		"another limit than asked for": {
			inside: &cgroup{"memory 33554432", "cpu 100000 100000", "pids 63", asked.userns},
			want:   map[string]string{"memory limit": "warn has 32", "CPU limit": "warn has 1", "process limit": "warn has 63"},
		},
		"version 1 of cgroups": {inside: &cgroup{asked.memory, "quota 50000\nperiod 100000", asked.pids, asked.userns}},
		"no seccomp":           {describe: func(i *system.Info) { i.SecurityOptions = nil }, want: map[string]string{"seccomp": "warn has no seccomp|SECCOMP_FILTER"}},
		"seccomp unconfined": {
			describe: func(i *system.Info) { i.SecurityOptions = []string{"garbage,", "name=seccomp,profile=unconfined"} },
			want:     map[string]string{"seccomp": "ok stands in for the daemon's unconfined"},
		},
		"seccomp of an old daemon": {describe: func(i *system.Info) { i.SecurityOptions = []string{"seccomp"} }, want: map[string]string{"seccomp": "ok dockerbox's profile"}},
		"no user namespaces":       {inside: &cgroup{asked.memory, asked.cpu, asked.pids, "userns-max 0"}, want: map[string]string{"user namespaces": "warn max_user_namespaces is 0|sysctl"}},
		"user namespaces for root alone": {
			inside: &cgroup{asked.memory, asked.cpu, asked.pids, "userns-max 9\nuserns-unprivileged 0"}, want: map[string]string{"user namespaces": "warn only root|sysctl"},
		},
		"user namespaces kept by AppArmor": {
			inside: &cgroup{asked.memory, asked.cpu, asked.pids, "userns-max 9\nuserns-unprivileged 1\nuserns-apparmor 1"},
			want:   map[string]string{"user namespaces": "warn AppArmor|sysctl"},
		},
		"a kernel without user namespaces": {inside: &cgroup{asked.memory, asked.cpu, asked.pids, ""}, want: map[string]string{"user namespaces": "warn does not say|CONFIG_USER_NS"}},
		"xfs with pquota": {
			describe: func(i *system.Info) { i.DriverStatus = [][2]string{{"Backing Filesystem", "xfs"}} }, want: map[string]string{"disk limit": "ok overlay2 on xfs takes it"},
		},
		"xfs without pquota": {
			describe: func(i *system.Info) { i.DriverStatus = [][2]string{{"Backing Filesystem", "xfs"}} },
			engine:   func(e *enginetest.Engine) { e.Fail(enginetest.OpCreate, errBad) },
			want:     map[string]string{"disk limit": "warn not enforced|refuses|pquota"},
		},
		"btrfs":                   {describe: func(i *system.Info) { i.Driver, i.DriverStatus = "btrfs", nil }, want: map[string]string{"disk limit": "ok btrfs takes it"}},
		"the store of containerd": {describe: func(i *system.Info) { i.Driver, i.DriverStatus = "overlayfs", nil }, want: map[string]string{"disk limit": "warn overlayfs has no quotas"}},
		"no image": {
			engine: func(e *enginetest.Engine) { e.RemoveImage(image.DefaultTag) }, rows: without("container", "user namespaces"),
			want: map[string]string{"image": "fail not on this daemon|make image", "memory limit": "ok not tried", "CPU limit": "ok not tried", "process limit": "ok not tried"},
		},
		"no image and no limits": {
			engine: func(e *enginetest.Engine) { e.RemoveImage(image.DefaultTag) }, rows: without("container", "user namespaces"),
			describe: func(i *system.Info) { i.PidsLimit = false },
			want:     map[string]string{"image": "fail", "memory limit": "ok not tried", "CPU limit": "ok not tried", "process limit": "warn not enforced|by what the daemon says"},
		},
		"no image on xfs": {
			engine: func(e *enginetest.Engine) { e.RemoveImage(image.DefaultTag) }, rows: without("container", "user namespaces"),
			describe: func(i *system.Info) { i.DriverStatus = [][2]string{{"Backing Filesystem", "xfs"}} },
			want:     map[string]string{"image": "fail", "disk limit": "ok not tried"},
		},
		"an image that cannot be asked for": {
			engine: func(e *enginetest.Engine) { e.Fail(enginetest.OpImage, errBad) }, rows: without("container", "user namespaces"),
			want: map[string]string{"image": "fail bad day|better one"},
		},
		"a container that does not start": {
			engine: func(e *enginetest.Engine) { e.Fail(enginetest.OpStart, errBad) },
			rows:   without("memory limit", "CPU limit", "process limit", "user namespaces"), want: map[string]string{"container": "fail bad day|better one"},
		},
		"an image whose bash does not work": {
			engine: func(e *enginetest.Engine) { e.Programs(func([]string) string { return "exec failed: no such file" }) },
			rows:   without("memory limit", "CPU limit", "process limit", "user namespaces"), want: map[string]string{"container": "fail no such file|make image"},
		},
		"a machine without an agent": {describe: func(i *system.Info) { i.Architecture = "s390x" }, want: map[string]string{"agent": "fail s390x|amd64 or arm64"}},
		"arm64":                      {describe: func(i *system.Info) { i.Architecture = "aarch64" }, want: map[string]string{"agent": "ok arm64"}},
		"no list of sandboxes":       {engine: func(e *enginetest.Engine) { e.Fail(enginetest.OpList, nil); e.Fail(enginetest.OpList, errBad) }, want: map[string]string{"sandboxes": "fail bad day|better one"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := well(t)
			if tc.describe != nil {
				describe(t, e, tc.describe)
			}
			if tc.inside != nil {
				e.Programs(func([]string) string { return tc.inside.String() })
			}
			if tc.engine != nil {
				tc.engine(e)
			}
			var names []string
			for _, c := range newProvider(t, e).Doctor(t.Context()) {
				names = append(names, c.Name)
				want, named := tc.want[c.Name]
				if !named {
					want = usual[c.Name]
				}
				judge(t, c, want)
			}
			rows := tc.rows
			if rows == nil {
				rows = allRows
			}
			if !slices.Equal(names, rows) {
				t.Errorf("rows %q, want %q", names, rows)
			}
			nothingIsLeft(t, e)
		})
	}
}

// judge holds one row to "STATUS word|word".
func judge(t *testing.T, c contract.Check, want string) {
	t.Helper()
	status, words, _ := strings.Cut(want, " ")
	if string(c.Status) != status || c.Detail == "" || (c.Remedy == "") != (c.Status == contract.CheckOK) {
		t.Errorf("%+v, want status %s, and a remedy unless it is ok", c, status)
	}
	for word := range strings.SplitSeq(words, "|") {
		if !strings.Contains(c.Detail+"\n"+c.Remedy, word) {
			t.Errorf("%s: %q, %q says nothing of %q", c.Name, c.Detail, c.Remedy, word)
		}
	}
}

// find returns the row of that name.
func find(t *testing.T, checks []contract.Check, name string) contract.Check {
	t.Helper()
	i := slices.IndexFunc(checks, func(c contract.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no row %q in %+v", name, checks)
	}
	return checks[i]
}

func TestDoctorCountsSandboxes(t *testing.T) {
	e := well(t)
	p, next := newProvider(t, e), fresh(e)
	open(t, p, next())
	stopped := open(t, p, next())
	if err := e.Stop(stopped.Info().ContainerID); err != nil {
		t.Fatal(err)
	}
	judge(t, find(t, p.Doctor(t.Context()), "sandboxes"), "ok 2, of which 1 running")
}

// A container that another version made, and one whose label nobody can read, are named with what to do.
func TestDoctorNamesSandboxesOfAnotherVersion(t *testing.T) {
	e := well(t)
	p := newProvider(t, e)
	add := func(name, record string) {
		labels := map[string]string{"dev.dockerbox.name": name, "dev.dockerbox.profile": "work", "dev.dockerbox.config": record}
		if err := e.AddForeign(t.Context(), name, image.DefaultTag, labels); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 7 {
		add(fmt.Sprintf("old-%d", n), `{"agent":"dockerbox-agent-000000000000"}`)
	}
	judge(t, find(t, p.Doctor(t.Context()), "sandboxes"), "warn 7, of which 0 running|another version|work/old-4 and 2 more|rm -f --keep-home work/old-0;")
	add("broken", "{")
	judge(t, find(t, p.Doctor(t.Context()), "sandboxes"), "warn 8,|cannot be read: work/broken|dev.dockerbox.config|rm -f")
}

// Whenever its caller gives up, a doctor leaves no container behind and says what it did not get.
func TestDoctorLeavesNothingWhenGivenUp(t *testing.T) {
	for _, op := range []enginetest.Op{enginetest.OpPing, enginetest.OpInfo, enginetest.OpImage, enginetest.OpCreate, enginetest.OpStart, enginetest.OpExec} {
		t.Run(string(op), func(t *testing.T) {
			e := well(t)
			ctx, cancel := context.WithCancel(t.Context())
			e.Before(op, cancel)
			checks := newProvider(t, e).Doctor(ctx)
			if !slices.ContainsFunc(checks, func(c contract.Check) bool { return c.Status == contract.CheckFail }) {
				t.Errorf("all rows are well: %+v", checks)
			}
			nothingIsLeft(t, e)
		})
	}
}

// What a doctor that was killed left of its container goes with a later one, which leaves alone what may be in use.
func TestDoctorSweepsHelpers(t *testing.T) {
	e := well(t)
	for _, name := range []string{"left", "works"} {
		if err := e.AddForeign(t.Context(), name, image.DefaultTag, map[string]string{"dev.dockerbox.kind": "helper"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.AddForeign(t.Context(), "foreign", image.DefaultTag, nil); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), "works"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		passed time.Duration
		left   []string
	}{
		{9 * time.Minute, []string{"foreign", "left", "works"}},
		{11 * time.Minute, []string{"foreign", "works"}},
	} {
		now := time.Now().Add(tc.passed)
		p, err := provider.New(provider.Endpoint{}, provider.WithEngine(e), provider.WithClock(func() time.Time { return now }))
		if err != nil {
			t.Fatal(err)
		}
		judge(t, find(t, p.Doctor(t.Context()), "container"), "ok started")
		if left := e.Containers(); !slices.Equal(left, tc.left) {
			t.Errorf("after %s %q remain, want %q", tc.passed, left, tc.left)
		}
	}
}

// A daemon that answers nothing costs a doctor no more than it may take, and there is one row.
func TestDoctorOfASilentDaemonEnds(t *testing.T) {
	e := well(t)
	const patience = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// Longer than that: contexts made of ctx, such as the one the daemon is asked with, end a moment after it.
	e.Before(enginetest.OpPing, func() { time.Sleep(3 * patience) })
	checks := newProvider(t, e).Doctor(ctx)
	if len(checks) != 1 {
		t.Errorf("%+v, want the daemon's row alone", checks)
	}
	judge(t, checks[0], "fail in time")
}

// A probe container that cannot be removed at once is the daemon's to remove; the doctor still answers.
func TestDoctorAnswersAlthoughItsContainerStays(t *testing.T) {
	e := well(t)
	e.Fail(enginetest.OpRemove, errors.Join(engine.ErrConflict))
	judge(t, find(t, newProvider(t, e).Doctor(t.Context()), "container"), "ok started")
	if left := e.Containers(); len(left) != 1 || !strings.HasPrefix(left[0], "dockerbox-probe-") {
		t.Errorf("%q remain, want the one probe container", left)
	}
}

// A status display has room for one sentence: it is about the first thing that is missing.
func TestProbe(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*enginetest.Engine)
		status contract.HealthStatus
		words  string // of detail and hint, separated by "|"
	}{
		"ready":         {func(*enginetest.Engine) {}, contract.Ready, "API 1.41 at memory://"},
		"no daemon":     {func(e *enginetest.Engine) { e.Down(true) }, contract.Unavailable, "does not answer"},
		"no permission": {func(e *enginetest.Engine) { e.Fail(enginetest.OpPing, errBad) }, contract.Unavailable, "bad day|better one"},
		"an old daemon": {func(e *enginetest.Engine) { e.DescribeVersion(types.Version{APIVersion: "1.40"}) }, contract.Unavailable, "older than 1.41"},
		"no image":      {func(e *enginetest.Engine) { e.RemoveImage(image.DefaultTag) }, contract.NeedsSetup, image.DefaultTag + " is not built|make image"},
		"a daemon that goes meanwhile": {
			func(e *enginetest.Engine) { e.Fail(enginetest.OpImage, errBad) }, contract.Unavailable, "bad day|better one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := well(t)
			tc.change(e)
			h := newProvider(t, e).Probe(t.Context())
			if h.Status != tc.status || (h.Hint == "") != (tc.status == contract.Ready) {
				t.Errorf("%+v, want %s, and a hint unless it is ready", h, tc.status)
			}
			for word := range strings.SplitSeq(tc.words, "|") {
				if !strings.Contains(h.Detail+"\n"+h.Hint, word) {
					t.Errorf("%+v says nothing of %q", h, word)
				}
			}
		})
	}
}
