package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Engine talks to one daemon.
type Engine struct {
	api    *client.Client
	target target
	met    atomic.Bool // the daemon answered and can be used
}

// Open resolves ep. It reads the environment and docker's configuration files; it does not connect.
func Open(ep Endpoint) (*Engine, error) {
	t, err := resolve(ep)
	if err != nil {
		return nil, err
	}
	api, err := t.openClient()
	if err != nil {
		return nil, err
	}
	return &Engine{api: api, target: t}, nil
}

// Close drops idle connections.
func (e *Engine) Close() error { return e.api.Close() }

// Address is the daemon's address for messages.
func (e *Engine) Address() string { return e.target.host }

// CLIArgs are the global flags that make a docker CLI with an empty environment reach the same daemon; none when that is its
// default.
func (e *Engine) CLIArgs() []string { return e.target.cliArgs }

// MinAPI is the oldest version of the Docker API that will do, that of Docker 20.10.
const MinAPI = "1.41"

// Ping reports the API version in use, after a round trip.
func (e *Engine) Ping(ctx context.Context) (string, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, e.patience())
	defer cancel()
	ping, err := e.api.Ping(ctx)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded): // the caller's or ours
		return "", e.silent(time.Since(began), err)
	case ping.APIVersion == "" && answered(err): // but not by a daemon
		return "", e.stranger(err)
	case err != nil:
		return "", e.explain("asking the daemon for its version", err)
	}
	e.api.NegotiateAPIVersionPing(ping)
	version := e.api.ClientVersion()
	if err := e.usable(version, ping.APIVersion); err != nil {
		return version, err
	}
	e.met.Store(true)
	return version, nil
}

var apiVersion = regexp.MustCompile(`^v?\d+\.\d+$`)

// usable says why the version in use will not do: that of a daemon, or the one that DOCKER_API_VERSION asks for.
func (e *Engine) usable(version, daemons string) error {
	asked := os.Getenv(client.EnvOverrideAPIVersion)
	var reason string
	switch {
	case asked != "" && !apiVersion.MatchString(asked):
		reason = fmt.Sprintf("%s is %.40q, which is no version", client.EnvOverrideAPIVersion, asked)
	case asked != "" && versions.LessThan(version, MinAPI) && !versions.LessThan(daemons, MinAPI):
		reason = fmt.Sprintf("%s is %s, older than %s, which dockerbox needs", client.EnvOverrideAPIVersion, version, MinAPI)
	case asked != "" && versions.GreaterThan(version, daemons):
		reason = fmt.Sprintf("%s is %s, and the docker daemon at %s speaks %s", client.EnvOverrideAPIVersion, version, e.target.host, daemons)
	case versions.LessThan(version, MinAPI):
		return &contract.BackendError{
			Reason: "the docker daemon at " + e.target.host + " speaks API " + version + ", older than " + MinAPI,
			Hint:   "upgrade the daemon to Docker 20.10 or later",
		}
	default:
		return nil
	}
	return &contract.BackendError{Reason: reason, Hint: "unset DOCKER_API_VERSION: the version is agreed on with the daemon"}
}

// ready asks the daemon once for its version before anything else is asked: the client would do so too, but wait for ever for a daemon
// that takes the connection and says nothing, and take any other server for a daemon of old.
func (e *Engine) ready(ctx context.Context) error {
	if e.met.Load() {
		return nil
	}
	_, err := e.Ping(ctx)
	return err
}

// answered reports whether a request with that error had an answer.
func answered(err error) bool {
	return err == nil || errdefs.IsNotFound(err) || errdefs.IsInvalidArgument(err) || errdefs.IsInternal(err) || errdefs.IsUnauthorized(err) || errdefs.IsNotImplemented(err)
}

// patience is how long a daemon may take to say its version. Another machine may have to be woken, and ssh to log in.
func (e *Engine) patience() time.Duration {
	const here, elsewhere = 10 * time.Second, 30 * time.Second
	if strings.HasPrefix(e.target.host, "unix://") || strings.HasPrefix(e.target.host, "npipe://") {
		return here
	}
	return elsewhere
}

// Info is what the daemon says about itself and its machine, such as its storage driver and which limits it can set.
func (e *Engine) Info(ctx context.Context) (system.Info, error) {
	if err := e.ready(ctx); err != nil {
		return system.Info{}, err
	}
	info, err := e.api.Info(ctx)
	return info, e.explain("asking the daemon about itself", err)
}

// Version is what the daemon's parts call themselves: Docker's, or those of an engine that stands in for it.
func (e *Engine) Version(ctx context.Context) (types.Version, error) {
	if err := e.ready(ctx); err != nil {
		return types.Version{}, err
	}
	version, err := e.api.ServerVersion(ctx)
	return version, e.explain("asking the daemon what it is", err)
}
