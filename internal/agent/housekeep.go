//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A container that is started again has the files of its former life and none of the processes, and numbers processes from 1 again.
// Display servers, the system bus and Hermes's desktop each leave a file with a process number, and take any living process of
// that number for their own.

// house is where those files are; fields so that tests bring their own.
type house struct {
	// root stands in front of every path that is opened or removed, not of those that processes themselves go by.
	root string
	// temps are the directories, below root, that may hold a desktop; the first is where display servers keep theirs.
	temps []string
	// name and line are a process's name and its words, empty when it does not live.
	name func(pid int) string
	line func(pid int) string
	// sockets is what /proc/net/unix says.
	sockets string
}

var systemHouse = house{
	temps: systemFiles.homes, name: nameOf, sockets: "/proc/net/unix",
	line: func(pid int) string {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err != nil {
			return "" // it has ended
		}
		return string(line)
	},
}

// keepHouse puts the house in order. Nothing that belongs to a living process is touched, so it may be called at any time. It goes on
// after a failure and returns all of them; an account that is not root can do its own part alone.
func keepHouse(h house) error {
	listening, err := h.listening()
	if err != nil {
		return err // without knowing what lives nothing may be removed
	}
	failures := []error{h.makeSocketDir(), h.clearDisplays(listening), h.clearBus()}
	for _, temp := range h.temps {
		failures = append(failures, h.clearDesktops(temp, listening))
	}
	return errors.Join(failures...)
}

// listening returns the paths of sockets that somebody listens on. An abstract name that looks like a path counts as that path: display servers
// take both, and the file alone can be removed under them.
func (h house) listening() (map[string]bool, error) {
	table, err := os.ReadFile(h.sockets)
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	const (
		flags, rest = 3, 7 // the number before the path is padded with spaces, and the path may hold some
		accepts     = "00010000"
	)
	for line := range strings.Lines(string(table)) {
		if f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", rest+1); len(f) > rest && f[flags] == accepts {
			paths[strings.TrimPrefix(strings.TrimLeft(f[rest], " 0123456789"), "@")] = true
		}
	}
	return paths, nil
}

// socketDir is below the first of temps. Display servers want it to be root's and open to all, and cannot make it so themselves.
const socketDir = ".X11-unix"

func (h house) makeSocketDir() error {
	const open = 0o1777
	if os.Geteuid() != 0 {
		return nil
	}
	temp, err := openDirectory(h.root + h.temps[0])
	if err != nil {
		return missingIsFine(err)
	}
	defer temp.Close()
	if err := unix.Mkdirat(int(temp.Fd()), socketDir, open); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: path.Join(h.temps[0], socketDir), Err: err}
	}
	// The umask counts for mkdir. Nobody else can have put another in its place: the parent is sticky, or it is nobody's business.
	dir, err := openDirectoryAt(temp, socketDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Chmod(0o777 | os.ModeSticky)
}

// clearDisplays removes locks and sockets of display servers that do not live.
func (h house) clearDisplays(listening map[string]bool) error {
	temp, err := openDirectory(h.root + h.temps[0])
	if err != nil {
		return missingIsFine(err)
	}
	defer temp.Close()
	names, err := temp.Readdirnames(-1)
	if err != nil {
		return err
	}
	var failures []error
	dead := func(n string) bool { return !listening[path.Join(h.temps[0], socketDir, "X"+n)] }
	locked := map[string]bool{}
	for _, name := range names {
		n, ok := strings.CutPrefix(name, ".X")
		if n, ok = cutSuffix(n, "-lock", ok); !ok || !isNumber(n) {
			continue
		}
		// A server takes its lock before its socket, so a lock of a living one counts by itself. They are called Xvnc, Xorg, Xvfb and so on.
		locked[n] = strings.HasPrefix(h.name(pidIn(temp, name)), "X")
		if !locked[n] && dead(n) {
			failures = append(failures, removeAt(temp, name))
		}
	}
	sockets, err := openDirectoryAt(temp, socketDir)
	if err != nil {
		return errors.Join(append(failures, missingIsFine(err))...)
	}
	defer sockets.Close()
	names, err = sockets.Readdirnames(-1)
	if err != nil {
		return errors.Join(append(failures, err)...)
	}
	for _, name := range names {
		if n, ok := strings.CutPrefix(name, "X"); ok && isNumber(n) && !locked[n] && dead(n) {
			failures = append(failures, removeAt(sockets, name))
		}
	}
	return errors.Join(failures...)
}

// clearBus removes the process number of a system bus that does not live.
func (h house) clearBus() error {
	run, err := openDirectory(h.root + "/run/dbus")
	if err != nil {
		return missingIsFine(err)
	}
	defer run.Close()
	const name = "pid"
	if _, err := os.Lstat(path.Join(run.Name(), name)); err != nil || strings.HasPrefix(h.name(pidIn(run, name)), "dbus-") {
		return missingIsFine(err)
	}
	return removeAt(run, name)
}

// desktopFiles are what says that a screen lives: its launcher's process number, its socket and the variables that lead to it.
var desktopFiles = []string{"launcher.pid", "rfb.sock", "env"}

// launcher is a word that every launcher of a screen has in its command line.
const launcher = "launcher.sh"

// clearDesktops removes what says that a screen lives where none does.
func (h house) clearDesktops(temp string, listening map[string]bool) error {
	const desktops = "hermes-bot-desktop"
	all, err := openDirectory(path.Join(h.root+temp, desktops))
	if err != nil {
		return missingIsFine(err)
	}
	defer all.Close()
	profiles, err := all.Readdirnames(-1)
	if err != nil {
		return err
	}
	var failures []error
	for _, profile := range profiles {
		dir, err := openDirectoryAt(all, profile)
		if err != nil {
			failures = append(failures, missingIsFine(err))
			continue
		}
		alive := listening[path.Join(temp, desktops, profile, "rfb.sock")] || strings.Contains(h.line(pidIn(dir, desktopFiles[0])), launcher)
		for _, name := range desktopFiles {
			if !alive {
				failures = append(failures, removeAt(dir, name))
			}
		}
		dir.Close()
	}
	return errors.Join(failures...)
}

func cutSuffix(s, suffix string, ok bool) (string, bool) {
	if !ok {
		return s, false
	}
	return strings.CutSuffix(s, suffix)
}

func isNumber(s string) bool {
	const digits = 5 // of the largest display number
	return s != "" && len(s) <= digits && !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '0' || c > '9' })
}

// pidIn reads the process number that a file of dir begins with, 0 when there is none. Anybody can have made the file: no link is
// followed, nothing is waited for, and of a long file only the beginning is read.
func pidIn(dir *os.File, name string) int {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	text := make([]byte, 32)
	n, err := f.Read(text)
	if err != nil {
		return 0
	}
	words := strings.Fields(string(text[:n]))
	if len(words) == 0 {
		return 0
	}
	pid, err := strconv.Atoi(words[0])
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// openDirectory opens a directory, following no link in the last part of its name.
func openDirectory(name string) (*os.File, error) {
	return openDirectoryFrom(unix.AT_FDCWD, name, name)
}

func openDirectoryAt(parent *os.File, name string) (*os.File, error) {
	return openDirectoryFrom(int(parent.Fd()), name, path.Join(parent.Name(), name))
}

func openDirectoryFrom(at int, name, full string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: full, Err: err}
	}
	return os.NewFile(uintptr(fd), full), nil
}

// missingIsFine drops the error of something that is not there, or is not a directory and so not what is looked for.
func missingIsFine(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}

// removeAt removes a file; a directory of that name stays.
func removeAt(dir *os.File, name string) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EISDIR) {
		return nil
	}
	return fmt.Errorf("remove %s: %w", path.Join(dir.Name(), name), err)
}
