package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/system"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// describe is what the daemon says about itself, asked once: what is looked at changes only when it is set up anew.
func (p *Provider) describe(ctx context.Context) (system.Info, error) {
	p.mu.Lock()
	known := p.about
	p.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	info, err := p.engine.Info(ctx)
	if err != nil {
		return info, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.about = &info
	return info, nil
}

// warn adds to b's warnings a sentence for each setting of the running sandbox that its daemon does not keep, and for what its mounts give
// away.
func (p *Provider) warn(ctx context.Context, b *box) error {
	info, err := p.describe(ctx)
	if err != nil {
		return err
	}
	all := limitWarnings(b.record, info, b.said)
	may, where := quotas(&info)
	w := diskWarning(b.record.DiskMB, may, where, false)
	if w != "" && may { // only the container itself tells
		found, err := p.engine.Inspect(ctx, b.containerID)
		if err != nil && !errors.Is(err, engine.ErrNotFound) { // one that is gone again is for whoever connects to find
			return err
		}
		w = diskWarning(b.record.DiskMB, may, where, found.HostConfig != nil && found.HostConfig.StorageOpt[quotaKey] != "")
	}
	if w != "" {
		all = append(all, w)
	}
	b.warnings = slices.Concat(b.warnings, all, mountWarnings(b.record.Mounts, p.engine.Address()))
	return nil
}

// limitWarnings returns a sentence for each limit of r that the daemon discards, by what it says about itself and by what it said when it
// made the container. Pure.
//
// Docker also says that memory is limited without swap, on any machine whose kernel does not account for swap, as Debian's did for long.
// That is dropped: the limit that was asked for applies, to memory, and a sentence at every start would bury those that matter. Only who
// has asked for a limit on swap hears of it.
func limitWarnings(r record, info system.Info, said []string) []string {
	rootless := info.CgroupDriver == "none"
	var all []string
	limit := func(wanted bool, has bool, words, what string) {
		discarded := false
		for _, s := range said {
			discarded = discarded || strings.Contains(strings.ToLower(s), words) && strings.Contains(s, "discarded")
		}
		if !wanted || has && !rootless && !discarded {
			return
		}
		why := "the kernel of the daemon's machine cannot set it"
		if rootless {
			why = "a daemon without a cgroup driver, such as a rootless one on cgroup version 1, sets no limits"
		}
		all = append(all, fmt.Sprintf("the limit of %s does not apply: %s", what, why))
	}
	limit(r.CPUs > 0, info.CPUCfsQuota, "cpu cfs", fmt.Sprintf("%v CPUs", r.CPUs))
	limit(r.MemoryMB > 0, info.MemoryLimit, "memory limit", fmt.Sprintf("%d MB of memory", r.MemoryMB))
	limit(r.PIDs > 0, info.PidsLimit, "pids limit", fmt.Sprintf("%d processes", r.PIDs))
	for _, s := range said {
		text := strings.ToLower(s)
		switch {
		case strings.Contains(text, "swap limit"):
			if !hasFlag(r.ExtraArgs, "--memory-swap") {
				continue
			}
		case strings.Contains(text, "cpu cfs"), strings.Contains(text, "memory limit"), strings.Contains(text, "pids limit"):
			continue // said above
		}
		all = append(all, "the daemon says: "+strings.TrimSuffix(strings.Join(strings.Fields(s), " "), "."))
	}
	return all
}

// hasFlag reports whether args set a flag.
func hasFlag(args []string, name string) bool {
	for _, a := range args {
		if a == name || strings.HasPrefix(a, name+"=") {
			return true
		}
	}
	return false
}
