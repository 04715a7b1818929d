package provider

import (
	"fmt"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// quotaKey is the option of a container that limits its writable layer.
const quotaKey = "size"

// quota limits a container's writable layer.
func quota(megabytes int64) map[string]string {
	return map[string]string{quotaKey: fmt.Sprintf("%dM", megabytes)}
}

// diskWarning is the sentence about a limit that is not enforced: may and where are those of quotas, has whether the container was made with
// the limit. It is empty when the limit is enforced, and when nobody chose it.
func diskWarning(megabytes int64, may bool, where string, has bool) string {
	why := "has no quotas"
	switch {
	case megabytes == 0, megabytes == contract.DefaultDiskMB, has:
		return ""
	case may:
		why = "refused one when the sandbox was made"
	}
	return fmt.Sprintf("the disk limit of %d MB is not enforced: the storage driver %s %s; that takes overlay2 on xfs mounted with pquota, or btrfs or zfs", megabytes, where, why)
}
