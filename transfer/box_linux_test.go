package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/agent"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// asAgent has the test binary be the agent's program.
const asAgent = "DOCKERBOX_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		os.Exit(agent.Main(os.Args, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// box is a sandbox whose agent is a process of this machine: its paths are ours.
type box struct {
	t    *testing.T
	home string
	asks []contract.Request
}

func newBox(t *testing.T) *box { t.Helper(); return &box{t: t, home: t.TempDir()} }

// Execute implements Sandbox as an environment does: input is not waited for, and the end of ctx ends the program.
func (b *box) Execute(ctx context.Context, req contract.Request) (contract.Result, error) {
	if req.Argv[0] != wire.AgentPath {
		b.t.Errorf("ran %q", req.Argv)
	}
	b.asks = append(b.asks, req)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command := exec.CommandContext(ctx, "/proc/self/exe", req.Argv[1:]...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	const grace = 10 * time.Second
	command.WaitDelay = grace
	command.Env = append(os.Environ(), asAgent+"=1", "HOME="+b.home)
	var failed error
	command.Stdout, command.Stderr = passing{req.Stdout, func(err error) { failed = err; cancel() }}, req.Stderr
	var input io.WriteCloser
	if req.Stdin != nil {
		var err error
		if input, err = command.StdinPipe(); err != nil {
			return contract.Result{}, err
		}
	}
	if err := command.Start(); err != nil {
		return contract.Result{}, err
	}
	if input != nil {
		go func() {
			_, _ = io.Copy(input, req.Stdin) // as an environment: who does not read all is no fault
			_ = input.Close()
		}()
	}
	err := command.Wait()
	if failed != nil {
		return contract.Result{}, &contract.BackendError{Reason: "output could not be passed on", Hint: "none", Err: failed}
	}
	if ctx.Err() != nil {
		return contract.Result{ExitCode: contract.ExitInterrupted, Interrupted: true}, nil
	}
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		return contract.Result{}, err
	}
	return contract.Result{ExitCode: command.ProcessState.ExitCode()}, nil
}

// passing tells when its writer fails.
type passing struct {
	io.Writer
	failed func(error)
}

func (p passing) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if err != nil {
		p.failed(err)
	}
	return n, err
}

// stranger is a sandbox whose agent was replaced: it sends what it likes.
type stranger struct {
	stdout func(ctx context.Context, w io.Writer) error
	stderr string
	status int
	err    error
}

func (s stranger) Execute(ctx context.Context, req contract.Request) (contract.Result, error) {
	if s.stderr != "" {
		if _, err := io.WriteString(req.Stderr, s.stderr); err != nil {
			return contract.Result{}, err
		}
	}
	if s.stdout != nil {
		if err := s.stdout(ctx, req.Stdout); err != nil {
			return contract.Result{}, &contract.BackendError{Reason: "output could not be passed on", Hint: "none", Err: err}
		}
	}
	return contract.Result{ExitCode: s.status}, s.err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused fails the test unless err is a BackendError with exactly this reason, "*" standing for anything at its end, and a hint.
func refused(t *testing.T, err error, reason string) {
	t.Helper()
	var b *contract.BackendError
	if !errors.As(err, &b) {
		t.Errorf("got %v, want %q", err, reason)
		return
	}
	begin, any := strings.CutSuffix(reason, "*")
	if any && !strings.HasPrefix(b.Reason, begin) || !any && b.Reason != reason || b.Hint == "" {
		t.Errorf("got %q, %q; want %q", b.Reason, b.Hint, reason)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	must(t, err)
	return string(bytes.TrimSpace(data))
}
