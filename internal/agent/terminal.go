//go:build linux

package agent

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// defaultTerm is what a program finds in TERM when the host does not name its terminal: what most of them say of themselves.
const defaultTerm = "xterm-256color"

// terminal is the pseudo-terminal of one command. Its size may change before there is one: the last before the program starts is what that
// finds. Safe for concurrent use.
type terminal struct {
	mu     sync.Mutex
	size   wire.Size
	master *os.File // nil until it is open
}

// newTerminal returns the terminal that a command asked for, nil when it wants pipes.
func newTerminal(size *wire.Size) *terminal {
	if size == nil {
		return nil
	}
	return &terminal{size: *size}
}

// resize changes the size, of which the kernel tells the program in front. One that comes after the end changes nothing.
func (t *terminal) resize(size wire.Size) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size = size
	if t.master != nil {
		_ = setSize(t.master, size) // it was possible at the start; a closed file is at its end
	}
}

// open makes the terminal, of its size. The side for the program blocks and is its account's: the kernel makes /dev/pts/N for whoever opens
// the other side, which needs no right to change owners.
func (t *terminal) open(id identity) (master, slave *os.File, err error) {
	err = asUser(id.uid, id.gid, func() error {
		master, slave, err = openTerminal()
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := setSize(master, t.size); err != nil {
		closeAll([]*os.File{master, slave})
		return nil, nil, fmt.Errorf("set a terminal's size: %w", err)
	}
	t.master = master
	return master, slave, nil
}

// openTerminal opens both sides. Neither becomes the agent's own terminal, and the master does not block.
func openTerminal() (master, slave *os.File, err error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Open("/dev/ptmx", flags|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	master = os.NewFile(uintptr(fd), "terminal")
	defer func() {
		if err != nil {
			closeAll([]*os.File{master, slave})
		}
	}()
	const unlocked = 0
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, unlocked); err != nil {
		return nil, nil, os.NewSyscallError("unlock it", err)
	}
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, os.NewSyscallError("ask for its number", err)
	}
	path := "/dev/pts/" + strconv.Itoa(int(number))
	other, err := unix.Open(path, flags, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	slave = os.NewFile(uintptr(other), path)
	return master, slave, understandUTF8(other)
}

// understandUTF8 lets the line editor of the kernel take back a character of several bytes as one.
func understandUTF8(fd int) error {
	modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return os.NewSyscallError("ask for its modes", err)
	}
	modes.Iflag |= unix.IUTF8
	return os.NewSyscallError("set its modes", unix.IoctlSetTermios(fd, unix.TCSETS, modes))
}

func setSize(f *os.File, size wire.Size) error {
	raw, err := f.SyscallConn() // Fd would make it block
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("ioctl", failed)
}

// streams makes t the three streams of a program: c holds our side, files are the program's, and theirs are to be closed once it has them.
//
// What is typed is written through a descriptor of its own: the end of input closes that alone, and sends nothing. docker exec and ssh do the
// same. An end-of-file character would be a keystroke like any other to a program that has the terminal in raw mode, and hanging up would
// end programs that are still at work for a host that only has nothing more to type.
func (t *terminal) streams(id identity) (c *child, files map[int]*os.File, theirs []*os.File, err error) {
	mine, theirs, err := pipes(id.uid, id.gid, true)
	if err != nil {
		return nil, nil, nil, err
	}
	c = &child{mark: nextMark(), status: mine[0], terminal: true}
	defer func() {
		if err != nil {
			c.close()
			closeAll(theirs)
		}
	}()
	status := theirs[0]
	master, slave, err := t.open(id)
	if err != nil {
		return nil, nil, nil, err
	}
	c.stdout, theirs = master, append(theirs, slave)
	if c.stdin, err = duplicate(master); err != nil {
		return nil, nil, nil, err
	}
	return c, map[int]*os.File{0: slave, 1: slave, 2: slave, fdStatus: status}, theirs, nil
}

// duplicate returns another descriptor of a file that does not block.
func duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, failed := -1, error(nil)
	if err := raw.Control(func(old uintptr) { fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, os.NewSyscallError("duplicate a descriptor", failed)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// controlling makes the standard input of what is launched the controlling terminal of its session.
func controlling(attr *syscall.SysProcAttr) { attr.Setctty, attr.Ctty = true, 0 }

// environ is what a program gets, with the variables of its own over those of the login. On a terminal it learns which: the one of the login is
// another, if any.
func (r *run) environ(base *snapshot) []string {
	own := r.req.Env
	if _, named := own["TERM"]; r.terminal != nil && !named {
		own = map[string][]byte{"TERM": []byte(defaultTerm)}
		for name, value := range r.req.Env {
			own[name] = value
		}
	}
	return base.environ(own)
}
