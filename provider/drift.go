package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// drift lists how a living sandbox, described by the record in its label, differs from what is wanted now: one phrase per setting.
// Values of environment variables are not shown.
func drift(has, wants record) []string {
	var diffs []string
	add := func(name string, a, b any) {
		if a == "" {
			a = "none"
		}
		if b == "" {
			b = "none"
		}
		if a != b {
			diffs = append(diffs, fmt.Sprintf("%s is %v, wanted %v", name, a, b))
		}
	}
	add("image", has.Image, wants.Image)
	add("user", has.User, wants.User)
	add("cpus", has.CPUs, wants.CPUs)
	add("memory (MB)", has.MemoryMB, wants.MemoryMB)
	add("pids", has.PIDs, wants.PIDs)
	add("disk (MB)", has.DiskMB, wants.DiskMB)
	add("shm-size (bytes)", has.ShmBytes, wants.ShmBytes)
	add("network", has.Network, wants.Network)
	add("persistent", has.Persistent, wants.Persistent)
	if !maps.Equal(has.Env, wants.Env) {
		diffs = append(diffs, "env differs in "+strings.Join(changedKeys(has.Env, wants.Env), ", "))
	}
	addList := func(name string, a, b []string) { add(name, strings.Join(a, " "), strings.Join(b, " ")) }
	addList("forward-env", has.ForwardEnv, wants.ForwardEnv)
	addList("volumes", texts(has.Mounts), texts(wants.Mounts))
	addList("extra-args", has.ExtraArgs, wants.ExtraArgs)
	return diffs
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
