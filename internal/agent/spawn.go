//go:build linux

package agent

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// selfPath is this very binary. Through it a child can execute the shim even where its account may not walk the binary's path.
const selfPath = "/proc/self/exe"

// canSwitch reports whether this process may become other accounts. Being root is not enough: a container started without privileges
// has a root without capabilities.
var canSwitch = sync.OnceValue(func() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	const needed = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID
	return os.Geteuid() == 0 && unix.Capget(&header, &sets[0]) == nil && sets[0].Effective&needed == needed
})

// asUser runs f on one thread whose file accesses are those of uid and gid. For an agent that cannot switch, and so serves itself
// alone, f simply runs. Nothing else of the process notices.
func asUser(uid, gid int, f func() error) error {
	self := os.Geteuid()
	if !canSwitch() || uid == self {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	selfGID := os.Getegid()
	defer func() {
		_, _ = unix.SetfsuidRetUid(self) // back to our own: always allowed, and the call has no error anyway
		_, _ = unix.SetfsgidRetGid(selfGID)
	}()
	if _, err := unix.SetfsgidRetGid(gid); err != nil {
		return fmt.Errorf("file access as group %d: %w", gid, err)
	}
	if _, err := unix.SetfsuidRetUid(uid); err != nil {
		return fmt.Errorf("file access as user %d: %w", uid, err)
	}
	return f()
}

// pipes makes one pipe per element of weRead, true where our end is the reading one. They belong to uid: echo > /dev/stderr opens
// the pipe anew, which only its owner may. Our ends do not block, so that Close and deadlines end a Read or Write; the others do.
func pipes(uid, gid int, weRead ...bool) (ours, theirs []*os.File, err error) {
	err = asUser(uid, gid, func() error {
		for _, read := range weRead {
			var fd [2]int
			if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
				return fmt.Errorf("pipe: %w", err)
			}
			mine, other := fd[1], fd[0]
			if read {
				mine, other = other, mine
			}
			err := unix.SetNonblock(mine, true)
			ours = append(ours, os.NewFile(uintptr(mine), "pipe"))
			theirs = append(theirs, os.NewFile(uintptr(other), "pipe"))
			if err != nil {
				return fmt.Errorf("make a pipe non-blocking: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		closeAll(ours)
		closeAll(theirs)
		return nil, nil, err
	}
	return ours, theirs, nil
}

// pipeSize is what the kernel may keep in a pipe that carries a lot, in bytes. With its usual 64 KiB both sides are woken for each.
const pipeSize = 1 << 20

// widen asks for pipeSize. Not for every pipe: an account has a budget, the same for all containers, and whoever is above it gets pipes of
// a page. The kernel may refuse; then the pipe stays as it was.
func widen(f *os.File) {
	raw, err := f.SyscallConn() // Fd would make it block
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // nothing was written through them that could be lost
		}
	}
}

// memfd is a file in memory alone: no path, gone with its last descriptor.
func memfd(content string) (*os.File, error) {
	fd, err := unix.MemfdCreate("dockerbox", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	if _, err := f.WriteAt([]byte(content), 0); err != nil { // at 0: the offset is the reader's too
		_ = f.Close()
		return nil, fmt.Errorf("write to a memfd: %w", err)
	}
	return f, nil
}

// launch starts the shim in front of a program as id, in a session of its own. files are the child's descriptors; nil ones are closed. special
// adds what few have.
func (id identity) launch(argv, env []string, files map[int]*os.File, special ...func(*syscall.SysProcAttr)) (*process, error) {
	top := 0
	for fd := range files {
		top = max(top, fd)
	}
	fds := make([]uintptr, top+1)
	for i := range fds {
		fds[i] = ^uintptr(0) // closed in the child
		if f := files[i]; f != nil {
			fds[i] = f.Fd()
		}
	}
	attr := &syscall.ProcAttr{Dir: "/", Env: env, Files: fds, Sys: &syscall.SysProcAttr{Setsid: true}}
	if canSwitch() {
		groups := make([]uint32, len(id.groups))
		for i, g := range id.groups {
			groups[i] = uint32(g)
		}
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid), Groups: groups}
	}
	for _, add := range special {
		add(attr.Sys)
	}
	p, err := children.start(selfPath, argv, attr)
	runtime.KeepAlive(files)
	if errors.Is(err, unix.EAGAIN) {
		return nil, fmt.Errorf("start as %s: the sandbox's limit of processes is reached: %w", id.name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("start as %s: %w", id.name, err)
	}
	return p, nil
}
