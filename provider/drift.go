package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// drift lists how a living sandbox, described by the record in its label, differs from what is wanted now: one phrase per setting.
// Values of environment variables are not shown.
func drift(has, wants record) []string {
	var diffs []string
	add := func(name string, a, b any) {
		if a != b {
			diffs = append(diffs, fmt.Sprintf("%s is %v, wanted %v", name, a, b))
		}
	}
	add("image", has.Image, wants.Image)
	add("user", has.User, wants.User)
	add("cpus", has.CPUs, wants.CPUs)
	add("memory (MB)", has.MemoryMB, wants.MemoryMB)
	add("pids", has.PIDs, wants.PIDs)
	add("shm-size (bytes)", has.ShmBytes, wants.ShmBytes)
	add("network", has.Network, wants.Network)
	add("persistent", has.Persistent, wants.Persistent)
	if !maps.Equal(has.Env, wants.Env) {
		diffs = append(diffs, "env differs in "+strings.Join(changedKeys(has.Env, wants.Env), ", "))
	}
	return diffs
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
