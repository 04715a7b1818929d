//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// run is one command of a connection, from its Run frame to its Exit.
type run struct {
	conn *conn
	id   uint32
	req  wire.Run
	out  *output
	in   *input // nil without standard input
	// terminal is nil for a command with pipes.
	terminal *terminal

	child *child // what was started for it last; used by serve's goroutine alone

	killOnce sync.Once
	killed   chan struct{} // closed when the host wants the tree dead, the time is up, or the host is gone
}

func newRun(c *conn, id uint32, req wire.Run) *run {
	r := &run{conn: c, id: id, req: req, out: newOutput(id, c.w, c.way), terminal: newTerminal(req.Terminal), killed: make(chan struct{})}
	if req.Stdin {
		r.in = newInput(id, c.w)
	}
	return r
}

// kill implements [served]: it asks for the end of the whole tree.
func (r *run) kill() { r.killOnce.Do(func() { close(r.killed) }) }

// flows implements [served].
func (r *run) flows() (*output, *input) { return r.out, r.in }

// serve implements [served]: it runs the command and sends its Exit. Order of the end: the main process is collected; if it was killed, its tree is dead; its
// output is out; its input is closed and will grant nothing more; the Exit is sent; only then is the next shell warmed up, because
// that would take time from the command. A connection that ended makes every wait here end.
func (r *run) serve() {
	defer func() {
		if p := recover(); p != nil { // a fault in one command is no reason to end the others
			if r.child != nil {
				r.child.kill(0)
			}
			r.finish(failure(fmt.Errorf("the agent failed: %v\n%s", p, debug.Stack())))
		}
	}()
	if r.req.TimeoutMS > 0 {
		timer := time.AfterFunc(time.Duration(r.req.TimeoutMS)*time.Millisecond, r.kill)
		defer timer.Stop()
	}
	r.out.visit = r.conn.agent.courtesy.begin()
	defer r.out.visit.over()
	exit, after := r.execute()
	r.finish(exit)
	r.out.visit.over() // what is still done for it is no company
	if after != nil {
		after()
	}
}

func (r *run) finish(x wire.Exit) {
	if r.in != nil {
		r.in.close()
	}
	if len(x.Text) > maxText {
		x.Text = x.Text[:maxText]
	}
	r.conn.forget(r.id)
	r.out.finish(wire.Encode(wire.TypeExit, r.id, x))
}

// failure is the Exit of a command that did not start because of err.
func failure(err error) wire.Exit {
	var r *refusal
	if errors.As(err, &r) {
		return wire.Exit{Reason: r.reason, Text: r.text}
	}
	return wire.Exit{Reason: wire.ReasonInternal, Text: err.Error()}
}

// execute runs the command to its end. after, when set, is to be called once the Exit is sent.
func (r *run) execute() (x wire.Exit, after func()) {
	if err := validate(r.req); err != nil {
		return failure(err), nil
	}
	if r.req.User == "" {
		r.req.User = r.conn.user
	}
	acc, id, err := r.conn.agent.account(r.req.User)
	if err != nil {
		return failure(err), nil
	}
	select {
	case <-acc.ready:
	case <-r.killed:
		return wire.Exit{Signal: int(syscall.SIGTERM), Killed: true}, nil
	}
	if len(r.req.Argv) > 0 {
		return r.program(acc, id), nil
	}
	return r.shell(acc, id)
}

// validate refuses what no command can be. Names of variables become shell text, so they must be names.
func validate(req wire.Run) error {
	if (len(req.Shell) > 0) == (len(req.Argv) > 0) {
		return errors.New("a command has either a text or words")
	}
	if req.Terminal != nil && (len(req.Shell) > 0 || req.Split) {
		return errors.New("a terminal is for words, and has one stream")
	}
	if strings.ContainsRune(string(req.Shell), 0) {
		return errors.New("the command's text holds a NUL byte, which no shell can run")
	}
	for _, word := range req.Argv {
		if strings.ContainsRune(string(word), 0) {
			return errors.New("a word of the command holds a NUL byte, which no program can be given")
		}
	}
	for name, value := range req.Env {
		if !isName(name) {
			return fmt.Errorf("%.60q is not the name of a variable", name)
		}
		if strings.ContainsRune(string(value), 0) {
			return fmt.Errorf("the value of %s holds a NUL byte, which no variable can", name)
		}
	}
	if strings.ContainsRune(string(req.Fallback), 0) {
		return &refusal{wire.ReasonDirectory, "the fallback directory holds a NUL byte"}
	}
	return nil
}

// directory completes the wanted directory and its fallback.
func (r *run) directory(id identity, whenEmpty string) (dir, fallback string, err error) {
	dir, ok := id.expand(string(r.req.Dir), whenEmpty)
	if !ok {
		return "", "", &refusal{wire.ReasonDirectory, fmt.Sprintf("%q is not an absolute path", r.req.Dir)}
	}
	if len(r.req.Fallback) > 0 {
		if fallback, ok = id.expand(string(r.req.Fallback), ""); !ok {
			return "", "", &refusal{wire.ReasonDirectory, fmt.Sprintf("%q is not an absolute path", r.req.Fallback)}
		}
	}
	return dir, fallback, nil
}

// shell runs a text with lasting state.
func (r *run) shell(acc *account, id identity) (wire.Exit, func()) {
	now, cwd, oldpwd := acc.entry()
	dir, fallback, err := r.directory(id, cwd)
	if err != nil {
		return failure(err), nil
	}
	j := job{
		input: r.in != nil, dir: dir, how: acc.how(dir), fallback: fallback, oldpwd: oldpwd,
		env: make(map[string]string, len(r.req.Env)), text: string(r.req.Shell),
	}
	for name, value := range r.req.Env {
		j.env[name] = string(value)
	}
	// A waiting shell can be ended by whoever may; then another takes its place, once.
	for attempt := 0; ; attempt++ {
		r.noteRelief()
		sh, err := acc.shell(id, now, r.req.Split)
		if errors.Is(err, unix.EAGAIN) && attempt == 0 && r.conn.agent.relieve() {
			continue
		}
		if err != nil {
			return failure(err), nil
		}
		runErr := sh.run(j)
		x, rep := r.wait(&sh.child, now)
		begun := sh.begun()
		sh.close()
		rep.doubt(begun, x.Code)
		if no := rep.refusedBecause(dir); no != nil {
			return *no, acc.prewarm
		}
		if !begun && !x.Killed {
			if attempt == 0 && (r.in == nil || r.in.reopen()) {
				continue
			}
			return failure(fmt.Errorf("bash ended before it read the command (%s): %w", describe(x), orUnknown(runErr))), nil
		}
		x.Cwd = []byte(acc.learn(rep, dir, oldpwd, now, passing{r.req.Env, r.req.Transient}))
		return x, acc.prewarm
	}
}

// noteRelief tells, once, what happened to jobs of earlier commands.
func (r *run) noteRelief() {
	if n := r.conn.agent.relieved.Swap(0); n > 0 {
		r.out.say(r.req.Split, fmt.Sprintf("dockerbox: ended %d processes that an earlier command left behind: the sandbox's limit of processes was reached\n", n))
	}
}

func describe(x wire.Exit) string {
	if x.Signal != 0 {
		return "signal " + strconv.Itoa(x.Signal)
	}
	return "status " + strconv.Itoa(x.Code)
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("no reason is known")
	}
	return err
}

// program runs words without a shell and without lasting state.
func (r *run) program(acc *account, id identity) wire.Exit {
	acc.mu.Lock()
	base := acc.base
	acc.mu.Unlock()
	dir, fallback, err := r.directory(id, id.home)
	if err != nil {
		return failure(err)
	}
	c, err := newProgram(id, base, r, dir, acc.how(dir), fallback)
	if err != nil {
		return failure(err)
	}
	x, rep := r.wait(c, base)
	c.close()
	if no := rep.refusedBecause(dir); no != nil {
		return *no
	}
	return x
}

// wait carries a started command to the end of its output.
func (r *run) wait(c *child, before *snapshot) (wire.Exit, report) {
	r.child = c
	r.out.start()
	status := collect(c.status)
	fed := make(chan struct{})
	if r.in != nil {
		var to io.WriteCloser = c.stdin
		if c.terminal {
			to = &typist{f: c.stdin, out: r.out}
		}
		go func() { defer close(fed); r.in.feed(to) }()
	} else {
		_ = c.stdin.Close() // nothing was written
		close(fed)
	}
	var ended struct{ out, err bool }
	pumps := make(chan struct{})
	go func() {
		defer close(pumps)
		var both sync.WaitGroup
		both.Go(func() { ended.out = r.out.pump(c.stdout, wire.TypeOutput) })
		if c.stderr != nil {
			both.Go(func() { ended.err = r.out.pump(c.stderr, wire.TypeErrors) })
		}
		both.Wait()
	}()

	x := wire.Exit{}
	select {
	case <-c.done:
	case <-r.killed:
		x.Killed = c.kill(killGrace)
		if c.survived {
			r.conn.agent.journal.say("processes of a command that was to end did not end within %s: they wait for a device or belong to another account", killLimit)
		}
		<-c.done
	}
	if x.Code = c.process.status.ExitStatus(); c.process.status.Signaled() {
		x.Code, x.Signal = 0, int(c.process.status.Signal())
	}
	rep, err := parseReport(status.finish(), before)
	if err != nil {
		rep.states = nil // something else wrote there: nothing of it is believed
	}
	r.out.settle(pumps, r.conn.gone, r.killed, remain(r.out, c.stdout, c.stderr))

	r.out.stop()
	if r.in != nil {
		r.in.close()
		_ = c.stdin.Close() // ends a write under way
	}
	for _, f := range []*os.File{c.stdout, c.stderr} {
		if f != nil {
			_ = f.SetReadDeadline(past) // ends a read under way; fails for a closed file, which is at its end
		}
	}
	<-fed
	<-pumps
	if !ended.out {
		r.conn.agent.leave(c.stdout)
		c.stdout = nil
	}
	if c.stderr != nil && !ended.err {
		r.conn.agent.leave(c.stderr)
		c.stderr = nil
	}
	return x, rep
}

// doubt takes out of a shell's report what only the command itself can have put there: it too can write to the descriptor, and could make
// its own failure look like the sandbox's.
func (rep *report) doubt(begun bool, status int) {
	if begun {
		rep.failed = [2]string{}
	}
	if status != exitNotExecutable || len(rep.states) > 0 {
		rep.refused = ""
	}
}

// maxText bounds a sentence to the host, in bytes. A frame that is too long would cost the connection, and with it everybody's commands.
const maxText = 8 << 10

// refusedBecause is the Exit of a command that reported why it did not start, nil of any other.
func (rep report) refusedBecause(dir string) *wire.Exit {
	switch {
	case rep.failed[0] != "":
		return &wire.Exit{Reason: rep.failed[0], Text: rep.failed[1]}
	case rep.refused != "":
		return &wire.Exit{Reason: wire.ReasonDirectory, Text: dir + ": " + rep.refused}
	}
	return nil
}
