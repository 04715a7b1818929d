package engine

import (
	"context"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Engine talks to one daemon.
type Engine struct {
	api    *client.Client
	target target
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

// minAPI is the oldest API the product is tested with.
const minAPI = "1.41"

// Ping reports the API version in use, after a round trip.
func (e *Engine) Ping(ctx context.Context) (string, error) {
	ping, err := e.api.Ping(ctx)
	if err != nil {
		return "", e.explain("asking the daemon for its version", err)
	}
	e.api.NegotiateAPIVersionPing(ping)
	version := e.api.ClientVersion()
	if versions.LessThan(version, minAPI) {
		return version, &contract.BackendError{
			Reason: "the docker daemon at " + e.target.host + " speaks API " + version + ", older than " + minAPI,
			Hint:   "upgrade the daemon to Docker 20.10 or later",
		}
	}
	return version, nil
}

// Info is what the daemon says about itself and its machine, such as its storage driver and which limits it can set.
func (e *Engine) Info(ctx context.Context) (system.Info, error) {
	info, err := e.api.Info(ctx)
	return info, e.explain("asking the daemon about itself", err)
}
