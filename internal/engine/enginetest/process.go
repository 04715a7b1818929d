//go:build linux

package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// agentDir is where the provider mounts the agent's volume.
const agentDir = "/.dockerbox"

// Start implements the provider's engine. Instead of the entry point, which only keeps a container alive, it runs what that container's first
// attach would have started: the resident agent, listening on a socket of the container's own. A container with an entry point of another kind
// counts as running, with nothing in it.
func (e *Engine) Start(ctx context.Context, id string) error {
	if err := e.enter(ctx, OpStart); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.find(id)
	if !ok {
		return notFound("starting container %s: there is none", id)
	}
	if b.running() {
		return nil
	}
	b.started = time.Now()
	if len(b.config.Entrypoint) == 0 || b.config.Entrypoint[0] != agentDir+"/agent" {
		b.bare = true
		return nil
	}
	program, err := e.program(b)
	if err != nil {
		return err
	}
	if err := e.mount(b); err != nil {
		return err
	}
	return e.startAgent(b, program)
}

// program is the agent in the volume that the container mounts.
func (e *Engine) program(b *box) (string, error) {
	for _, m := range b.host.Mounts {
		if m.Target != agentDir {
			continue
		}
		file := e.path("volumes", m.Source, "agent")
		if _, err := os.Stat(file); err != nil {
			return "", failure(err, "starting container %s: exec %s/agent: no such file", short(b.id), agentDir)
		}
		return file, nil
	}
	return "", failure(nil, "starting container %s: nothing is mounted at %s", short(b.id), agentDir)
}

// startAgent starts the resident and writes down how others get in. e.mu is held.
func (e *Engine) startAgent(b *box, program string) error {
	listener, err := listen(e.socket(b))
	if err != nil {
		return err
	}
	defer listener.Close()
	log, err := os.OpenFile(e.log(b), os.O_CREATE|os.O_WRONLY|os.O_APPEND, private)
	if err != nil {
		return err
	}
	command := exec.Command(program, "resident")
	command.Dir, command.Env = "/", append(b.image.environ(), b.config.Env...)
	command.ExtraFiles = []*os.File{listener} // descriptor 3, where a resident looks for it
	command.Stderr = &stamped{w: log}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	e.starts <- func() { started <- command.Start() }
	if err := <-started; err != nil {
		return failure(errors.Join(err, log.Close()), "starting container %s: %v", short(b.id), err)
	}
	ended := make(chan struct{})
	b.agent, b.ended, b.paused = command, ended, false
	go func() { // ends with the agent, which Close ends
		defer close(ended)
		_ = command.Wait() // the status is in ProcessState
		_ = log.Close()
		b.end = time.Now()
	}()
	return e.writeEntrance(b)
}

func (e *Engine) socket(b *box) string { return e.path("c", short(b.id), "agent") }

// listen makes the socket a resident is given. The resident waits in accept, so the socket blocks, which net's do not.
func listen(file string) (*os.File, error) {
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) { // of an earlier start
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), file)
	const backlog = 64
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: file}); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("bind %s: %w", file, err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("listen on %s: %w", file, err)
	}
	return f, nil
}

// Stop ends all processes of a container at once. It stays, and can be started again.
func (e *Engine) Stop(id string) error {
	e.mu.Lock()
	b, ok := e.find(id)
	if !ok || !b.running() {
		e.mu.Unlock()
		return nil
	}
	for s := range b.streams {
		s.hangUp() // first, or the host would hear of commands that were killed rather than of a container that ended
	}
	b.paused = false
	if b.bare {
		b.bare = false
		e.mu.Unlock()
		return nil
	}
	agent, ended, entrance := b.agent.Process, b.ended, e.entrance(b)
	e.mu.Unlock()
	if err := os.Remove(entrance); err != nil && !os.IsNotExist(err) {
		return err
	}
	return endTree(agent, ended)
}

// Pause stops a container's agent, as the freezer does all of a container, or lets it go on.
func (e *Engine) Pause(id string, paused bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.find(id)
	if !ok || !b.running() {
		return failure(nil, "container %s does not run", id)
	}
	b.paused = paused
	sig := unix.SIGCONT
	if paused {
		sig = unix.SIGSTOP
	}
	return unix.Kill(b.agent.Process.Pid, sig)
}
