package provider

import (
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/environment"
)

// usageOf reads what a daemon measured. Pure.
func usageOf(s container.StatsResponse) environment.Usage {
	u := environment.Usage{CPUNanos: s.CPUStats.CPUUsage.TotalUsage, Memory: s.MemoryStats.Usage, PIDs: s.PidsStats.Current}
	// Files that nobody has used for long: version 1 of cgroups, then version 2.
	for _, name := range []string{"total_inactive_file", "inactive_file"} {
		if files, ok := s.MemoryStats.Stats[name]; ok {
			u.Inactive = files
			break
		}
	}
	for _, n := range s.Networks {
		u.Received, u.Sent = u.Received+n.RxBytes, u.Sent+n.TxBytes
	}
	for _, b := range s.BlkioStats.IoServiceBytesRecursive {
		switch strings.ToLower(b.Op) {
		case "read":
			u.Read += b.Value
		case "write":
			u.Written += b.Value
		}
	}
	return u
}
