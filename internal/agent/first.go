//go:build linux

package agent

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// In a hardened sandbox nobody has capabilities, so the agent cannot become the account of a command: it has to run as that account from the
// start. But whoever has the same number may signal it, and kill -9 -1 reaches everything of one's own. (Measured: an agent that a docker
// exec had started as the account was gone after that, its shell state with it, and its socket's name free for whoever took it.)
//
// The kernel shields one process of any number: the first of the container takes no signal from inside that it has no handler for, not even
// KILL and STOP. So the agent is the first process. It is there before anything of the account runs, which gives it its name, and its number 1
// is what the other side knows it by: nobody can be it. It is not dumpable, which keeps others of its own number out of its memory, its
// descriptors and its environment.
//
// An attach has to be in the container too. It runs as an account of its own, wire.AttachUID, which nobody inside can signal, trace, or become;
// that number is what the agent knows it by.
//
// The kernel would also let the account set the agent's resource limits, and a limit of processor time ends even a first process. A hardened
// sandbox's system calls leave everybody his own limits alone; see package image.
//
// Accounts other than the sandbox's own, which only whoever is outside can use, have residents started by docker exec. Those they can end: then
// the next command of that account begins anew and says so.

// isFirst is set in an agent that is its container's first process.
var isFirst atomic.Bool

// isGuest reports whether this is the agent of another account than that of a container whose first process is an agent, too. That one counts
// what lives there, and cannot tell a shell of ours that waits from one that works, so none waits.
var isGuest = sync.OnceValue(func() bool { return os.Getpid() != 1 && ownContainer() && firstIs("first") })

// first serves the account until the container stops, as its first process.
func first(stderr io.Writer) int {
	if err := shield(); err != nil {
		fmt.Fprintln(stderr, "dockerbox-agent:", err)
		return exitFailed
	}
	isFirst.Store(true)
	name, err := firstName()
	if err == nil {
		var listener int
		if listener, err = takeName(name); err == nil {
			return serve(listener, stderr)
		}
	}
	fmt.Fprintln(stderr, "dockerbox-agent:", err)
	return exitFailed
}

// shield makes this process deaf and opaque to others of its account. Signals are caught and dropped rather than ignored, because commands
// would inherit that they are; SIGURG is the runtime's own, and those few that it cannot catch have no handler. Of the death of a child that nobody waits for the reaper is told.
func shield() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close its memory to others: %w", err)
	}
	const last = 64
	var dropped []os.Signal
	for n := syscall.Signal(1); n <= last; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGURG, syscall.SIGCHLD:
		default:
			dropped = append(dropped, n)
		}
	}
	signal.Notify(make(chan os.Signal, 1), dropped...)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() { // for as long as the process lives
		for range ended {
			children.collect()
		}
	}()
	return nil
}

// firstName is the name that the first process of this container listens on. The container is in it, because network namespaces, and with
// them such names, can be shared.
func firstName() (string, error) {
	space, err := pidSpace()
	return "@dockerbox-agent/first/" + space, err
}

func pidSpace() (string, error) {
	space, err := os.Readlink("/proc/self/ns/pid")
	return strings.Trim(strings.TrimPrefix(space, "pid:"), "[]"), err
}

// takeName makes a listening socket of that name.
func takeName(name string) (int, error) {
	listener, err := newSocket()
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(listener, &unix.SockaddrUnix{Name: name}); err == nil {
		err = unix.Listen(listener, backlog)
	}
	if err != nil {
		_ = unix.Close(listener)
		return -1, fmt.Errorf("take its name: %w", err)
	}
	return listener, nil
}

// connectFirst returns a connection to the container's first process, which may be about to start listening.
func connectFirst(name string) (int, error) {
	fd, err := newSocket()
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("connect to the first process: %w", err)
	}
	return fd, nil
}

// checkFirst makes sure that the other side of fd is the first process.
func checkFirst(fd int) error {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return fmt.Errorf("who the other side is: %w", err)
	}
	if peer.Pid != 1 {
		return fmt.Errorf("process %d of user %d has taken the name of the first process", peer.Pid, peer.Uid)
	}
	return nil
}

// checkAttach makes sure that the other side of fd is an attach.
func checkAttach(fd int) error {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return fmt.Errorf("who the other side is: %w", err)
	}
	if peer.Uid != wire.AttachUID {
		return fmt.Errorf("user %d is no attach", peer.Uid)
	}
	return nil
}
