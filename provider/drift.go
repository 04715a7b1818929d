package provider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// drift is how a living sandbox differs from what is wanted now: a phrase per setting. Values of environment variables are not shown.
type drift struct {
	live  []string // can be changed while it lives
	fixed []string // need it made anew
}

// compare tells what a sandbox has, by its record, from what is wanted.
func compare(has, wants record) drift {
	var d drift
	differ := func(list *[]string, name, a, b string) {
		if a != b {
			*list = append(*list, fmt.Sprintf("%s is %s, wanted %s", name, a, b))
		}
	}
	fixed := func(name, a, b string) { differ(&d.fixed, name, cmp.Or(a, "none"), cmp.Or(b, "none")) }
	// The API takes zero for "as it is", so a limit of cores or memory cannot be taken away from a container.
	limit := func(name, a, b string, lifted bool) {
		if lifted {
			differ(&d.fixed, name, a, b)
		} else {
			differ(&d.live, name, a, b)
		}
	}
	fixed("image", has.Image, wants.Image)
	fixed("user", has.User, wants.User)
	limit("cpus", amount(cores(nanoCPUs(has.CPUs)), ""), amount(cores(nanoCPUs(wants.CPUs)), ""), wants.CPUs == 0)
	limit("memory", amount(has.MemoryMB, " MB"), amount(wants.MemoryMB, " MB"), wants.MemoryMB == 0)
	limit("pids", amount(has.PIDs, ""), amount(wants.PIDs, ""), false)
	fixed("disk", amount(has.DiskMB, " MB"), amount(wants.DiskMB, " MB"))
	fixed("shm-size", shmSize(has.ShmBytes), shmSize(wants.ShmBytes))
	fixed("security", has.security(), wants.security())
	fixed("network", has.Network, wants.Network)
	fixed("persistent", fmt.Sprint(has.Persistent), fmt.Sprint(wants.Persistent))
	if !maps.Equal(has.Env, wants.Env) {
		d.fixed = append(d.fixed, "env differs in "+strings.Join(changedKeys(has.Env, wants.Env), ", "))
	}
	fixed(forwardEnv, strings.Join(has.ForwardEnv, " "), strings.Join(wants.ForwardEnv, " "))
	fixed("volumes", strings.Join(texts(has.Mounts), " "), strings.Join(texts(wants.Mounts), " "))
	fixed("extra-args", strings.Join(has.ExtraArgs, " "), strings.Join(wants.ExtraArgs, " "))
	return d
}

// amount is a limit for people.
func amount[N int64 | float64](n N, unit string) string {
	if n == 0 {
		return "no limit"
	}
	return fmt.Sprint(n) + unit
}

func shmSize(n int64) string {
	if n == 0 {
		return "the daemon's default"
	}
	return fmt.Sprintf("%d bytes", n)
}

// nanoCPUs and cores turn cores into the unit of the API and back, without losing a nanosecond to rounding.
func nanoCPUs(cores float64) int64 { return int64(math.Round(cores * nano)) }

func cores(nanoCPUs int64) float64 { return float64(nanoCPUs) / nano }

const nano = 1e9

// forwardEnv is how the names of forwarded variables are called.
const forwardEnv = "forward-env"

// liveLimits are the limits to change: zero is "as it is" to the API. The limit of memory and swap goes along as Docker sets it when it
// makes a container, or memory could not be raised above it.
func liveLimits(has record, wants spec) container.Resources {
	var r container.Resources
	if c := wants.record.CPUs; nanoCPUs(c) != nanoCPUs(has.CPUs) {
		r.NanoCPUs = nanoCPUs(c)
	}
	if mb := wants.record.MemoryMB; mb != has.MemoryMB && mb > 0 {
		r.Memory = mb << mib
		if r.MemorySwap = wants.host.MemorySwap; r.MemorySwap == 0 {
			r.MemorySwap = 2 * r.Memory
		}
	}
	if n := wants.record.PIDs; n != has.PIDs {
		if n == 0 {
			n = -1
		}
		r.PidsLimit = &n
	}
	return r
}

const mib = 20

// setLimits replaces the limits in r, which are those of the container's first day, by those it was given since. A limit of cores or memory
// that the container does not have at all was discarded by the daemon when it was made, and is wanted still: no change since can have taken
// it away. That of processes can.
func (r *record) setLimits(host *container.HostConfig) {
	if host == nil {
		return
	}
	if host.NanoCPUs > 0 {
		r.CPUs = cores(host.NanoCPUs)
	}
	if host.Memory > 0 {
		r.MemoryMB = host.Memory >> mib
	}
	if n := host.PidsLimit; n != nil {
		r.PIDs = max(0, *n)
	}
}

func texts(mounts []contract.Mount) []string {
	all := make([]string, len(mounts))
	for i, m := range mounts {
		all[i] = m.String()
	}
	return all
}

func changedKeys(a, b map[string]string) []string {
	var keys []string
	for k, v := range a {
		if w, ok := b[k]; !ok || w != v {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// readRecord reads labelConfig.
func readRecord(labels map[string]string) (record, error) {
	var r record
	err := json.Unmarshal([]byte(labels[labelConfig]), &r)
	return r, err
}
