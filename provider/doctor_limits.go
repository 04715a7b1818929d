package provider

import (
	"fmt"

	"github.com/docker/docker/api/types/system"
)

// quotas reports whether the daemon may have disk quotas, by its storage driver, and what it keeps containers on. Of a driver that may
// have them only trying tells: xfs, for one, must have been mounted with pquota.
func quotas(info *system.Info) (may bool, where string) {
	backing := ""
	for _, status := range info.DriverStatus {
		if status[0] == "Backing Filesystem" {
			backing = status[1]
		}
	}
	where = info.Driver
	if backing != "" && backing != "<unknown>" {
		where += " on " + backing
	}
	switch info.Driver {
	case "overlay2":
		return backing == "xfs", where
	case "btrfs", "zfs", "vfs", "devicemapper":
		return true, where
	default: // those of containerd among them
		return false, where
	}
}

func diskRow(f findings) verdict {
	const remedy = "a quota needs the storage driver overlay2 on xfs mounted with pquota, or btrfs or zfs; until then a sandbox can fill the daemon's disk"
	may, where := quotas(f.info)
	switch {
	case !may:
		return warn("the disk limit is not enforced: the storage driver "+where+" has no quotas", remedy)
	case f.probe == nil:
		return ok("the storage driver " + where + " may have quotas; without the image that was not tried")
	case !f.probe.quota:
		return warn("the disk limit is not enforced: the storage driver "+where+" refuses one here", remedy)
	default:
		return ok("the storage driver " + where + " takes it")
	}
}

func limitsKnown(f findings) bool { return f.probe != nil || f.info != nil && f.probeErr == nil }

func memoryRow(f findings) verdict {
	return f.limit(func(i *system.Info) bool { return i.MemoryLimit }, func(l limits) float64 { return float64(l.memory) / (1 << 20) }, probeMemoryMB, "MB")
}

func cpuRow(f findings) verdict {
	return f.limit(func(i *system.Info) bool { return i.CPUCfsQuota }, func(l limits) float64 { return l.cpus }, probeCPUs, "cores")
}

func processRow(f findings) verdict {
	return f.limit(func(i *system.Info) bool { return i.PidsLimit }, func(l limits) float64 { return float64(l.pids) }, probePIDs, "processes")
}

// limit judges one limit: by what the probe container really has, else by what the daemon says of itself.
func (f findings) limit(claimed func(*system.Info) bool, applied func(limits) float64, asked float64, unit string) verdict {
	none := f.info != nil && f.info.CgroupDriver == "none"
	claims := f.info == nil || claimed(f.info) && !none
	if f.probe == nil {
		if claims {
			return ok("the daemon says that it sets it; without the image that was not tried")
		}
		return notEnforced("by what the daemon says of itself", none, f.info)
	}
	switch got := applied(f.probe.limits); {
	case got == asked:
		return ok(fmt.Sprintf("a container that was given %v %s has them", asked, unit))
	case got == 0:
		return notEnforced(fmt.Sprintf("a container that was given %v %s has no limit", asked, unit), none, f.info)
	case got > 0:
		return notEnforced(fmt.Sprintf("a container that was given %v %s has %v", asked, unit, got), none, f.info)
	default:
		return notEnforced(fmt.Sprintf("a container that was given %v %s sees no such limit in its cgroup", asked, unit), none, f.info)
	}
}

// notEnforced says what is wrong and what a daemon needs to set limits.
func notEnforced(why string, none bool, info *system.Info) verdict {
	remedy := "boot the daemon's kernel with this controller (cgroup_enable=memory on Debian and Raspberry Pi OS), and see docker info for its own warnings"
	if none || info != nil && hasSecurity(info, "rootless") {
		why += ": the daemon is rootless, and its cgroup driver is " + info.CgroupDriver
		remedy = "a rootless daemon needs cgroup version 2 and systemd to set limits: docs.docker.com/engine/security/rootless says how"
	}
	return warn("it is not enforced: "+why, remedy)
}
