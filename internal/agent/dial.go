//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// dial joins stdin and stdout to a listening socket of the sandbox: a screen's, or a port on the loopback. The end of either direction
// is passed on alone. It returns when the other side is gone for good, or when both directions are at their end; a peer on the
// loopback that is gone shows only at the next byte to it. What cannot be reached is one sentence on stderr and the status exitFailed.
func dial(network, address string, stderr io.Writer) int {
	target, err := dialTarget(network, address)
	if err != nil {
		fmt.Fprintln(stderr, "dockerbox-agent:", err)
		return exitUsage
	}
	if err := relay(target); err != nil {
		fmt.Fprintf(stderr, "dockerbox-agent: %s %s: %s\n", network, address, reason(err))
		return exitFailed
	}
	return 0
}

// dialTarget understands "unix PATH" and "tcp 127.0.0.1:PORT".
func dialTarget(network, address string) (unix.Sockaddr, error) {
	switch network {
	case "unix":
		const longest = len(unix.RawSockaddrUnix{}.Path) - 1
		if len(address) == 0 || len(address) > longest || address[0] != '/' {
			return nil, fmt.Errorf("%q is not the absolute path of a socket, which has at most %d bytes", address, longest)
		}
		return &unix.SockaddrUnix{Name: address}, nil
	case "tcp":
		to, err := ownPort(address)
		if err != nil {
			return nil, err
		}
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, nil
	default:
		return nil, fmt.Errorf("%q is neither unix nor tcp", network)
	}
}

// ownPort understands "127.0.0.1:PORT" and nothing else: what is forwarded is the sandbox's, and not whatever it can reach.
func ownPort(address string) (netip.AddrPort, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil || to.Addr() != netip.AddrFrom4([4]byte{127, 0, 0, 1}) || to.Port() == 0 {
		return to, fmt.Errorf("%.60q is not a port of this sandbox, such as 127.0.0.1:8080", address)
	}
	return to, nil
}

// relay connects and copies both ways. The descriptors block: each copy has a thread of its own, and the end of the process ends them.
func relay(target unix.Sockaddr) error {
	family := unix.AF_INET
	if _, local := target.(*unix.SockaddrUnix); local {
		family = unix.AF_UNIX
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := again(func() error { return unix.Connect(fd, target) }); err != nil {
		return err
	}
	in := make(chan error, 1)
	go func() {
		err := pour(fd, 0)
		if err == nil {
			err = unix.Shutdown(fd, unix.SHUT_WR)
		}
		in <- err
	}()
	if err := pour(1, fd); errors.Is(err, unix.EPIPE) {
		return nil // nobody listens to us any more
	} else if err != nil {
		return err
	}
	// Whoever reads stdout must see this end now, while input may go on.
	if err := unix.Close(1); err != nil {
		return err
	}
	gone := make(chan error, 1)
	go func() { gone <- untilGone(fd) }()
	select {
	case err = <-in:
	case err = <-gone:
	}
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.ENOTCONN) {
		return nil // it had said all it wanted to say before it left
	}
	return err
}

// pour copies from one descriptor to another until the end.
func pour(to, from int) error {
	buf := make([]byte, 64<<10)
	for {
		var n int
		err := again(func() (err error) { n, err = unix.Read(from, buf); return err })
		if err != nil {
			return os.NewSyscallError("read", err)
		}
		if n <= 0 {
			return nil
		}
		for rest := buf[:n]; len(rest) > 0; rest = rest[n:] {
			if err := again(func() (err error) { n, err = unix.Write(to, rest); return err }); err != nil {
				return os.NewSyscallError("write", err)
			}
		}
	}
}

// untilGone waits until the other side neither sends nor takes anything more. Half an end does not count.
func untilGone(fd int) error {
	wait := []unix.PollFd{{Fd: int32(fd)}} // no events: the kernel reports this one unasked
	return again(func() error { _, err := unix.Poll(wait, -1); return err })
}

// again repeats a call that a signal of Go's own scheduler interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
