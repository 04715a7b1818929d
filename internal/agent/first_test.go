//go:build linux

package agent

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// What it does as a container's first process is for the integration tests: here it cannot be one.

// uniqueSocket is a name that nobody listens on yet.
func uniqueSocket(t *testing.T) string {
	return "@dockerbox-agent/test/" + t.Name() + strconv.Itoa(os.Getpid())
}

func TestWhoIsNotTheFirstProcessIsRefused(t *testing.T) {
	name := uniqueSocket(t)
	if _, err := connectFirst(name); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("nobody listens, and the answer is %v", err)
	}
	listener, err := takeName(name)
	must(t, err)
	defer func() { must(t, unix.Close(listener)) }()
	if _, err := takeName(name); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a name that is taken: %v", err)
	}
	fd, err := connectFirst(name)
	must(t, err)
	want := "process " + strconv.Itoa(os.Getpid()) + " of user " + self() + " has taken the name"
	if err := checkFirst(fd); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	// An attach gives up at once, with that reason: whoever waited would wait for as long as the name is taken. It closes its end.
	if _, err := hand(fd, "", checkFirst); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestWhoIsNoAttachIsRefused(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer func() { must(t, errors.Join(unix.Close(pair[0]), unix.Close(pair[1]))) }()
	if err := checkAttach(pair[0]); err == nil || !strings.Contains(err.Error(), "user "+self()+" is no attach") {
		t.Errorf("%v", err)
	}
}

// Signals from outside end neither, and a child still gets what it would get elsewhere: nothing is ignored.
func TestTheFirstProcessHearsNothingAndItsChildrenAll(t *testing.T) {
	file := ownBinary(t)
	p, err := children.start(file, []string{"agent", "first"}, &syscall.ProcAttr{
		Dir: "/", Env: []string{asAgent + "=1", "PATH=" + defaultPath}, Files: []uintptr{0, 1, 2},
	})
	must(t, err)
	defer func() {
		p.signal(unix.SIGKILL)
		<-p.done
	}()
	status := func(name string) uint64 {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
		must(t, err)
		_, rest, _ := strings.Cut(string(text), name+":\t")
		n, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
		must(t, err)
		return n
	}
	const libraries = 1<<(32-1) | 1<<(33-1) | 1<<(34-1) // signals of C libraries, which Go leaves as whoever started the tests has them
	const all = ^uint64(0) &^ (1<<(unix.SIGKILL-1) | 1<<(unix.SIGSTOP-1) | libraries)
	eventually(t, "it catches every signal", func() bool { return status("SigCgt")&all == all })
	if ignored := status("SigIgn") &^ libraries; ignored != 0 {
		t.Errorf("ignored: %#x", ignored)
	}
	for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGSEGV, unix.SIGABRT, unix.SIGUSR1, unix.SIGPIPE, unix.SIGTSTP, unix.SIGXCPU, 40} {
		p.signal(s)
	}
	name, err := firstName()
	must(t, err)
	eventually(t, "it listens", func() bool {
		fd, err := connectFirst(name)
		if err != nil {
			return false
		}
		defer func() { must(t, unix.Close(fd)) }()
		peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err == nil && int(peer.Pid) == p.pid
	})
	if p.ended() {
		t.Error("a signal has ended it")
	}
	// Its memory is not even its own account's to see: the file is root's.
	var st unix.Stat_t
	must(t, unix.Stat("/proc/"+strconv.Itoa(p.pid)+"/mem", &st))
	if st.Uid != 0 {
		t.Errorf("its memory belongs to user %d", st.Uid)
	}
}

func TestConfinementIsWhatTheKernelSays(t *testing.T) {
	c, err := confinement()
	must(t, err)
	if own, err := os.ReadFile("/proc/self/status"); err != nil || c.NoNewPrivileges != strings.Contains(string(own), "NoNewPrivs:\t1") {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]wire.Confinement{
		"CapPrm:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n": {NoNewPrivileges: true, Filtered: true},
		"CapBnd:\t00000000a80425fb\nNoNewPrivs:\t0\nSeccomp:\t0\n":                                                 {Capabilities: 0xa80425fb},
		"CapBnd:\t0000000000000000\nSeccomp:\t1\n":                                                                 {},
		"Name:\tNoNewPrivs\n": {Capabilities: ^uint64(0)},
	} {
		if got, err := parseConfinement([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if _, err := parseConfinement([]byte("CapBnd:\tmany\n")); err == nil {
		t.Error("what is no number is taken for one")
	}
}

// A container's first process gets children that it never started, when it waits for none of its own.
func TestOrphansAreCollectedWithoutAChildOfOnesOwn(t *testing.T) {
	must(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	r := reaper{live: map[int]*process{}}
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	must(t, err)
	r.collect()
	eventually(t, "it is collected", func() bool { return unix.Kill(pid, 0) == unix.ESRCH })
}
