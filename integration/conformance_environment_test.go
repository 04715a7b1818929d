//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// hermesEnvironment is one of Hermes's environments as a contract.Environment. What Hermes's methods have no word for is an
// errors.ErrUnsupported.
type hermesEnvironment struct {
	bridge *bridge
	id     int

	mu   sync.Mutex
	info contract.Info
}

var _ contract.Environment = (*hermesEnvironment)(nil)

func (e *hermesEnvironment) Info() contract.Info {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info
}

func (e *hermesEnvironment) Execute(ctx context.Context, req contract.Request) (contract.Result, error) {
	if req.Argv != nil || req.Terminal != nil || req.Env != nil || req.Transient != nil || req.User != "" || req.Stdout != nil || req.Stderr != nil || req.MaxOutput != 0 {
		return contract.Result{}, fmt.Errorf("hermes's execute has no word for it: %w", errors.ErrUnsupported)
	}
	params := map[string]any{"env": e.id, "command": req.Command, "cwd": req.Dir, "timeout": int(req.Timeout / time.Second), "stdin": nil}
	if req.Stdin != nil {
		data, err := io.ReadAll(req.Stdin)
		if err != nil {
			return contract.Result{}, err
		}
		params["stdin"] = data
	}
	var got struct {
		Output      string
		ReturnCode  int `json:"returncode"`
		Cwd         string
		Observed    bool   `json:"cwd_observed"`
		Recreated   bool   `json:"environment_recreated"`
		ContainerID string `json:"container_id"`
	}
	began := time.Now()
	if err := e.bridge.ask(ctx, "execute", params, &got); err != nil {
		return contract.Result{}, err
	}
	r := contract.Result{
		ExitCode: got.ReturnCode, Output: []byte(got.Output), Recreated: got.Recreated, ContainerID: got.ContainerID, Duration: time.Since(began),
		TimedOut:    got.ReturnCode == contract.ExitTimedOut && strings.Contains(got.Output, "timed out after"),
		Interrupted: got.ReturnCode == contract.ExitInterrupted && strings.Contains(got.Output, "interrupted"),
	}
	if got.Observed {
		r.Cwd = got.Cwd
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.info.ContainerID = got.ContainerID
	return r, nil
}

func (e *hermesEnvironment) ExecPrefix(ctx context.Context, user string, interactive bool) ([]string, error) {
	var argv []string
	err := e.bridge.ask(ctx, "exec_prefix", map[string]any{"env": e.id, "user": user, "interactive": interactive}, &argv)
	if err == nil && argv == nil {
		err = &contract.BackendError{Reason: "hermes's environment gives no exec_prefix", Hint: "its log says why"}
	}
	return argv, err
}

func (e *hermesEnvironment) FetchFile(ctx context.Context, path string, w io.Writer, maxBytes int64) error {
	var data []byte
	if err := e.bridge.ask(ctx, "fetch_file", map[string]any{"env": e.id, "path": path, "max_bytes": maxBytes}, &data); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

func (e *hermesEnvironment) Realpath(ctx context.Context, path string) (string, error) {
	var real *string
	if err := e.bridge.ask(ctx, "realpath", map[string]any{"env": e.id, "path": path}, &real); err != nil {
		return "", err
	}
	if real == nil {
		return "", &contract.FileError{Path: path, Problem: "cannot be resolved"}
	}
	return *real, nil
}

func (e *hermesEnvironment) Cleanup(ctx context.Context, remove bool) error {
	return e.bridge.ask(context.WithoutCancel(ctx), "cleanup", map[string]any{"env": e.id, "remove": remove}, nil)
}
