package provider

import (
	"testing"

	"github.com/docker/docker/api/types/system"
	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestDiscardedLimitsAreSaidOnce(t *testing.T) {
	const (
		cfs    = "Your kernel does not support CPU CFS scheduler. CPU period/quota discarded."
		memory = "Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded."
		swap   = "Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap."
		pids   = "Your kernel does not support pids limit capabilities or the cgroup is not mounted. PIDs limit discarded."
		kernel = "the kernel of the daemon's machine cannot set it"
		none   = "a daemon without a cgroup driver, such as a rootless one on cgroup version 1, sets no limits"
	)
	all := system.Info{MemoryLimit: true, CPUCfsQuota: true, PidsLimit: true, CgroupDriver: "cgroupfs"}
	limited := record{CPUs: 1.5, MemoryMB: 256, PIDs: 64}
	for name, tc := range map[string]struct {
		record record
		info   system.Info
		said   []string
		want   []string
	}{
		"all are kept":             {limited, all, nil, nil},
		"swap is nobody's concern": {limited, all, []string{swap}, nil},
		"but of who asks for it": {
			record{MemoryMB: 256, ExtraArgs: []string{"--memory-swap", "1g"}}, all, []string{swap},
			[]string{"the daemon says: Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap"},
		},
		"no memory":                  {limited, system.Info{CPUCfsQuota: true, PidsLimit: true}, []string{memory}, []string{"the limit of 256 MB of memory does not apply: " + kernel}},
		"no processors":              {limited, system.Info{MemoryLimit: true, PidsLimit: true}, nil, []string{"the limit of 1.5 CPUs does not apply: " + kernel}},
		"only the creation tells":    {limited, all, []string{pids, cfs}, []string{"the limit of 1.5 CPUs does not apply: " + kernel, "the limit of 64 processes does not apply: " + kernel}},
		"rootless, cgroup version 1": {record{CPUs: 1, PIDs: 64}, system.Info{CgroupDriver: "none", MemoryLimit: true, CPUCfsQuota: true}, nil, []string{"the limit of 1 CPUs does not apply: " + none, "the limit of 64 processes does not apply: " + none}},
		"nothing was asked for":      {record{}, system.Info{}, []string{memory, pids}, nil},
		"something else":             {limited, all, []string{"Something \n new."}, []string{"the daemon says: Something new"}},
	} {
		if diff := cmp.Diff(tc.want, limitWarnings(tc.record, tc.info, tc.said)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestDiskWarning(t *testing.T) {
	const needs = "; that takes overlay2 on xfs mounted with pquota, or btrfs or zfs"
	for _, tc := range []struct {
		megabytes int64
		may, has  bool
		want      string
	}{
		{1000, false, false, "the disk limit of 1000 MB is not enforced: the storage driver overlay2 on extfs has no quotas" + needs},
		{1000, true, false, "the disk limit of 1000 MB is not enforced: the storage driver overlay2 on extfs refused one when the sandbox was made" + needs},
		{1000, true, true, ""},
		{0, false, false, ""},
		{contract.DefaultDiskMB, true, false, ""},
	} {
		if got := diskWarning(tc.megabytes, tc.may, "overlay2 on extfs", tc.has); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}
