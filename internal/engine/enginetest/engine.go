//go:build linux

package enginetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Engine is one daemon's worth of images, volumes and containers. Make it with [New]. Safe for concurrent use.
type Engine struct {
	dir     string
	starts  chan func() // run one after another on a thread that lives as long as the engine
	stopped chan struct{}
	close   func() error

	mu         sync.Mutex
	images     map[string]image // by reference
	recipes    []engine.Recipe
	volumes    map[string]volume
	containers map[string]*box // by id
	faults     faults
	info       system.Info
	version    types.Version
	programs   func(argv []string) string
	registry   Registry
	warnings   []string
	uses       func(name string) container.StatsResponse
}

// New makes an engine without images. [Engine.Close] ends what it runs and removes its files.
func New() (*Engine, error) {
	// Not in a directory for its owner alone: the account that commands run as must reach its home.
	dir, err := os.MkdirTemp("", "enginetest-")
	if err != nil {
		return nil, err
	}
	e := &Engine{
		dir: dir, starts: make(chan func()), stopped: make(chan struct{}),
		images: map[string]image{}, volumes: map[string]volume{}, containers: map[string]*box{}, faults: newFaults(),
		info: system.Info{
			ID: "in-memory", Driver: "overlay2", DriverStatus: [][2]string{{"Backing Filesystem", "extfs"}}, CgroupDriver: "cgroupfs", CgroupVersion: "1",
			MemoryLimit: true, SwapLimit: true, CPUCfsPeriod: true, CPUCfsQuota: true, PidsLimit: true, SecurityOptions: []string{"name=seccomp,profile=default"},
			LoggingDriver: "json-file",
			OSType:        "linux", ServerVersion: "20.10", Architecture: machine(),
		},
		version: types.Version{Version: "20.10", APIVersion: "1.41", Components: []types.ComponentVersion{{Name: "Engine", Version: "20.10"}}},
	}
	e.close = sync.OnceValue(e.end)
	go e.starter()
	const everybody = 0o755
	if err := os.Chmod(dir, everybody); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	for _, part := range []string{"c", "homes", "volumes", "bin"} {
		if err := os.Mkdir(e.path(part), everybody); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	if err := e.writeCLI(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// starter keeps one thread for starting processes: they are to die with the process that started them, and what the kernel watches for that
// is the thread.
func (e *Engine) starter() {
	defer close(e.stopped)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine, when nothing runs any more
	for start := range e.starts {
		start()
	}
}

// end implements Close.
func (e *Engine) end() error {
	e.mu.Lock()
	all := make([]string, 0, len(e.containers))
	for id := range e.containers {
		all = append(all, id)
	}
	e.mu.Unlock()
	var errs []error
	for _, id := range all {
		errs = append(errs, e.Vanish(id))
	}
	close(e.starts)
	<-e.stopped
	return errors.Join(append(errs, os.RemoveAll(e.dir))...)
}

// Close ends all containers and removes everything the engine wrote. Idempotent.
func (e *Engine) Close() error { return e.close() }

func (e *Engine) path(parts ...string) string {
	return filepath.Join(append([]string{e.dir}, parts...)...)
}

// Address implements the provider's engine.
func (e *Engine) Address() string { return "memory://" + e.dir }

// Ping implements the provider's engine.
func (e *Engine) Ping(ctx context.Context) (string, error) {
	if err := e.enter(ctx, OpPing); err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if versions.LessThan(e.version.APIVersion, engine.MinAPI) {
		return e.version.APIVersion, failure(nil, "the daemon speaks API %s, older than %s", e.version.APIVersion, engine.MinAPI)
	}
	return e.version.APIVersion, nil
}

// Info implements the provider's engine: what [Engine.Describe] set, else a daemon that can set every limit and has no quotas.
func (e *Engine) Info(ctx context.Context) (system.Info, error) {
	if err := e.enter(ctx, OpInfo); err != nil {
		return system.Info{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info, nil
}

// Describe sets what the daemon says about itself from now on.
func (e *Engine) Describe(info system.Info) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.info = info
}

// Version implements the provider's engine: what [Engine.DescribeVersion] set, else Docker 20.10.
func (e *Engine) Version(ctx context.Context) (types.Version, error) {
	if err := e.enter(ctx, OpVersion); err != nil {
		return types.Version{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.version, nil
}

// DescribeVersion sets which API the daemon speaks, and what its parts call themselves, from now on.
func (e *Engine) DescribeVersion(v types.Version) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.version = v
}

// machine is this machine's architecture as the kernel names it and a daemon repeats it.
func machine() string {
	if name, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]; ok {
		return name
	}
	return runtime.GOARCH
}

// newID is 64 hexadecimal digits, like a daemon's.
func newID() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// short is the part of an id that names its directory: a socket's path must stay short.
func short(id string) string { return id[:min(len(id), 12)] }

// failure is an error as package engine gives them.
func failure(kind error, format string, args ...any) error {
	return &contract.BackendError{Reason: fmt.Sprintf(format, args...), Hint: "this is the engine in memory: look at the test", Err: kind}
}

func notFound(format string, args ...any) error { return failure(engine.ErrNotFound, format, args...) }
