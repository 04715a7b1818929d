//go:build linux

package agent

import (
	"errors"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// Exit statuses of a shim that could not become its program. The status record says why; these are for whoever looks at the process.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// settle makes this process the one that orphans of its tree fall to, so that nothing leaves the tree by losing its parent, and marks
// the tree. Both survive execve.
func settle(mark string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	n, err := strconv.ParseUint(mark, 10, 64)
	if err != nil {
		return err
	}
	if n == 0 {
		return nil // no mark could be given, see nextMark
	}
	return unix.Setrlimit(unix.RLIMIT_MSGQUEUE, &unix.Rlimit{Cur: n, Max: n})
}

// becomeShell is the shim in front of bash: MARK PATH ARGV….
func becomeShell(args []string) int {
	err := settle(args[0])
	if err == nil {
		_ = unix.CloseRange(fdTrigger+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // as in becomeProgram

		err = syscall.Exec(args[1], args[2:], os.Environ())
	}
	return cannot(wire.ReasonInternal, args[1]+": "+err.Error(), exitNotExecutable)
}

// becomeProgram is the shim in front of a program given as words: MARK DIR HOW FALLBACK WORD…. It looks for directory and program as
// the account, because the agent may not be allowed to.
func becomeProgram(args []string) int {
	mark, dir, how, fallback, words := args[0], args[1], args[2], args[3], args[4:]
	if err := settle(mark); err != nil {
		return cannot(wire.ReasonInternal, err.Error(), exitNotExecutable)
	}
	if err := enter(dir, how, fallback); err != nil {
		return cannot(wire.ReasonDirectory, dir+": "+err.Error(), exitNotExecutable)
	}
	if _, err := unix.FcntlInt(fdStatus, unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return cannot(wire.ReasonInternal, "status descriptor: "+err.Error(), exitNotExecutable)
	}
	// Whatever the agent itself was started with and did not know of. Kernels before 5.11 and old seccomp profiles lack the call; a docker
	// exec has nothing of the kind.
	const first = 3
	_ = unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	err := execute(words, os.Environ(), os.Getenv("PATH"))
	if errors.Is(err, errNoProgram) || errors.Is(err, unix.ENOENT) {
		return cannot(wire.ReasonNotFound, "cannot run "+strconv.Quote(words[0])+": "+err.Error(), exitNotFound)
	}
	return cannot(wire.ReasonNotExecutable, "cannot run "+strconv.Quote(words[0])+": "+err.Error(), exitNotExecutable)
}

func enter(dir, how, fallback string) error {
	err := unix.Chdir(dir)
	if err == nil || fallback != "" && unix.Chdir(fallback) == nil {
		return nil
	}
	if how == howStrict {
		return err
	}
	for parent := path.Dir(dir); unix.Chdir(parent) != nil; parent = path.Dir(parent) {
		if parent == "/" {
			return err
		}
	}
	return nil
}

var errNoProgram = errors.New("no such program on its PATH")

// execute replaces the process by words[0], looked for as execvp does: a name without a slash in every entry of search, where an
// entry that may not be executed is remembered but does not end the search.
func execute(words, env []string, search string) error {
	name := words[0]
	if strings.Contains(name, "/") {
		return becauseDirectory(name, syscall.Exec(name, words, env))
	}
	failure := errNoProgram
	if name == "" {
		return failure
	}
	for _, dir := range strings.Split(search, ":") {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + name
		switch err := syscall.Exec(file, words, env); {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		case errors.Is(err, unix.EACCES):
			if err := unix.Access(file, unix.F_OK); err == nil && !isDirectory(file) {
				failure = unix.EACCES
			}
		default:
			return err
		}
	}
	return failure
}

// becauseDirectory says of a directory what it is: the kernel's word for it is permission denied.
func becauseDirectory(name string, err error) error {
	if errors.Is(err, unix.EACCES) && isDirectory(name) {
		return unix.EISDIR
	}
	return err
}

func isDirectory(name string) bool {
	var st unix.Stat_t
	return unix.Stat(name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// cannot reports on the status descriptor. If even that fails the agent sees a process that ended without a word.
func cannot(reason, text string, status int) int {
	_, _ = unix.Write(fdStatus, []byte(recordFailed+"\x00"+reason+"\x00"+text+"\x00"))
	return status
}
