package environment

import (
	"bytes"
	"context"
	"io"
	"strconv"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// AgentPath is where every sandbox has the agent, on a read-only mount.
const AgentPath = wire.AgentPath

// FetchFile implements [contract.Environment]. The agent's own program reads the file as the sandbox's account, so it sees what that
// account sees: tmpfs, mounts and permissions included, and needs no cat in the image.
func (e *Environment) FetchFile(ctx context.Context, path string, w io.Writer, maxBytes int64) error {
	out := &limited{w: w, left: maxBytes, bounded: maxBytes > 0}
	problem, err := e.file(ctx, path, out, AgentPath, "fetch", path, strconv.FormatInt(maxBytes, 10))
	switch {
	case out.over:
		return contract.ErrTooLarge
	case err != nil:
		return err
	case problem == problemTooLarge:
		return contract.ErrTooLarge
	case problem != "":
		return &contract.FileError{Path: path, Problem: problem}
	}
	return nil
}

// problemTooLarge is what the agent's program says of a file above the limit.
const problemTooLarge = "too large"

// Realpath implements [contract.Environment].
func (e *Environment) Realpath(ctx context.Context, path string) (string, error) {
	var out bytes.Buffer
	problem, err := e.file(ctx, path, &limited{w: &out, left: maxPath, bounded: true}, AgentPath, "realpath", path)
	switch {
	case err != nil:
		return "", err
	case problem != "":
		return "", &contract.FileError{Path: path, Problem: problem}
	case out.Len() == 0 || out.Bytes()[0] != '/':
		return "", &contract.FileError{Path: path, Problem: "the agent's answer is not an absolute path"}
	}
	return out.String(), nil
}

// file runs one of the agent's file programs. problem is its sentence when it ended with a status other than 0.
func (e *Environment) file(ctx context.Context, path string, stdout io.Writer, argv ...string) (problem string, err error) {
	var complaint bytes.Buffer
	result, err := e.Execute(ctx, contract.Request{Argv: argv, Stdout: stdout, Stderr: &limited{w: &complaint, left: maxPath, bounded: true}})
	if err != nil || result.ExitCode == 0 {
		return "", err
	}
	if result.TimedOut || result.Interrupted {
		return "", &contract.BackendError{Reason: "reading " + clean(path) + " took too long", Hint: "try again, or raise the time-out"}
	}
	if problem = clean(complaint.String()); problem == "" {
		problem = "the agent could not read it"
	}
	return problem, nil
}

// limited passes on at most left bytes and then fails, so that nothing inside can make the host keep or write more than it agreed to.
type limited struct {
	w       io.Writer
	left    int64
	bounded bool
	over    bool
}

func (l *limited) Write(p []byte) (int, error) {
	if !l.bounded {
		return l.w.Write(p)
	}
	if int64(len(p)) > l.left {
		l.over = true
		return 0, contract.ErrTooLarge
	}
	l.left -= int64(len(p))
	return l.w.Write(p)
}
