//go:build linux

package agent

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// attached is one run of the real program: `agent attach`, as an exec into a container starts it.
type attached struct {
	*client
	process *process
	out     *os.File
}

// startAttach runs binary, a copy of the test binary, as the agent.
func startAttach(t *testing.T, binary string, args ...string) *attached {
	t.Helper()
	hostIn, agentIn, agentOut, hostOut := streamPair(t)
	defer closeAll([]*os.File{agentIn, agentOut})
	env := []string{asAgent + "=1", "PATH=" + defaultPath, "HOME=/nowhere", "IMAGE=1"}
	p, err := children.start(binary, append([]string{"agent", "attach"}, args...), &syscall.ProcAttr{
		Dir: "/", Env: env, Files: []uintptr{agentIn.Fd(), agentOut.Fd(), 2},
	})
	must(t, err)
	a := &attached{client: newClient(t, hostIn, hostOut), process: p, out: hostOut}
	t.Cleanup(func() {
		p.signal(unix.SIGKILL)
		<-p.done
	})
	return a
}

// ownBinary copies the test binary so that its resident is nobody else's.
func ownBinary(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	file := openDir(t) + "/agent"
	must(t, os.WriteFile(file, append(b, t.Name()+strconv.Itoa(os.Getpid())...), 0o755))
	t.Cleanup(func() {
		for pid := range processes() {
			if exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil && strings.TrimSuffix(exe, " (deleted)") == file {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	})
	return file
}

func self() string { return strconv.Itoa(os.Geteuid()) }

func TestAttach(t *testing.T) {
	file := ownBinary(t)
	a := startAttach(t, file, "--user", self())
	a.greet(a.out)
	if a.hello.Error != "" || a.hello.UID != os.Geteuid() {
		t.Fatalf("hello %+v", a.hello)
	}
	a.sh("echo $IMAGE; cd /usr; export K=kept").want("1\n", 0)
	parent := strings.TrimSpace(a.sh("echo $PPID").output())
	// The resident is a daemon of its own, and none of it is the attach's.
	if b, err := os.ReadFile("/proc/" + parent + "/cmdline"); err != nil || string(b) != "dockerbox-agent\x00resident\x00" {
		t.Errorf("the shell's parent is %q, %v", b, err)
	}
	pid, err := strconv.Atoi(parent)
	must(t, err)
	if p, ok := procStat(pid); !ok || p.session != pid {
		t.Errorf("%+v", p)
	}
	if cwd, err := os.Readlink("/proc/" + parent + "/cwd"); err != nil || cwd != "/" {
		t.Errorf("its directory is %s, %v", cwd, err)
	}
	a.sh("nohup sleep 87001 >/dev/null 2>&1 &").want("", 0)
	job := a.start(wire.Run{Shell: []byte("echo up; sleep 87002")})
	job.until("up")
	a.close() // the host's end of the stream
	select {
	case <-a.process.done:
	case <-time.After(patience):
		t.Fatal("attach does not end")
	}
	eventually(t, "the command is dead", func() bool { return len(runningWith("87002")) == 0 })

	b := startAttach(t, file, "--user", self())
	b.greet(b.out)
	b.sh("echo $K $PWD").want("kept /usr\n", 0)
	if b.hello.Boot != a.hello.Boot {
		t.Error("another resident")
	}
	// An attach that is killed takes its connection with it, not the resident.
	running := b.start(wire.Run{Shell: []byte("echo up; sleep 87003")})
	running.until("up")
	b.process.signal(unix.SIGKILL)
	eventually(t, "the command is dead", func() bool { return len(runningWith("87003")) == 0 })
	c := startAttach(t, file)
	c.greet(c.out)
	if c.hello.Boot != a.hello.Boot {
		t.Error("another resident")
	}
	// A resident that dies takes its attaches with it, and the next one starts anew.
	must(t, unix.Kill(pid, unix.SIGKILL))
	select {
	case <-c.process.done:
	case <-time.After(patience):
		t.Fatal("attach does not end")
	}
	d := startAttach(t, file)
	d.greet(d.out)
	if d.hello.Boot == a.hello.Boot || d.hello.Error != "" {
		t.Errorf("hello %+v", d.hello)
	}
	// Jobs of finished commands outlive even that.
	if !alive("sleep", "87001") {
		t.Error("the job is gone")
	}
	for pid := range processes() {
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil && string(b) == "sleep\x0087001\x00" {
			must(t, unix.Kill(pid, unix.SIGKILL))
		}
	}
}

// However many come at once, there is one resident.
func TestAttachesAtOnceShareOneResident(t *testing.T) {
	file := ownBinary(t)
	const n = 8
	var mu sync.Mutex
	boots := map[string]int{}
	list := make([]*attached, n)
	for i := range list {
		list[i] = startAttach(t, file)
	}
	var wg sync.WaitGroup
	for _, a := range list {
		wg.Go(func() {
			a.greet(a.out)
			mu.Lock()
			defer mu.Unlock()
			boots[a.hello.Boot+a.hello.Error]++
		})
	}
	wg.Wait()
	if len(boots) != 1 {
		t.Fatalf("boot ids %v", boots)
	}
}

// Nothing passes to another account that took the name, and the host is told.
func TestSquattedNameIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		// Whoever is not root cannot play the other account; the check itself can be tried on a socket to oneself.
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		if err := checkPeer(pair[0]); err != nil {
			t.Error(err)
		}
		for _, fd := range pair {
			must(t, unix.Close(fd))
		}
		return
	}
	file := ownBinary(t)
	// The name is that of the copy, so the copy itself has to say it: a first attach tells by the socket its resident listens on.
	a := startAttach(t, file)
	a.greet(a.out)
	resident := strings.TrimSpace(a.sh("echo $PPID").output())
	pid, err := strconv.Atoi(resident)
	must(t, err)
	name := ""
	b, err := os.ReadFile("/proc/net/unix")
	must(t, err)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 8 && strings.HasPrefix(f[7], "@dockerbox-agent/0/") && socketOf(t, pid, f[6]) {
			name = f[7]
		}
	}
	if name == "" {
		t.Fatal("the resident's socket is not found")
	}
	must(t, unix.Kill(pid, unix.SIGKILL))
	// Its streams can be closed a moment before its socket is.
	eventually(t, "the resident is gone", func() bool { _, there := procStat(pid); return !there })
	listener := squat(t, name, testUID)
	defer func() { must(t, unix.Close(listener)) }()
	s := startAttach(t, file)
	r := wire.NewReader(s.out, wire.MaxFromAgent)
	f, err := r.Next()
	must(t, err)
	hello, err := wire.Decode[wire.Hello](f)
	must(t, err)
	if !strings.Contains(hello.Error, "user 4242 has taken the name") {
		t.Errorf("%+v", hello)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the hello: %v", err)
	}
	<-s.process.done
	close(s.ended)
	if s.process.status.ExitStatus() != exitFailed {
		t.Errorf("status %d", s.process.status.ExitStatus())
	}
}

// socketOf reports whether process pid has the socket with this inode.
func socketOf(t *testing.T, pid int, inode string) bool {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	list, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range list {
		if to, err := os.Readlink(dir + e.Name()); err == nil && to == "socket:["+inode+"]" {
			return true
		}
	}
	return false
}

// squat listens on name as another account: the peer's account is that at the time of listen.
func squat(t *testing.T, name string, uid int) int {
	t.Helper()
	fd, err := newSocket()
	must(t, err)
	done := make(chan error)
	go func() {
		// A thread of its own that is never used again: its account stays changed.
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			done <- errno
			return
		}
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
			done <- err
			return
		}
		done <- unix.Listen(fd, 8)
	}()
	must(t, <-done)
	return fd
}
