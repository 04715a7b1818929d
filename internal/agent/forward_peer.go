//go:build linux

package agent

import (
	"context"
	"errors"
	"os"
	"reflect"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// peer is a connection to a port of the sandbox. It is made of system calls: package net would add a tenth to the agent's program, most of
// it for names that nobody looks up here.
type peer struct {
	*os.File
	raw syscall.RawConn
}

// connectPeer opens a connection. ctx gives it up.
func connectPeer(ctx context.Context, to unix.Sockaddr) (*peer, error) {
	family := unix.AF_INET
	if _, six := to.(*unix.SockaddrInet6); six {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	// What is sent is sent at once: it was gathered, or is awaited, on the other side of the host.
	err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err == nil {
		err = unix.Connect(fd, to)
	}
	file := os.NewFile(uintptr(fd), "peer")
	raw, rawErr := file.SyscallConn()
	p := &peer{file, raw}
	switch {
	case rawErr != nil:
		err = rawErr
	case errors.Is(err, unix.EINPROGRESS), errors.Is(err, unix.EINTR): // whoever listens is slow to accept
		err = p.await(ctx)
	}
	if err == nil && p.isSelf() {
		err = unix.ECONNREFUSED
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, err
	}
	return p, nil
}

// await waits until a connection stands.
func (p *peer) await(ctx context.Context) error {
	_ = p.SetWriteDeadline(time.Now().Add(connectLimit)) // deadlines fail only for a file that is closed
	stop := context.AfterFunc(ctx, func() { _ = p.SetWriteDeadline(past) })
	defer stop()
	var failed error
	err := p.raw.Write(func(fd uintptr) (done bool) {
		if errno, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err != nil || errno != 0 {
			failed = errors.Join(err, unix.Errno(errno))
			return true
		}
		_, err := unix.Getpeername(int(fd))
		return err == nil
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = unix.ETIMEDOUT
	}
	if stop(); err == nil {
		_ = p.SetWriteDeadline(time.Time{})
	}
	return errors.Join(failed, err)
}

// isSelf reports whether the socket was given the very port that it connects to, and so has connected to itself. That happens, rarely, when
// nobody listens.
func (p *peer) isSelf() (self bool) {
	_ = p.raw.Control(func(fd uintptr) {
		own, err := unix.Getsockname(int(fd))
		other, err2 := unix.Getpeername(int(fd))
		self = err == nil && err2 == nil && reflect.DeepEqual(own, other)
	})
	return self
}

// next waits for something to read and only then takes a buffer for it, at most of that many bytes. Nothing at all is the end.
func (p *peer) next(most int) (piece []byte, err error) {
	var failed error
	err = p.raw.Read(func(fd uintptr) (done bool) {
		buf := wire.Buffer()
		n := 0
		failed = again(func() (err error) { n, err = unix.Read(int(fd), buf[:most]); return err })
		if failed != nil {
			wire.Recycle(buf)
			return !errors.Is(failed, unix.EAGAIN)
		}
		piece = buf[:n]
		return true
	})
	if err != nil { // the deadline
		return nil, err
	}
	return piece, failed
}

// closeWrite ends one half.
func (p *peer) closeWrite() (err error) {
	return errors.Join(p.raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) }), err)
}

// breakOff makes Close tell the other side that not everything was said.
func (p *peer) breakOff() {
	_ = p.raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	})
}
