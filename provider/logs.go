package provider

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// boundsLog reports whether the daemon keeps logs in files of which it can limit the size. Not so where it hands them on, as to journald.
func boundsLog(info system.Info) bool {
	return slices.Contains([]string{"json-file", "local"}, info.LoggingDriver)
}

// boundLog limits a container's log, unless somebody chose what becomes of it: whoever is in the sandbox may write to it without end, and a
// daemon's default is no limit. Not part of the record: a sandbox that is there keeps the log it has.
func boundLog(host *container.HostConfig) {
	if host.LogConfig.Type == "" && len(host.LogConfig.Config) == 0 {
		host.LogConfig.Config = map[string]string{"max-size": "512k", "max-file": "2"}
	}
}

// LogOptions choose lines of a log; see the fields.
type LogOptions = engine.LogOptions

// Logs writes the log of a sandbox to w, each line with its time in front: what its agent has to say to the owner, and what else wrote to its
// first process's streams. It starts nothing, and follows until the sandbox ends or w fails; then the error is w's own.
func (p *Provider) Logs(ctx context.Context, address string, o LogOptions, w io.Writer) error {
	_, b, err := p.find(ctx, address)
	if err != nil && !errors.Is(err, errUnreadable) { // how it was made does not matter here
		return err
	}
	taker := &taker{w: w}
	err = p.engine.Logs(ctx, b.containerID, o, taker)
	switch e, ok := asBackend(err); {
	case taker.err != nil:
		return taker.err
	case errors.Is(err, engine.ErrNotFound): // somebody removed it meanwhile
		return p.missing(ctx, b.id)
	case ok && ctx.Err() == nil && !errors.Is(err, engine.ErrUnreachable):
		return &contract.BackendError{
			Reason: e.Reason, Hint: "a log driver that sends logs elsewhere keeps none to read (docker info names it; --log-driver among the extra arguments chooses one)", Err: err,
		}
	}
	return err
}

// taker remembers that it was its writer that failed.
type taker struct {
	w   io.Writer
	err error
}

func (t *taker) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	t.err = err
	return n, err
}
