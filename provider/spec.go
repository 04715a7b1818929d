package provider

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
)

// Labels every object of dockerbox's carries. They are how it finds its own, and all it ever touches.
const (
	labelPrefix  = "dev.dockerbox."
	labelName    = labelPrefix + "name"
	labelProfile = labelPrefix + "profile"
	labelTask    = labelPrefix + "task"
	labelSpec    = labelPrefix + "spec"    // digest of everything that shapes the container
	labelConfig  = labelPrefix + "config"  // record, as JSON: what the digest was made of, so differences can be named
	labelOwner   = labelPrefix + "owner"   // who made it
	labelCreated = labelPrefix + "created" // RFC 3339, as exact as the clock: it tells the one who made it
	labelKind    = labelPrefix + "kind"    // of a volume or helper: one of the kinds below
)

// Kinds of objects that are not sandboxes.
const (
	kindHome   = "home"
	kindAgent  = "agent"
	kindHelper = "helper"
)

// agentVolumePrefix begins the name of the volume with the agent; its digest follows.
const agentVolumePrefix = "dockerbox-agent-"

// agentDir is where the agent volume is mounted.
const agentDir = "/.dockerbox"

// capabilities is what remains after dropping all: enough for apt, sudo and su to work as people expect (files of other owners, file
// modes and capabilities, switching accounts) and for the agent to end any process.
var capabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETFCAP", "SETGID", "SETUID", "AUDIT_WRITE", "NET_BIND_SERVICE"}

// record is what shapes a container, as kept in its label.
type record struct {
	Image      string            `json:"image"`
	User       string            `json:"user"`
	UserChosen bool              `json:"user_chosen,omitempty"` // else it is the image's own
	Home       string            `json:"home,omitempty"`        // mount point of the home volume; empty without one
	CPUs       float64           `json:"cpus"`
	MemoryMB   int64             `json:"memory_mb"`
	PIDs       int64             `json:"pids"`
	DiskMB     int64             `json:"disk_mb"`
	ShmBytes   int64             `json:"shm_bytes"`
	Network    string            `json:"network"`
	Security   string            `json:"security,omitempty"` // empty is standard: records older than the setting have none
	Env        map[string]string `json:"env,omitempty"`
	ForwardEnv []string          `json:"forward_env,omitempty"` // names alone
	Mounts     []contract.Mount  `json:"mounts,omitempty"`      // with ~ resolved, by target
	ExtraArgs  []string          `json:"extra_args,omitempty"`
	Persistent bool              `json:"persistent"`
	Agent      string            `json:"agent"` // the agent volume
}

// security is one of the words for it, never empty.
func (r record) security() string { return cmp.Or(r.Security, contract.SecurityStandard) }

func (r record) encode() string {
	text, err := json.Marshal(r)
	if err != nil { // it holds nothing JSON cannot carry: Validate refuses NaN
		panic(err)
	}
	return string(text)
}

// digest is the value of labelSpec. Maps encode in order, so equal records have equal digests.
func (r record) digest() string {
	sum := sha256.Sum256([]byte(r.encode()))
	return hex.EncodeToString(sum[:])
}

// facts are the inputs of a spec that are not settings.
type facts struct {
	agentVolume string
	user        string // resolved: never empty
	home        string // where the home volume goes; empty for none
	dir         string // where the exec_prefix argv starts: the account's home
	uid, gid    int    // of user
	// homeVariable is $HOME in the container's configuration, empty for none: the agent and docker exec know no other way to the home of an
	// account that the image does not know. The agent takes it for the home of that account alone, because the account owns it.
	homeVariable string
	noHome       bool   // the image does not have the account's home
	runtimeDir   string // what the image calls XDG_RUNTIME_DIR, if it has that; else empty
	quota        bool   // the storage may limit what the container writes
	noCPUs       bool   // the daemon refuses containers with a limit on processors
	noSeccomp    bool   // the daemon refuses containers with a profile of system calls
	boundsLog    bool   // the daemon keeps a container's log in files whose size can be limited
	owner        string
	version      string
	created      time.Time
}

// spec is a container before it exists.
type spec struct {
	id     identity
	record record
	config *container.Config
	host   *container.HostConfig
}

// newSpec decides what a sandbox's container looks like. It is pure: the same cfg and facts give the same spec.
func newSpec(cfg contract.Config, f facts) spec {
	s := spec{id: identity{cfg.Profile, cfg.Name}}
	var host container.HostConfig
	_ = applyExtraArgs(cfg.ExtraArgs, &container.Config{Labels: map[string]string{}}, &host) // whoever calls has seen to the faults
	if covers(cfg.Mounts, host.Tmpfs, f.home) {
		f.home = "" // what the user mounts there is the home
	}
	s.record = record{
		Image: cfg.Image, User: f.user, UserChosen: cfg.User != "", Home: f.home,
		CPUs: cfg.CPUs, MemoryMB: cfg.MemoryMB, PIDs: cfg.PIDs, ShmBytes: cfg.ShmBytes,
		DiskMB: cfg.DiskMB, Network: cfg.Network, Env: cfg.Env, Persistent: cfg.Persistent, Agent: f.agentVolume,
		ForwardEnv: slices.Sorted(slices.Values(cfg.ForwardEnv)), ExtraArgs: cfg.ExtraArgs,
		Mounts: slices.SortedFunc(slices.Values(cfg.Mounts), func(a, b contract.Mount) int { return strings.Compare(a.Target, b.Target) }),
	}
	if cfg.Hardened() {
		s.record.Security = cfg.Security
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Env)) {
		env = append(env, name+"="+cfg.Env[name])
	}
	if _, chosen := cfg.Env["HOME"]; f.homeVariable != "" && !chosen {
		env = append(env, "HOME="+f.homeVariable)
	}
	s.config = &container.Config{
		Image:      cfg.Image,
		User:       f.user,
		WorkingDir: f.dir,
		Hostname:   s.id.hostname(),
		Env:        env,
		// The agent keeps the container alive: the image need have nothing but bash, and no entry point of its own gets in the way. It is the
		// first process itself and collects orphans: docker's init would end with a child of it, and pkill -u reaches that.
		Entrypoint: []string{agentDir + "/agent"},
		Cmd:        []string{"idle"},
		StopSignal: "SIGKILL", // the only one it hears; docker's init passed TERM on to it alone, too
		Labels: map[string]string{
			labelName: cfg.Name, labelProfile: cfg.Profile, labelTask: cfg.Task,
			labelSpec: s.record.digest(), labelConfig: s.record.encode(),
			labelOwner: f.owner, labelCreated: f.created.UTC().Format(time.RFC3339Nano),
			ocispec.AnnotationTitle:         "dockerbox sandbox " + s.id.String(),
			ocispec.AnnotationVersion:       f.version,
			ocispec.AnnotationBaseImageName: cfg.Image,
		},
	}
	withInit := false // whatever the daemon's default is
	s.host = &container.HostConfig{
		Init:        &withInit,
		CapDrop:     []string{"ALL"},
		CapAdd:      capabilities,
		NetworkMode: container.NetworkMode(cfg.Network),
		ShmSize:     cfg.ShmBytes,
		Mounts:      s.mounts(f),
	}
	if !f.noSeccomp {
		// Not part of the record: a program with another profile takes the sandboxes that are there as they are.
		s.host.SecurityOpt = []string{"seccomp=" + image.Seccomp()}
	}
	if cfg.Hardened() {
		s.config.Cmd = []string{"first"}
		s.harden(f, host.Tmpfs)
	}
	if !f.noCPUs {
		s.host.NanoCPUs = nanoCPUs(cfg.CPUs)
	}
	if f.quota && cfg.DiskMB > 0 {
		s.host.StorageOpt = quota(cfg.DiskMB)
	}
	s.host.Memory = cfg.MemoryMB << mib
	if cfg.PIDs > 0 {
		pids := cfg.PIDs
		s.host.PidsLimit = &pids
	}
	_ = applyExtraArgs(cfg.ExtraArgs, s.config, s.host) // last; the faults as above
	if f.boundsLog {
		boundLog(s.host)
	}
	if cfg.Hardened() {
		s.host.CapAdd = nil // to drop a capability is to name those that stay
	}
	if options, ok := s.host.Tmpfs[f.dir]; ok {
		s.host.Tmpfs[f.dir] = owned(options, f.uid, f.gid)
	}
	return s
}

// owned adds to the options of a directory in memory whose it is, unless they say so: else it is root's, with the mode of what lies below it,
// and for a home that is one which its account cannot enter.
func owned(options string, uid, gid int) string {
	list := strings.FieldsFunc(options, func(r rune) bool { return r == ',' })
	for _, who := range []string{"uid=" + strconv.Itoa(uid), "gid=" + strconv.Itoa(gid)} {
		if !slices.ContainsFunc(list, func(o string) bool { return strings.HasPrefix(o, who[:len("uid=")]) }) {
			list = append(list, who)
		}
	}
	return strings.Join(list, ",")
}

// mounts are the agent, read-only, the home when it is kept, and the user's own.
func (s spec) mounts(f facts) []mount.Mount {
	all := []mount.Mount{{
		Type: mount.TypeVolume, Source: f.agentVolume, Target: agentDir, ReadOnly: true,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true},
	}}
	if f.home != "" {
		// Copy-up happens once, when the volume is new: the image's home, with its owner and mode.
		all = append(all, mount.Mount{Type: mount.TypeVolume, Source: s.id.home(), Target: f.home})
	}
	for _, m := range s.record.Mounts {
		all = append(all, bind(m))
	}
	return all
}
