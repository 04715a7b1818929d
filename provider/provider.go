package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	dockerimage "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Name is the value of terminal.backend that selects dockerbox.
const Name = "dockerbox"

// Endpoint chooses the daemon; the zero value decides as the docker CLI does.
type Endpoint = engine.Endpoint

// Engine is what the provider needs of a container engine. Every error is a [contract.BackendError] that matches the causes the provider
// acts on: a missing object, a taken name, a daemon that does not answer.
type Engine interface {
	Address() string
	CLIArgs() []string
	Close() error
	Ping(context.Context) (string, error)
	Info(context.Context) (system.Info, error)
	Version(context.Context) (types.Version, error)
	Create(ctx context.Context, name string, cfg *container.Config, host *container.HostConfig) (id string, warnings []string, err error)
	Start(ctx context.Context, id string) error
	Update(ctx context.Context, id string, limits container.Resources) (warnings []string, err error)
	Kill(ctx context.Context, id string) error
	Inspect(ctx context.Context, id string) (container.InspectResponse, error)
	List(ctx context.Context, labels ...string) ([]container.Summary, error)
	Remove(ctx context.Context, id string) error
	RemoveEnded(ctx context.Context, id string) error
	ReadFile(ctx context.Context, id, path string, limit int64) ([]byte, error)
	FileSize(ctx context.Context, id, path string) (int64, error)
	WriteFile(ctx context.Context, id, dir, name string, mode int64, data []byte) error
	Exec(ctx context.Context, id, user string, argv []string) (engine.Conn, error)
	Image(ctx context.Context, ref string) (dockerimage.InspectResponse, error)
	Pull(ctx context.Context, ref string, report func(jsonmessage.JSONMessage)) error
	Build(ctx context.Context, r engine.Recipe, report func(engine.BuildProgress)) (id string, err error)
	DeleteImage(ctx context.Context, ref string) error
	CreateVolume(ctx context.Context, name string, labels map[string]string) (bool, error)
	RemoveVolume(ctx context.Context, name string) error
	HasVolume(ctx context.Context, name string) (bool, error)
	VolumeUsers(ctx context.Context, name string) ([]string, error)
	MakeDirectories(ctx context.Context, id string, dirs []engine.Directory) error
	Freeze(ctx context.Context, id string) error
	Thaw(ctx context.Context, id string) error
	Logs(ctx context.Context, id string, o engine.LogOptions, w io.Writer) error
	Stats(ctx context.Context, id string) (container.StatsResponse, error)
	WrittenSize(ctx context.Context, id string) (int64, error)
	ListVolumes(ctx context.Context, labels ...string) ([]engine.Volume, error)
	VolumeSizes(ctx context.Context) (map[string]int64, error)
	NamelessImages(ctx context.Context, labels ...string) ([]engine.Nameless, error)
}

var _ Engine = (*engine.Engine)(nil)

// Provider makes, finds and removes sandboxes on one daemon. Safe for concurrent use.
type Provider struct {
	engine   Engine
	endpoint Endpoint
	version  string
	logf     func(string, ...any)
	progress func(Progress)
	now      func() time.Time
	// orphanIdle is the constant of that name, but for tests.
	orphanIdle time.Duration

	background *backgroundPulls // nil: who needs an image waits for it
	reporting  sync.Mutex       // held during progress

	mu       sync.Mutex
	prepared map[string]preparedImage // by image id, user and the directories asked about
	about    *system.Info             // see describe; nil until asked
}

var _ contract.Provider = (*Provider)(nil)

// Option replaces a collaborator.
type Option func(*Provider)

// WithLogf receives one line per noteworthy event; without it they are dropped.
func WithLogf(logf func(format string, args ...any)) Option {
	return func(p *Provider) { p.logf = logf }
}

// WithProgress receives the progress of pulls, of each in order and never two steps at a time. Without [WithBackgroundPull] it is called from
// the goroutine that waits for the pull.
func WithProgress(report func(Progress)) Option { return func(p *Provider) { p.progress = report } }

// WithVersion is this program's version, for labels and the agent's log. Default "dev".
func WithVersion(version string) Option { return func(p *Provider) { p.version = version } }

// WithEngine replaces the engine that the endpoint leads to; the endpoint is not looked at then. [Provider.Close] closes it.
func WithEngine(e Engine) Option { return func(p *Provider) { p.engine = e } }

// WithClock replaces the clock that tells how long ago a sandbox ended.
func WithClock(now func() time.Time) Option { return func(p *Provider) { p.now = now } }

// New makes a provider for the daemon that ep chooses. It reads the environment and docker's configuration; it does not connect.
func New(ep Endpoint, options ...Option) (*Provider, error) {
	p := &Provider{
		endpoint: ep, version: "dev", prepared: map[string]preparedImage{},
		logf: func(string, ...any) {}, progress: func(Progress) {}, now: time.Now, orphanIdle: orphanIdle,
	}
	for _, o := range options {
		o(p)
	}
	if p.engine == nil {
		e, err := engine.Open(ep)
		if err != nil {
			return nil, err
		}
		p.engine = e
	}
	return p, nil
}

// Close drops the provider's connections and ends pulls in the background. Sandboxes and environments are not touched.
func (p *Provider) Close() error {
	p.background.close()
	return p.engine.Close()
}

// Name implements [contract.Provider].
func (p *Provider) Name() string { return Name }

// DefaultCwd implements [contract.Provider]: each sandbox's own home.
func (p *Provider) DefaultCwd() string { return contract.HomeDirectory }

// SupportsStreams implements [contract.Provider].
func (p *Provider) SupportsStreams() bool { return true }

// Probe implements [contract.Provider]: does the daemon answer, and is the default image there or another one on its way.
func (p *Provider) Probe(ctx context.Context) contract.Health {
	version, err := p.engine.Ping(ctx)
	if err != nil {
		return health(contract.Unavailable, err)
	}
	// Ready: commands are answered, by how far it is until they run. Hermes takes the tools from an agent whose backend is not.
	if pulling := p.background.underway(); len(pulling) > 0 {
		return contract.Health{Status: contract.Ready, Detail: fmt.Sprintf("the daemon answers; %s", strings.Join(pulling, "; "))}
	}
	switch _, err := p.engine.Image(ctx, image.DefaultTag); {
	case errors.Is(err, engine.ErrNotFound):
		return contract.Health{
			Status: contract.NeedsSetup,
			Detail: "the daemon answers, but the image " + image.DefaultTag + " is not built yet",
			Hint:   "run make image in the dockerbox repository, or choose another image",
		}
	case err != nil:
		return health(contract.Unavailable, err)
	}
	return contract.Health{Status: contract.Ready, Detail: fmt.Sprintf("Docker API %s at %s", version, p.engine.Address())}
}

// CreateEnvironment implements [contract.Provider].
func (p *Provider) CreateEnvironment(ctx context.Context, cfg contract.Config, cwd string) (contract.Environment, error) {
	if faults := append(Check(cfg), givenFaults(cfg.Given)...); len(faults) > 0 {
		return nil, faults
	}
	if cfg.Image == "" {
		cfg.Image = image.DefaultTag
	}
	var err error
	if cfg.Mounts, err = ownHome(cfg.Mounts); err != nil {
		return nil, err
	}
	return p.open(ctx, cfg, cwd)
}

// prefix finds what the exec_prefix argv is made of.
func (p *Provider) prefix(containerID string, id identity) environment.Prefix {
	f := environment.Prefix{ContainerID: containerID, CLIArgs: p.engine.CLIArgs(), Name: id.String()}
	if docker, err := exec.LookPath("docker"); err == nil {
		if f.Docker, err = filepath.Abs(docker); err == nil {
			return f
		}
		f.Docker = ""
	}
	if self, err := p.Self(); err == nil {
		f.Self = self
	}
	return f
}

// Self are the words that start this program anew, from anywhere, for the same daemon.
func (p *Provider) Self() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	switch {
	case p.endpoint.Context != "":
		return []string{self, "--context", p.endpoint.Context}, nil
	case p.engine.Address() != "":
		return []string{self, "--host", p.engine.Address()}, nil
	}
	return []string{self}, nil
}

func health(status contract.HealthStatus, err error) contract.Health {
	h := contract.Health{Status: status, Detail: err.Error()}
	if b, ok := asBackend(err); ok {
		h.Hint = b.Hint
	}
	return h
}
