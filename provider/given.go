package provider

import (
	"fmt"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// settings copies one setting, by its name in [contract.Config.Given]. What only says whose sandbox it is shapes no container, and is the
// living one's already.
var settings = map[string]func(to *contract.Config, from contract.Config){
	"name": isIdentity, "profile": isIdentity, "task": isIdentity,
	"image":       func(to *contract.Config, from contract.Config) { to.Image = from.Image },
	"user":        func(to *contract.Config, from contract.Config) { to.User = from.User },
	"cpus":        func(to *contract.Config, from contract.Config) { to.CPUs = from.CPUs },
	"memory_mb":   func(to *contract.Config, from contract.Config) { to.MemoryMB = from.MemoryMB },
	"pids":        func(to *contract.Config, from contract.Config) { to.PIDs = from.PIDs },
	"disk_mb":     func(to *contract.Config, from contract.Config) { to.DiskMB = from.DiskMB },
	"shm_bytes":   func(to *contract.Config, from contract.Config) { to.ShmBytes = from.ShmBytes },
	"security":    func(to *contract.Config, from contract.Config) { to.Security = from.Security },
	"network":     func(to *contract.Config, from contract.Config) { to.Network = from.Network },
	"env":         func(to *contract.Config, from contract.Config) { to.Env = from.Env },
	"forward_env": func(to *contract.Config, from contract.Config) { to.ForwardEnv = from.ForwardEnv },
	"mounts":      func(to *contract.Config, from contract.Config) { to.Mounts = from.Mounts },
	"extra_args":  func(to *contract.Config, from contract.Config) { to.ExtraArgs = from.ExtraArgs },
	"persistent":  func(to *contract.Config, from contract.Config) { to.Persistent = from.Persistent },
}

func isIdentity(*contract.Config, contract.Config) {}

// overlay is what is wanted of a sandbox that lives with the settings of has: those that wants gives, over its own.
func overlay(has, wants contract.Config) contract.Config {
	if wants.Given == nil {
		return wants
	}
	merged := wants
	for _, set := range settings {
		set(&merged, has)
	}
	for _, name := range wants.Given {
		settings[name](&merged, wants)
	}
	if merged.Hardened() && !has.Hardened() {
		return offline(merged)
	}
	return merged
}

// givenFaults lists what Given names and is no setting.
func givenFaults(given []string) contract.Faults {
	var faults contract.Faults
	for _, name := range given {
		if settings[name] == nil {
			faults = append(faults, contract.Fault{Key: "given", Problem: fmt.Sprintf("%.40q is no setting", name)})
		}
	}
	return faults
}
