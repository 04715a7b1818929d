package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// What callers branch on. Every error of this package that has such a cause matches with errors.Is.
var (
	ErrNotFound    = errors.New("no such object")
	ErrConflict    = errors.New("conflict")
	ErrUnreachable = errors.New("daemon does not answer")
)

// explain turns an error of the Docker client into a sentence about what was tried, keeping its kind for errors.Is.
func (e *Engine) explain(did string, err error) error {
	var backend *contract.BackendError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &backend):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &contract.BackendError{
			Reason: did + ": no answer from the daemon in time",
			Hint:   "see whether docker ps answers, then try again", Err: err,
		}
	case errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied while trying to connect"):
		return &contract.BackendError{
			Reason: "no permission to talk to the docker daemon at " + e.target.host,
			Hint:   "add your user to the docker group and log in again, or run as root", Err: errors.Join(ErrUnreachable, err),
		}
	case client.IsErrConnectionFailed(err), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return e.unreachable(err)
	case errdefs.IsNotFound(err):
		return &contract.BackendError{Reason: did + ": " + lastCause(err), Hint: "docker ps -a shows what there is", Err: errors.Join(ErrNotFound, err)}
	case errdefs.IsConflict(err):
		return &contract.BackendError{Reason: did + ": " + lastCause(err), Hint: "docker ps -a shows what is in the way", Err: errors.Join(ErrConflict, err)}
	case errdefs.IsInvalidArgument(err):
		return &contract.BackendError{Reason: did + ": " + lastCause(err), Hint: "the daemon does not take that: correct what it names", Err: err}
	default:
		return &contract.BackendError{
			Reason: fmt.Sprintf("%s: %s", did, lastCause(err)),
			Hint:   "the daemon refused it; its log has more (journalctl -u docker, or the log file setup-docker named)", Err: err,
		}
	}
}

// unreachable explains a connection that was not made. The client tells the cause only of what is not simply refused.
func (e *Engine) unreachable(err error) error {
	b := &contract.BackendError{
		Reason: "the docker daemon at " + e.target.host + " does not answer",
		Hint:   "start it (systemctl start docker, or make docker in the repository), or point DOCKER_HOST or --context at the right one",
		Err:    errors.Join(ErrUnreachable, err),
	}
	var cause *url.Error
	if errors.As(err, &cause) {
		text := lastCause(cause.Err)
		if _, said, ok := strings.Cut(text, "stderr="); ok && said != "" { // of ssh: what stands before is its command line
			text = said
		}
		b.Reason += ": " + text
	}
	if !strings.HasPrefix(e.target.host, "unix://") {
		b.Hint = "see whether docker --host " + e.target.host + " version works, or point DOCKER_HOST or --context at the right one"
	}
	return b
}

// lastCause is the innermost useful sentence of err on one line: people read one cause, not the road it took.
func lastCause(err error) string {
	text := err.Error()
	for _, prefix := range []string{"Error response from daemon: ", "error during connect: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.Join(strings.Fields(text), " ")
}
