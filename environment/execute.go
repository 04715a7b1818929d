package environment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// agentGrace is how much longer than the host's deadline the agent's own is: the host comes first unless it died.
const agentGrace = time.Second

// Execute implements [contract.Environment].
//
// Standard input is not waited for: a Read that blocks cannot be ended from here, so the goroutine that copies it may outlive the
// call until its reader returns. Whoever supplies a blocking Stdin closes it after Execute.
func (e *Environment) Execute(ctx context.Context, req contract.Request) (contract.Result, error) {
	if req.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.Timeout, contract.ErrTimedOut)
		defer cancel()
	}
	run, refusal, err := e.plan(req)
	if err != nil {
		return contract.Result{}, err
	}
	began := time.Now()
	sink := newSink(req)
	var exit wire.Exit
	if refusal != "" {
		exit = wire.Exit{Reason: wire.ReasonDirectory, Text: refusal}
	} else if exit, err = e.run(ctx, run, req, sink); err != nil {
		return contract.Result{}, err
	}
	result, err := conclude(exit, sink)
	if err != nil {
		return result, err
	}
	if exit.Killed {
		cause := context.Cause(ctx)
		if cause == nil { // the agent's own deadline, which only a time-out sets
			cause = contract.ErrTimedOut
		}
		result = contract.Killed(result, cause, req.Timeout)
		if req.Stdout != nil {
			result.Output = nil // the stream's reader has the flags to say it in its own words
		}
	}
	result.Recreated, result.ContainerID = e.tellRecreated()
	result.Duration = time.Since(began)
	return result, nil
}

// plan turns a request into the agent's terms. refusal, when set, is why the directory cannot even be tried.
func (e *Environment) plan(req contract.Request) (run wire.Run, refusal string, err error) {
	if (req.Command == "") == (len(req.Argv) == 0) {
		return run, "", &contract.BackendError{
			Reason: "a request has either a command or an argv",
			Hint:   "this is a fault in the caller, not in the sandbox",
		}
	}
	if err := checkTerminal(req); err != nil {
		return run, "", err
	}
	for name, value := range req.Env {
		if strings.ContainsRune(name+value, 0) || name == "" || strings.ContainsRune(name, '=') {
			return run, "", &contract.BackendError{
				Reason: fmt.Sprintf("%q cannot be a variable: a name has no \"=\" and neither name nor value a NUL", clean(name)),
				Hint:   "leave it out of the variables for this command",
			}
		}
	}
	info := e.Info()
	dir := req.Dir
	if dir != "" && dir != contract.HomeDirectory && !strings.HasPrefix(dir, "~/") && !strings.HasPrefix(dir, "/") {
		return run, fmt.Sprintf("%s: not an absolute path inside the sandbox", clean(dir)), nil
	}
	fallback := ""
	if req.Command != "" { // no host sends an argv: a person who names /root means it
		dir, fallback = contract.CommandDirectory(dir, info.Home)
	}
	if req.FallbackDir != "" {
		fallback = req.FallbackDir
	}
	if req.Command != "" && req.User == "" {
		// Taken by the first command, wherever that runs: what it leaves behind is the lasting directory.
		if start := e.takeStart(); dir == "" && start != "" {
			dir, fallback = start, info.Home
		}
	}
	run = wire.Run{
		User: req.User, Dir: []byte(dir), Fallback: []byte(fallback),
		Stdin: req.Stdin != nil, Split: req.Stderr != nil, Transient: req.Transient,
	}
	if run.User == "" {
		run.User = e.opts.Account
	}
	if req.Terminal != nil {
		size := terminalSize(req.Terminal.Size)
		run.Terminal, run.Split = &size, false
	}
	if req.Command != "" {
		run.Shell = []byte(req.Command)
	}
	for _, word := range req.Argv {
		run.Argv = append(run.Argv, []byte(word))
	}
	if len(req.Env) > 0 {
		run.Env = make(map[string][]byte, len(req.Env))
		for name, value := range req.Env {
			run.Env[name] = []byte(value)
		}
	}
	if req.Timeout > 0 {
		run.TimeoutMS = (req.Timeout + agentGrace).Milliseconds()
	}
	return run, "", nil
}

// run sends the command and sees it through to its exit. A connection found dead before anything was sent is made anew once: the
// command had not started. After that a broken connection is an error, for the command may have run in part.
func (e *Environment) run(ctx context.Context, run wire.Run, req contract.Request, sink *sink) (wire.Exit, error) {
	for attempt := 0; ; attempt++ {
		c, err := e.liveAs(ctx, run.User)
		if err == nil {
			err = c.offers(run)
		}
		if err != nil {
			return wire.Exit{}, err
		}
		k := newCall()
		if sent, err := c.open(k, run); !sent {
			if attempt == 0 && isLost(err) {
				continue
			}
			return wire.Exit{}, err
		}
		// The kill goes out at once, even while a slow consumer holds up the loop in follow.
		stop := context.AfterFunc(ctx, func() {
			_ = c.out.Write(wire.Frame{Type: wire.TypeKill, ID: k.id}) // a broken stream ends the call anyway
		})
		if req.Stdin != nil {
			go k.feed(c.out, req.Stdin) // ends by itself: see Execute
		}
		still := func() {}
		if req.Terminal != nil && req.Terminal.Resize != nil {
			still = k.resize(c.out, req.Terminal.Resize)
		}
		exit, err := c.follow(ctx, k, sink, e.paused)
		still()
		stop()
		if isLost(err) {
			err = e.explainLoss(ctx, err)
		}
		return exit, err
	}
}

// askLimit bounds a question to the engine on behalf of a command that is in trouble; its own context may be over.
const askLimit = 5 * time.Second

// paused reports whether the engine says that the container is paused.
func (e *Environment) paused(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	state, err := e.currentContainer().State(ctx)
	return err == nil && state == Paused
}

// A container that is ending loses its streams before the engine says that it has ended. There is nothing to wait for but time.
const (
	endingLimit = 500 * time.Millisecond
	endingPause = 20 * time.Millisecond
)

// explainLoss says why a connection was lost, when the engine knows better than the stream does.
func (e *Environment) explainLoss(ctx context.Context, lost error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	name := e.Info().Name
	state, err := e.currentContainer().State(ctx)
	ended := errors.Is(lost, io.EOF) || errors.Is(lost, io.ErrUnexpectedEOF) // and was not given up from here
	for late := time.Now().Add(endingLimit); ended && err == nil && state == Running && time.Now().Before(late); {
		time.Sleep(endingPause)
		state, err = e.currentContainer().State(ctx)
	}
	switch {
	case err != nil: // the daemon itself is in trouble, and says how
		return err
	case state == Paused:
		return e.pausedError()
	case state == Running:
		return lost
	default:
		return &contract.BackendError{
			Reason: fmt.Sprintf("the container of sandbox %q went away while a command was running", name),
			Hint:   "the next command starts it again; look at what this one did before you repeat it", Err: errLost,
		}
	}
}

// follow passes output on until the call is over. It owns the consumer side of k: only this goroutine takes from it. The order is
// fixed: all output, then the exit.
// stalled is asked when the agent owes a sign of life: whether there is no hope of one.
func (c *conn) follow(ctx context.Context, k *call, sink *sink, stalled func(context.Context) bool) (wire.Exit, error) {
	tick := time.NewTimer(pingEvery)
	defer tick.Stop()
	var (
		pong    <-chan wire.Answer
		pinged  time.Time
		killed  = ctx.Done()
		dead    <-chan time.Time // when a kill has taken too long
		sinkErr error            // once set, output is dropped so that the tree can end
	)
	for {
		pieces, over := k.take()
		if len(pieces) > 0 {
			if sinkErr == nil {
				if sinkErr = sink.write(pieces); sinkErr != nil {
					_ = c.out.Write(wire.Frame{Type: wire.TypeKill, ID: k.id}) // a broken stream ends the call anyway
				}
			}
			if n := k.consumed(pieces); n > 0 {
				_ = c.out.Write(wire.Credit(k.id, n)) // as above
			}
		}
		if over {
			return k.exit, k.fault(sinkErr)
		}
		select {
		case <-k.wake:
		case <-killed:
			killed = nil
			dead = time.After(killLimit)
		case <-dead:
			c.fail(fmt.Errorf("the agent did not end the command within %s", killLimit))
			dead = nil
		case <-pong:
			pong = nil
		case <-tick.C:
			switch {
			case pong == nil:
				pong, pinged = c.ask(wire.Query{Op: wire.OpPing}), time.Now()
			case time.Since(pinged) > pingLimit || stalled(ctx):
				c.fail(errSilent)
			}
			tick.Reset(pingEvery)
		}
	}
}

// fault is what went wrong around a command that is over, nil when nothing did. sink is the error of whoever took its output.
func (k *call) fault(sink error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.err != nil:
		return k.err
	case sink != nil:
		return undelivered(sink)
	case k.input != nil:
		return &contract.BackendError{
			Reason: "standard input could not be read: " + clean(because(k.input)),
			Hint:   "the command saw the end of its input there", Err: k.input,
		}
	default:
		return nil
	}
}

// undelivered explains output that whoever asked for it did not take.
func undelivered(err error) error {
	return &contract.BackendError{
		Reason: "output could not be passed on: " + clean(because(err)),
		Hint:   "the command was ended; see where standard output goes: a full disk, a device, a program that ended", Err: err,
	}
}

// because is why a file could not be used, without the system call and the name of what the message is about anyway.
func because(err error) string {
	var file *fs.PathError
	if errors.As(err, &file) {
		return file.Err.Error()
	}
	return err.Error()
}

// conclude maps how the agent says a command ended onto the contract's result.
func conclude(x wire.Exit, sink *sink) (contract.Result, error) {
	r := contract.Result{ExitCode: possible(x.Code), Cwd: string(x.Cwd)}
	if len(x.Cwd) > maxPath || len(x.Cwd) > 0 && x.Cwd[0] != '/' {
		r.Cwd = "" // not a directory anybody could have entered
	}
	if x.Signal > 0 {
		r.ExitCode = possible(contract.Signalled(possible(x.Signal)))
	}
	var failure contract.StartFailure
	switch x.Reason {
	case "":
	case wire.ReasonDirectory:
		failure = contract.BadDirectory
	case wire.ReasonNotExecutable:
		failure = contract.NotExecutable
	case wire.ReasonNotFound:
		failure = contract.NotFound
	case wire.ReasonUser:
		return r, &contract.BackendError{Reason: clean(x.Text), Hint: "choose a user of the sandbox with --user, or a number"}
	default:
		if strings.Contains(x.Text, "argument list too long") {
			return r, &contract.BackendError{
				Reason: "the command's arguments and variables are larger than the kernel takes",
				Hint:   "one of them may have 128 KiB; give what is larger over standard input or in a file",
			}
		}
		return r, &contract.BackendError{
			Reason: "the agent in the sandbox could not start the command: " + clean(x.Text),
			Hint:   "shell commands need bash in the image, no mount that hides it, and room under --memory and --pids; dockerbox up --recreate changes these and keeps the home",
		}
	}
	if failure != contract.Started {
		r.ExitCode = failure.Status()
		if err := sink.complain("dockerbox: " + clean(x.Text) + "\n"); err != nil {
			return r, undelivered(err)
		}
	}
	r.Output, r.Dropped = sink.captured()
	return r, nil
}

// possible keeps what an agent says within what a process on Linux can end with; what is not is a failure.
func possible(status int) int {
	const last = 255
	if status < 0 || status > last {
		return last
	}
	return status
}
