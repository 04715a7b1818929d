//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// attach hands stdin and stdout to this account's resident agent and waits until it lets go of them. A failure becomes a hello with the
// reason, so that the host hears it in its own language.
func attach(user string, toFirst bool, stdout, stderr io.Writer) int {
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		fmt.Fprintln(stderr, "dockerbox-agent: attach speaks frames, not text; it is for dockerbox, not for a terminal")
		return exitUsage
	}
	// Docker up to 20.10 starts root, in a container of another user, without the rights it gains by its exec, and the kernel then lets
	// nobody see which program this is. The resident, when it looks who lives here, has to know it for one of its own. A kernel that
	// refuses leaves things as they were.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	if err := hold(user, toFirst); err != nil {
		hello := wire.Hello{
			Name: wire.AgentName, Protocol: wire.Protocol, Version: Version, UID: os.Geteuid(),
			Error: "the resident agent cannot be had: " + err.Error(),
		}
		if err := wire.NewWriter(stdout).Write(wire.Encode(wire.TypeHello, 0, hello)); err != nil {
			fmt.Fprintln(stderr, "dockerbox-agent:", err)
		}
		return exitFailed
	}
	return 0
}

// attachLimit is how long finding or starting the resident may take. Attaches that come at the same moment find one another's; in the
// instant between a name being taken and being listened on there is nothing to wait for but time.
const (
	attachLimit = 10 * time.Second
	attachPause = 2 * time.Millisecond
)

// hold connects, passes the streams on, and returns nil when the resident has let go of them.
func hold(user string, toFirst bool) error {
	find, check, reach := socketName, checkPeer, connect
	if toFirst {
		find, check, reach = firstName, checkFirst, connectFirst
	}
	name, err := find()
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(attachLimit); ; {
		fd, err := reach(name)
		if err == nil {
			var taken bool
			if taken, err = hand(fd, user, check); taken {
				return err
			}
		}
		var final *finalError
		if errors.As(err, &final) {
			return final.err
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(attachPause)
	}
}

// finalError is a failure that trying again does not mend.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }

// connect returns a connection to the resident, starting one when there is none. Whoever gets the name listens on it at once and gives the
// listening socket to the new process, so that connecting works before that runs.
func connect(name string) (int, error) {
	fd, err := newSocket()
	if err != nil {
		return -1, err
	}
	address := &unix.SockaddrUnix{Name: name}
	err = unix.Connect(fd, address)
	if err == nil {
		return fd, nil
	}
	_ = unix.Close(fd)
	if !errors.Is(err, unix.ECONNREFUSED) {
		return -1, fmt.Errorf("connect to it: %w", err)
	}
	listener, err := newSocket()
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(listener) }()
	if err := unix.Bind(listener, address); err != nil {
		return -1, fmt.Errorf("take its name: %w", err) // another attach was faster
	}
	if err := unix.Listen(listener, backlog); err != nil {
		return -1, fmt.Errorf("listen: %w", err)
	}
	if err := startResident(listener); err != nil {
		return -1, &finalError{err}
	}
	if fd, err = newSocket(); err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, address); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("connect to it: %w", err)
	}
	return fd, nil
}

// backlog is how many attaches may wait to be accepted.
const backlog = 64

// residentSocket is where a resident finds its listening socket.
const residentSocket = 3

// startResident starts the process that outlives this one: a session of its own, no stream of ours, nothing of the working directory.
func startResident(listener int) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	_, err = syscall.ForkExec(selfPath, []string{"dockerbox-agent", "resident"}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Sys: &syscall.SysProcAttr{Setsid: true},
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), uintptr(listener)},
	})
	if err != nil {
		return fmt.Errorf("start it: %w", err)
	}
	return nil
}

// hand gives the streams to the resident on fd and waits until it closes. taken is false when it ended before it took them.
func hand(fd int, user string, check func(int) error) (taken bool, err error) {
	f := os.NewFile(uintptr(fd), "resident")
	defer f.Close()
	if err := check(fd); err != nil {
		return false, &finalError{err}
	}
	if err := sendStreams(fd, greeting{User: user}); err != nil {
		return false, err
	}
	b := make([]byte, 1)
	if _, err := io.ReadFull(f, b); err != nil {
		return false, fmt.Errorf("it ended at once: %w", err)
	}
	if b[0] != accepted {
		return false, &finalError{fmt.Errorf("it answered %q", strings.TrimSpace(string(b)))}
	}
	_, _ = f.Read(b) // it never sends more: this returns when it lets go, in whichever way
	return true, nil
}

// resident serves this account until the container stops.
func resident(stderr io.Writer) int { return serve(residentSocket, stderr) }

// serve takes attaches on a listening socket, which ends only by a failure.
func serve(listener int, stderr io.Writer) int {
	reserveThreads()
	log := journal{open: func() (io.WriteCloser, error) { return kept{stderr}, nil }}
	if ownContainer() { // a machine's own displays are its owner's business
		log.open = containerLog
		if err := keepHouse(systemHouse); err != nil {
			log.say("putting the container in order: %v", err) // no reason to run no commands; the verb housekeep says it to whoever asks
		}
	}
	a, err := New(os.Environ())
	if err == nil {
		a.journal = log
		log.say("version %s is ready", Version)
		go a.guardLimit()
		err = a.listen(listener)
	}
	fmt.Fprintln(stderr, "dockerbox-agent:", err)
	return exitFailed
}

// listen accepts attaches on a listening socket until that breaks.
func (a *Agent) listen(listener int) error {
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
			continue
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
			time.Sleep(attachPause) // what uses them up is going to end; there is no event for it
			continue
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		go a.welcome(fd)
	}
}

// welcome serves one attach. Its socket closing, because it was killed, ends the connection as the end of its stream does.
func (a *Agent) welcome(fd int) {
	check := checkPeer
	if isFirst.Load() {
		check = checkAttach
	}
	if check(fd) != nil {
		_ = unix.Close(fd)
		return
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(helloLimit / time.Second)})
	g, in, out, err := receiveStreams(fd)
	if err != nil {
		_ = unix.Close(fd)
		return
	}
	_ = unix.SetNonblock(fd, true)
	f := os.NewFile(uintptr(fd), "attach")
	if _, err := f.Write([]byte{accepted}); err != nil {
		closeAll([]*os.File{f, in, out})
		return
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = f.Read(make([]byte, 1)) // attach sends nothing more: it is gone, or Serve has returned
		_ = in.Close()
	}()
	_ = a.Serve(in, out, g.User) // the host knows why it ended, and nobody else is there to tell
	_ = f.Close()
	<-left
}
