//go:build unix

package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// localProvider runs commands as processes of this machine: what the protocol does to a provider is tested on real ones.
type localProvider struct {
	home    string
	renewed string                           // id of the container that the next commands find anew
	request atomic.Pointer[contract.Request] // the last one
	cleaned atomic.Int32
	removed atomic.Int32
}

func (*localProvider) Name() string          { return "local-test" }
func (*localProvider) DefaultCwd() string    { return contract.HomeDirectory }
func (*localProvider) SupportsStreams() bool { return true }

func (*localProvider) Probe(context.Context) contract.Health {
	return contract.Health{Status: contract.Ready, Detail: "bash is here"}
}

func (p *localProvider) CreateEnvironment(ctx context.Context, cfg contract.Config, cwd string) (contract.Environment, error) {
	if f := cfg.Validate(); f != nil {
		return nil, f
	}
	switch cfg.Image {
	case "missing":
		return nil, &contract.BackendError{Reason: "no such image: missing", Hint: "pull it"}
	case "slow":
		<-ctx.Done()
		return nil, &contract.BackendError{Reason: "creation was given up", Hint: "try again", Err: context.Cause(ctx)}
	}
	info := contract.Info{
		Name: cfg.Name, ContainerID: "c0ffee", Image: cfg.Image, User: "me", Home: p.home, TempDir: os.TempDir(),
		Cwd: contract.StartDirectory(cwd, p.home), Created: true, ForwardEnv: cfg.ForwardEnv, Mounts: cfg.Mounts,
	}
	return &localEnv{provider: p, info: info, persistent: cfg.Persistent}, nil
}

type localEnv struct {
	provider   *localProvider
	info       contract.Info
	persistent bool
}

func (e *localEnv) Info() contract.Info { return e.info }

func (e *localEnv) Execute(ctx context.Context, req contract.Request) (contract.Result, error) {
	e.provider.request.Store(&req)
	if req.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.Timeout, contract.ErrTimedOut)
		defer cancel()
	}
	argv := req.Argv
	if argv == nil {
		argv = []string{"bash", "-c", req.Command}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = req.Dir
	if _, err := os.Stat(req.Dir); err != nil && req.FallbackDir != "" {
		cmd.Dir = req.FallbackDir
	}
	if cmd.Dir == "" {
		cmd.Dir = e.info.Home
	}
	cmd.Env = append(os.Environ(), "HOME="+e.info.Home)
	for k, v := range req.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var kept keeper
	kept.max = req.MaxOutput
	if cmd.Stdout = io.Writer(&kept); req.Stdout != nil {
		cmd.Stdout = req.Stdout
	}
	cmd.Stderr = cmd.Stdout
	var feed io.WriteCloser
	if req.Stdin != nil {
		var err error
		if feed, err = cmd.StdinPipe(); err != nil {
			return contract.Result{}, err
		}
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		if _, err := fmt.Fprintln(cmd.Stdout, err); err != nil {
			return contract.Result{}, err
		}
		failure := contract.NotExecutable
		if errors.Is(err, exec.ErrNotFound) {
			failure = contract.NotFound
		}
		return contract.Result{ExitCode: failure.Status(), Output: kept.data, ContainerID: e.info.ContainerID}, nil
	}
	if feed != nil {
		go func() { // ends with the input, or when the server closes it after the command
			_, _ = io.Copy(feed, req.Stdin)
			_ = feed.Close()
		}()
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err := cmd.Wait()
	stop()
	res := contract.Result{Output: kept.data, Dropped: kept.dropped, Cwd: cmd.Dir, Duration: time.Since(start)}
	res.Recreated, res.ContainerID = e.provider.renewed != "", cmp.Or(e.provider.renewed, e.info.ContainerID)
	var status *exec.ExitError
	switch {
	case context.Cause(ctx) != nil:
		res = contract.Killed(res, context.Cause(ctx), req.Timeout)
		if req.Stdout != nil {
			res.Output = nil
		}
		return res, nil
	case errors.As(err, &status):
		res.ExitCode = status.ExitCode()
	case err != nil:
		return contract.Result{}, &contract.BackendError{Reason: err.Error(), Hint: "look at the test"}
	}
	return res, nil
}

func (*localEnv) ExecPrefix(_ context.Context, user string, interactive bool) ([]string, error) {
	if user == "nobody-here" {
		return nil, &contract.BackendError{Reason: "no prefix for nobody-here", Hint: "name somebody"}
	}
	return []string{"/usr/bin/env", fmt.Sprintf("U=%s", user), fmt.Sprintf("I=%v", interactive)}, nil
}

func (e *localEnv) FetchFile(_ context.Context, path string, w io.Writer, maxBytes int64) error {
	f, err := os.Open(path)
	if err != nil {
		var p *fs.PathError
		errors.As(err, &p)
		return &contract.FileError{Path: path, Problem: p.Err.Error()}
	}
	defer func() { _ = f.Close() }()
	if maxBytes == 0 {
		_, err = io.Copy(w, f)
		return err
	}
	if n, err := io.Copy(w, io.LimitReader(f, maxBytes)); err != nil || n < maxBytes {
		return err
	}
	if n, _ := f.Read(make([]byte, 1)); n > 0 {
		return contract.ErrTooLarge
	}
	return nil
}

func (*localEnv) Realpath(_ context.Context, path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", &contract.FileError{Path: path, Problem: "no such file or directory"}
	}
	return real, nil
}

func (e *localEnv) Cleanup(_ context.Context, remove bool) error {
	e.provider.cleaned.Add(1)
	if remove || !e.persistent {
		e.provider.removed.Add(1)
	}
	return nil
}

// keeper keeps the first max bytes; 0 keeps all.
type keeper struct {
	data    []byte
	max     int
	dropped int64
}

func (k *keeper) Write(p []byte) (int, error) {
	n := len(p)
	if k.max > 0 {
		n = min(n, max(0, k.max-len(k.data)))
	}
	k.data = append(k.data, p[:n]...)
	k.dropped += int64(len(p) - n)
	return len(p), nil
}
