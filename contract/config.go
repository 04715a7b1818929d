package contract

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Config is what shapes one sandbox. [Defaults] fills it, [Config.Validate] lists everything wrong with it.
type Config struct {
	// Name addresses the sandbox; see [ValidName]. Profile and Task are what Hermes calls its profile and task: they are part of
	// the identity, so profiles never meet. Both empty on the command line.
	Name    string `json:"name"`
	Profile string `json:"profile,omitempty"`
	Task    string `json:"task,omitempty"`
	// Image is the reference to start from; empty means the provider's default image.
	Image string `json:"image,omitempty"`
	// User is the account commands run as: a name or number with an optional ":group". Empty means the image's own user.
	User string `json:"user,omitempty"`
	// CPUs is in cores, 0 = no limit. MemoryMB is in MiB, 0 = no limit. PIDs is a count, 0 = no limit. A living sandbox takes changes of
	// these three on without being made anew, except from a limit to none.
	CPUs     float64 `json:"cpus"`
	MemoryMB int64   `json:"memory_mb"`
	PIDs     int64   `json:"pids"`
	// DiskMB limits what the container writes outside its home and mounts, in MiB, 0 = no limit. Few storage drivers have quotas; where
	// there are none [Info.Warnings] says so, unless the value is the default that nobody chose.
	DiskMB int64 `json:"disk_mb"`
	// ShmBytes is the size of /dev/shm in bytes, 0 = the engine's default.
	ShmBytes int64 `json:"shm_bytes"`
	// Network is "bridge" or "none".
	Network string `json:"network"`
	// Security is "standard" or "hardened", "" the former. A hardened sandbox has no capabilities, gains none, cannot write outside its
	// home, its mounts and the directories in memory, and has no network unless Given names "network".
	Security string `json:"security"`
	// Env is configuration, visible in docker inspect; secrets go in [Request.Env].
	Env map[string]string `json:"env,omitempty"`
	// ForwardEnv names variables whose values the command line takes from its own environment for each command, as [Request.Env].
	ForwardEnv []string `json:"forward_env,omitempty"`
	// Mounts are directories and files of the daemon's host, and named volumes. No two have one target.
	Mounts []Mount `json:"mounts,omitempty"`
	// ExtraArgs are flags of docker run, "--ulimit=nofile=4096" or "--ulimit", "nofile=4096". The provider lists those it accepts and
	// refuses all others.
	ExtraArgs []string `json:"extra_args,omitempty"`
	// Persistent keeps the home in a named volume and the container running after Cleanup.
	Persistent bool `json:"persistent"`
	// Given names, by their JSON keys, the settings that the caller chose: a living sandbox keeps its own for all others. nil means all
	// were chosen.
	Given []string `json:"given"`
	// Recreate replaces a living sandbox, keeping its home.
	Recreate bool `json:"recreate,omitempty"`
	// Adapt is for callers that nobody watches. A living sandbox whose settings differ in what cannot be changed while it lives is made
	// anew if no job lives in it, and else taken as it is, with a warning. Without Adapt it is refused, with the differences.
	Adapt bool `json:"adapt,omitempty"`
}

// Networks a sandbox can have.
const (
	NetworkBridge = "bridge"
	NetworkNone   = "none"
)

// Values of [Config.Security].
const (
	SecurityStandard = "standard"
	SecurityHardened = "hardened"
)

// Hardened reports whether c asks for a hardened sandbox. No I/O.
func (c Config) Hardened() bool { return c.Security == SecurityHardened }

// DefaultDiskMB is the default of [Config.DiskMB], that of Hermes's own container settings.
const DefaultDiskMB = 51200

// Defaults returns a Config with the values of Hermes's built-in container settings. Name is "default".
func Defaults() Config {
	return Config{
		Name: "default", CPUs: 1, MemoryMB: 5120, PIDs: 2048, ShmBytes: 1 << 30,
		DiskMB: DefaultDiskMB, Network: NetworkBridge, Security: SecurityStandard, Persistent: true,
	}
}

const maxName = 128

var (
	namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`)
	userPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?$`)
	envPattern  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// MinMemoryMB is the smallest memory limit that Docker takes, in MiB.
const MinMemoryMB = 6

const (
	minCPUs = 0.01
	// No machine has more; what is above is a slip of the unit, and would not fit Docker's own numbers.
	maxCPUs = 1_000_000
	maxMB   = 1 << 30
	maxID   = 1<<31 - 1 // the largest number of an account or a group for Docker
)

// minPIDs leaves a command about half: the agent's threads and the shell that waits take some 30.
const minPIDs = 64

// maxPIDs is the most that a cgroup of Linux takes.
const maxPIDs = 1 << 22

// ValidName reports whether name can address a sandbox: letters, digits, ".", "_", ":" and "-", first a letter or digit, at most
// 128 characters.
func ValidName(name string) bool { return len(name) <= maxName && namePattern.MatchString(name) }

// ValidUser reports whether user is a name, or a number up to 2147483647, with an optional ":group" of the same kind.
func ValidUser(user string) bool {
	name, group, _ := strings.Cut(user, ":")
	return userPattern.MatchString(user) && validID(name) && validID(group)
}

// validID reports whether s is not a number that is too large for an account.
func validID(s string) bool {
	if strings.Trim(s, "0123456789") != "" || s == "" {
		return true // a name
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return err == nil && n <= maxID
}

// Validate returns every fault in c, in the order of its fields; nil when there is none. No I/O.
func (c Config) Validate() Faults {
	var f Faults
	add := func(key, format string, args ...any) { f = append(f, Fault{key, fmt.Sprintf(format, args...)}) }
	if !ValidName(c.Name) {
		add("name", "%s must be 1 to %d letters, digits, \".\", \"_\", \":\" or \"-\" and begin with a letter or digit", quoteShort(c.Name), maxName)
	}
	if c.Profile != "" && !ValidName(c.Profile) {
		add("profile", "%s must be a name like that of a sandbox", quoteShort(c.Profile))
	}
	if c.User != "" && !ValidUser(c.User) {
		add("user", "%s must be a name, or a number up to %d, optionally followed by \":\" and a group", quoteShort(c.User), maxID)
	}
	if c.CPUs < 0 || c.CPUs > 0 && c.CPUs < minCPUs || c.CPUs != c.CPUs || c.CPUs > maxCPUs {
		add("cpus", "%v must be 0 (no limit) or %v to %d cores", c.CPUs, minCPUs, maxCPUs)
	}
	if c.MemoryMB < 0 || c.MemoryMB > 0 && c.MemoryMB < MinMemoryMB || c.MemoryMB > maxMB {
		add("memory", "%d MB must be 0 (no limit) or %d to %d MB", c.MemoryMB, MinMemoryMB, maxMB)
	}
	if c.PIDs < 0 || c.PIDs > 0 && c.PIDs < minPIDs {
		add("pids", "%d must be 0 (no limit) or at least %d, for the agent and its shells take some themselves", c.PIDs, minPIDs)
	}
	if c.PIDs > maxPIDs {
		add("pids", "%d is more than a kernel counts, which is %d; 0 is no limit", c.PIDs, maxPIDs)
	}
	if c.DiskMB < 0 || c.DiskMB > maxMB {
		add("disk", "%d MB must be 0 (no limit) or 1 to %d MB", c.DiskMB, maxMB)
	}
	if c.ShmBytes < 0 {
		add("shm-size", "%d must be 0 (engine default) or a positive number of bytes", c.ShmBytes)
	}
	if c.Network != NetworkBridge && c.Network != NetworkNone {
		add("network", "%s must be \"bridge\" or \"none\"", quoteShort(c.Network))
	}
	if c.Security != "" && c.Security != SecurityStandard && c.Security != SecurityHardened {
		add("security", "%s must be \"standard\" or \"hardened\"", quoteShort(c.Security))
	}
	names := make([]string, 0, len(c.Env))
	for name := range c.Env {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if !envPattern.MatchString(name) {
			add("env", "%s is not a variable name", quoteShort(name))
		}
	}
	for _, name := range c.ForwardEnv {
		if !envPattern.MatchString(name) {
			add("forward-env", "%s is not a variable name", quoteShort(name))
		}
	}
	targets := map[string]bool{}
	for _, m := range c.Mounts {
		if problem := m.problem(); problem != "" {
			add("volume", "%s: %s", quoteShort(m.String()), problem)
		} else if targets[m.Target] {
			add("volume", "%s: something else is mounted at %s already", quoteShort(m.String()), m.Target)
		}
		targets[m.Target] = true
	}
	return f
}

// quoteShort quotes s for a message and cuts what would flood it.
func quoteShort(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("%q (%d characters)", string(r[:most])+"…", len(r))
	}
	return fmt.Sprintf("%q", s)
}
