package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

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

const hintObjects = "docker ps -a shows what there is"

// explain turns an error of the Docker client into a sentence about what was tried, keeping its kind for errors.Is.
func (e *Engine) explain(did string, err error) error { return e.explainBy(refusals, did, err) }

// explainBy is explain with what daemons are known to say there.
func (e *Engine) explainBy(table []refusal, did string, err error) error {
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
	case client.IsErrConnectionFailed(err), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT), cutOff(err):
		return e.unreachable(did, err)
	}
	b := &contract.BackendError{Err: err}
	hint := "the daemon refused it; its log has more (journalctl -u docker, or the log file setup-docker named)"
	switch {
	case errdefs.IsNotFound(err):
		b.Err, hint = errors.Join(ErrNotFound, err), hintObjects
	case errdefs.IsConflict(err), strings.Contains(err.Error(), "is marked for removal"): // which daemons call a fault of theirs
		b.Err, hint = errors.Join(ErrConflict, err), "docker ps -a shows what is in the way"
	case errdefs.IsInvalidArgument(err):
		hint = "the daemon does not take that: correct what it names"
	}
	var ok bool
	if b.Reason, b.Hint, ok = known(table, did, err.Error()); !ok {
		b.Reason, b.Hint = did+": "+Cause(err.Error()), hint
	}
	return b
}

// unreachable explains a connection that was not made, or that ended before the answer. The client tells the cause only of what is not
// simply refused.
func (e *Engine) unreachable(did string, err error) error {
	b := &contract.BackendError{
		Reason: "the docker daemon at " + e.target.host + " does not answer",
		Hint:   "start it (systemctl start docker, or make docker in the repository), or point DOCKER_HOST or --context at the right one",
		Err:    errors.Join(ErrUnreachable, err),
	}
	scheme, _, _ := strings.Cut(e.target.host, "://")
	switch scheme {
	case "unix":
	case "ssh":
		b.Hint = "see whether " + sshLine(e.target.host) + " works, or point DOCKER_HOST or --context at the right one"
	default:
		b.Hint = "see whether docker --host " + e.target.host + " version works, or point DOCKER_HOST or --context at the right one"
	}
	var (
		failed *url.Error
		lookup *net.DNSError
		text   = err.Error()
	)
	_, said, ssh := strings.Cut(text, "stderr=") // what stands before is the command line
	switch {
	case scheme == "ssh" && errors.Is(err, exec.ErrNotFound):
		b.Reason = "the docker daemon at " + e.target.host + " needs the program ssh, which is not on PATH"
		b.Hint = "install an ssh client, or point DOCKER_HOST or --context at the right daemon"
	case ssh && said != "":
		b.Reason = fmt.Sprintf("the docker daemon at %s cannot be reached; ssh says %q", e.target.host, oneLine(said))
	case scheme == "ssh" && (ssh || cutOff(err) || errors.Is(err, os.ErrClosed)): // it may end before anybody reads what it says
		b.Reason = "the docker daemon at " + e.target.host + " cannot be reached: ssh ended at once"
	case errors.As(err, &lookup):
		b.Reason = fmt.Sprintf("there is no machine of the name %s, where the docker daemon should be", lookup.Name)
	case strings.Contains(text, "malformed HTTP"), strings.Contains(text, "gave HTTP response to HTTPS client"):
		return e.stranger(err)
	case certificates.MatchString(text):
		b.Reason = "the docker daemon at " + e.target.host + " and dockerbox do not trust each other's certificates"
		b.Hint = "set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH to the directory with the ca.pem, cert.pem and key.pem of that daemon"
	case cutOff(err):
		b.Reason = "the docker daemon at " + e.target.host + " went away: " + did + " was cut off"
		b.Hint = "see whether docker ps answers and what the daemon's log says, then try again"
	case errors.As(err, &failed):
		b.Reason += ": " + Cause(failed.Err.Error())
	}
	return b
}

// cutOff reports whether err is the end of a connection in the middle of an answer.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "server closed idle connection") // net/http has no value for it
}

var certificates = regexp.MustCompile(`x509: |tls: `)

// stranger explains an address where something answers that is no daemon.
func (e *Engine) stranger(err error) error {
	return &contract.BackendError{
		Reason: "what answers at " + e.target.host + " is not a docker daemon that speaks plain HTTP there",
		Hint:   "correct the address (DOCKER_HOST, --host or --context); for a daemon with TLS set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH", Err: errors.Join(ErrUnreachable, err),
	}
}

// silent explains a daemon that takes connections and does not answer.
func (e *Engine) silent(after time.Duration, err error) error {
	return &contract.BackendError{
		Reason: fmt.Sprintf("the docker daemon at %s has not answered within %s", e.target.host, after.Round(100*time.Millisecond)),
		Hint:   "see whether docker ps answers; restart the daemon if it does not, or correct its address (DOCKER_HOST, --host or --context)", Err: errors.Join(ErrUnreachable, err),
	}
}

// sshLine is what people type to try the way that an ssh address goes.
func sshLine(host string) string {
	u, err := url.Parse(host)
	if err != nil {
		return "ssh"
	}
	line := "ssh "
	if port := u.Port(); port != "" {
		line += "-p " + port + " "
	}
	if name := u.User.Username(); name != "" {
		line += name + "@"
	}
	return line + u.Hostname() + " docker version"
}

// oneLine is text without line ends and doubled blanks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
