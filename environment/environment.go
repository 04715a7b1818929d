package environment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// State is what the engine says of a container.
type State int

// The states that lead to different next steps.
const (
	Running State = iota
	Paused
	Stopped // exists, and a start brings it back
	Gone
)

// Container is what an environment needs of the engine: one container, made and named by somebody else.
type Container interface {
	// Attach opens a stream to the agent inside. ctx bounds the opening only.
	Attach(ctx context.Context) (Stream, error)
	// State asks the engine.
	State(ctx context.Context) (State, error)
}

// Options are an environment's collaborators and facts. Container, Info and Account are required.
type Options struct {
	Container Container
	Info      contract.Info
	// Account is what commands run as when a request names nobody, as "name", "uid" or either with ":group".
	Account string
	// Home is the home that was assumed when the container was made; empty skips the comparison with the container's own answer.
	Home string
	// Cwd is the start directory as the host gave it, "" when it gave none.
	Cwd string
	// Version is this program's, for the agent's log.
	Version string
	// Looks says that the caller only looks: the agent counts him neither as somebody who is connected nor as a use of the sandbox.
	Looks bool
	// Prefix makes the exec_prefix argv of a container.
	Prefix func(containerID string) Prefix
	// Revive starts or makes the container again after it stopped or went away. nil means that is an error.
	Revive func(context.Context) (Container, contract.Info, error)
	// Release lets go of the container; see [contract.Environment]. nil does nothing.
	Release func(ctx context.Context, remove bool) error
}

// Environment implements [contract.Environment].
type Environment struct {
	opts Options

	others     others
	connecting sync.Mutex // held while (re)connecting: one at a time

	mu        sync.Mutex
	container Container
	info      contract.Info
	conn      *conn
	boot      string // of the agent that holds our shell state
	recreated bool   // not yet told to anyone
	start     string // where the first command starts unless it names a directory; "" after that command
	closed    bool
}

var _ contract.Environment = (*Environment)(nil)

// Connect opens the stream to the agent and asks the container for the account's home. ctx bounds the connecting.
func Connect(ctx context.Context, opts Options) (*Environment, error) {
	e := &Environment{opts: opts, container: opts.Container, info: opts.Info}
	e.connecting.Lock()
	defer e.connecting.Unlock()
	if err := e.connect(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// Info implements [contract.Environment].
func (e *Environment) Info() contract.Info {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info
}

// accountLimit bounds the question for the account right after the handshake.
const accountLimit = 10 * time.Second

// connect attaches to e.container and settles what depends on the connection. e.connecting is held.
func (e *Environment) connect(ctx context.Context) error {
	e.mu.Lock()
	container, info := e.container, e.info
	e.mu.Unlock()
	stream, err := container.Attach(ctx)
	if err != nil {
		return err
	}
	c, err := handshake(ctx, stream, e.opts.Version, e.opts.Looks)
	if err != nil {
		return err
	}
	account, err := e.account(ctx, c)
	if err != nil {
		c.close()
		return err
	}
	if _, hardened := container.(Divided); hardened {
		if err := confined(info.Name, account.Confinement); err != nil {
			c.close()
			return err
		}
	}
	info.Home = account.Home
	info.Cwd = contract.StartDirectory(e.opts.Cwd, account.Home)
	if _, fallback := contract.CommandDirectory(info.Cwd, account.Home); fallback != "" && account.UID != 0 {
		info.Cwd = fallback
	}
	info.TempDir = "/tmp"
	if t := account.Temp; strings.HasPrefix(t, "/") && len(t) <= maxPath && clean(t) == t {
		info.TempDir = t
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.boot != "" && e.boot != c.hello.Boot {
		e.recreated = true
	}
	if e.boot != c.hello.Boot && e.opts.Cwd != "" {
		e.start = info.Cwd
	}
	e.boot, e.conn, e.info = c.hello.Boot, c, info
	return nil
}

// account resolves the environment's account inside the container and holds the answer against what was assumed outside.
func (e *Environment) account(ctx context.Context, c *conn) (wire.Account, error) {
	ctx, cancel := context.WithTimeout(ctx, accountLimit)
	defer cancel()
	answer, err := c.query(ctx, wire.Query{Op: wire.OpAccount, User: e.opts.Account})
	if err != nil {
		return wire.Account{}, err
	}
	switch a := answer.Account; {
	case answer.Error != "" || a == nil:
		reason := fmt.Sprintf("the sandbox has no account %q", e.opts.Account)
		if said := clean(answer.Error); strings.HasPrefix(said, "the sandbox has no ") { // the agent's own sentence, which may be about the group
			reason = said
		} else if said != "" {
			reason += ": " + said
		}
		return wire.Account{}, &contract.BackendError{
			Reason: reason,
			Hint:   "choose a user of the image (--user, in Hermes terminal.backends.dockerbox.user), or a number; what is mounted over /etc hides the image's users",
		}
	case len(a.Home) == 0 || a.Home[0] != '/' || len(a.Home) > maxPath:
		return wire.Account{}, &contract.BackendError{
			Reason: fmt.Sprintf("the home of %q inside the sandbox is %q, not an absolute path", e.opts.Account, clean(a.Home)),
			Hint:   "correct the account's entry in the image's /etc/passwd",
		}
	case e.opts.Home != "" && a.Home != e.opts.Home:
		return wire.Account{}, &contract.BackendError{
			Reason: fmt.Sprintf("the home of %q is %s inside the sandbox, but its volume was mounted at %s", e.opts.Account, clean(a.Home), e.opts.Home),
			Hint:   "the image's /etc/passwd and the running container disagree; dockerbox up --recreate NAME",
		}
	default:
		return *a, nil
	}
}

// maxPath is Linux's PATH_MAX.
const maxPath = 4096

// live returns a usable connection, reconnecting, restarting or reviving the container when it must. The engine's state decides what
// to do, never anything a command printed.
func (e *Environment) live(ctx context.Context) (*conn, error) {
	if c, err := e.current(); c != nil || err != nil {
		return c, err
	}
	e.connecting.Lock()
	defer e.connecting.Unlock()
	if c, err := e.current(); c != nil || err != nil { // somebody else did it meanwhile
		return c, err
	}
	e.mu.Lock()
	container, name := e.container, e.info.Name
	e.mu.Unlock()
	state, err := container.State(ctx)
	if err != nil {
		return nil, err
	}
	switch state {
	case Running:
	case Paused:
		return nil, e.pausedError()
	default:
		if e.opts.Revive == nil {
			return nil, &contract.BackendError{
				Reason: fmt.Sprintf("the container of sandbox %q is not running any more", name),
				Hint:   "dockerbox up " + name + " starts it again",
			}
		}
		container, info, err := e.opts.Revive(ctx)
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		e.container, e.info, e.recreated, e.boot = container, info, true, ""
		e.mu.Unlock()
	}
	if err := e.connect(ctx); err != nil {
		return nil, err
	}
	return e.current()
}

func (e *Environment) pausedError() error {
	info := e.Info()
	return &contract.BackendError{
		Reason: fmt.Sprintf("sandbox %q is paused", info.Name),
		Hint:   fmt.Sprintf("dockerbox unpause %s lets it go on", info.Name),
	}
}

func (e *Environment) currentContainer() Container {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.container
}

// current returns the connection if it can be used, nil if it must be made anew.
func (e *Environment) current() (*conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, &contract.BackendError{
			Reason: fmt.Sprintf("this handle on sandbox %q was cleaned up", e.info.Name),
			Hint:   "create the environment again; the sandbox itself may still be there",
		}
	}
	if e.conn != nil && e.conn.alive() {
		return e.conn, nil
	}
	return nil, nil
}

// tellRecreated reports once that the container was replaced or restarted, and which container it is now.
func (e *Environment) tellRecreated() (recreated bool, containerID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	recreated, e.recreated = e.recreated, false
	return recreated, e.info.ContainerID
}

// takeStart returns where a command without a directory of its own starts if it is the first since the host chose one, else "".
func (e *Environment) takeStart() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	dir := e.start
	e.start = ""
	return dir
}

// ExecPrefix implements [contract.Environment]. It makes sure that the container runs: an argv into a dead one helps nobody.
func (e *Environment) ExecPrefix(ctx context.Context, user string, interactive bool) ([]string, error) {
	if user != "" && !contract.ValidUser(user) {
		return nil, &contract.BackendError{
			Reason: fmt.Sprintf("%q is not a user", clean(user)),
			Hint:   "a user is a name, or a number up to 2147483647, optionally followed by \":\" and a group",
		}
	}
	if _, err := e.live(ctx); err != nil {
		return nil, err
	}
	return e.opts.Prefix(e.Info().ContainerID).Argv(user, interactive)
}

// Cleanup implements [contract.Environment].
func (e *Environment) Cleanup(ctx context.Context, remove bool) error {
	e.connecting.Lock()
	defer e.connecting.Unlock()
	e.mu.Lock()
	c, closed := e.conn, e.closed
	e.conn, e.closed = nil, true
	e.mu.Unlock()
	if c != nil {
		c.close()
	}
	e.others.hangUp()
	if e.opts.Release == nil || closed && !remove {
		return nil
	}
	return e.opts.Release(ctx, remove)
}

// isLost reports whether err is the end of a connection.
func isLost(err error) bool { return errors.Is(err, errLost) }
