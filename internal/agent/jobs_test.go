//go:build linux

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

func (c *client) jobs() wire.Answer {
	c.tb.Helper()
	a := c.query(wire.Query{Op: wire.OpJobs})
	if a.Error != "" {
		c.tb.Fatalf("the answer is %q", a.Error)
	}
	return a
}

// A shell that waits, one that is just being started, one that was thrown away because the state changed, and what the profile left
// running are nobody's jobs.
func TestNothingIsAJobBetweenCommands(t *testing.T) {
	w := newWorld(t)
	w.rc(".profile", "setsid -f sleep 8731 >/dev/null 2>&1\n")
	c := w.connect(t)
	c.sh("true")
	if !alive("sleep", "8731") {
		t.Fatal("the profile's own process does not run")
	}
	for i := range 20 {
		c.sh("export I=" + strconv.Itoa(i))
		if a := c.jobs(); a.Jobs != 0 || a.Example != "" {
			t.Fatalf("after command %d: %+v", i+1, a)
		}
	}
}

func TestJobsAreWhatSomebodyStarted(t *testing.T) {
	for _, tc := range []struct{ name, text, example string }{
		{"a background job of an ended command", "nohup sleep 8741 >/dev/null 2>&1 &", "sleep"},
		{"one that left its session", "setsid -f sleep 8742 >/dev/null 2>&1", "sleep"},
		{"one without an environment", "(env -i setsid -f sleep 8743 >/dev/null 2>&1 &)", "sleep"},
		{"a stopped one", "bash -c 'kill -STOP $$' >/dev/null 2>&1 &", "bash"},
		{"one with a name of its own", "cp \"$(command -v sleep)\" ./trainer; ./trainer 8744 >/dev/null 2>&1 &", "trainer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.connect(t)
			c.sh(tc.text).want("", 0)
			eventually(t, "it counts under its name", func() bool { a := c.jobs(); return a.Jobs == 1 && a.Example == tc.example })
			w.endJobs(t)
			if a := c.jobs(); a.Jobs != 0 {
				t.Errorf("after its end: %+v", a)
			}
		})
	}
}

// A command counts while it runs, whoever's it is, text or words, and no longer.
func TestRunningCommandsAreJobs(t *testing.T) {
	for _, r := range []wire.Run{{Shell: []byte("echo up; read -r")}, {Argv: byteWords("bash", "-c", "echo up; read -r")}} {
		w := newWorld(t)
		one, two := w.connect(t), w.connect(t)
		r.Stdin = true
		a := one.start(r)
		a.until("up\n")
		if got := two.jobs(); got.Jobs != 1 || got.Example != "bash" {
			t.Errorf("while it runs: %+v", got)
		}
		a.send(wire.TypeEnd, nil)
		a.wait()
		if got := two.jobs(); got.Jobs != 0 {
			t.Errorf("after its end: %+v", got)
		}
	}
}

// A process that did not come through the agent, as of docker exec, carries no mark.
func TestAForeignProcessIsAJob(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	c.sh("true")
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	sleep, err := exec.LookPath("sleep")
	must(t, err)
	p, err := children.start(sleep, []string{"sleep", "8751"}, &syscall.ProcAttr{Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}})
	must(t, err)
	if a := c.jobs(); a.Jobs != 1 || a.Example != "sleep" {
		t.Errorf("%+v", a)
	}
	p.signal(unix.SIGKILL)
	<-p.done
}

// Another attach, or another account's resident, is an agent's; who only calls himself so is not.
func TestAgentsAreNoJobs(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	script := w.path("attach")
	must(t, os.WriteFile(script, []byte("echo up; read"), 0o644))
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	in, hold, err := os.Pipe()
	must(t, err)
	defer in.Close()
	for _, tc := range []struct {
		name string
		jobs int
	}{{"/.dockerbox/agent", 0}, {"dockerbox-agent", 0}, {"/tmp/agents", 1}} {
		out, theirs, err := os.Pipe()
		must(t, err)
		// bash, with a script of that name as its first word.
		p, err := children.start("/bin/bash", []string{tc.name, "attach"}, &syscall.ProcAttr{
			Dir: w.dir, Files: []uintptr{in.Fd(), theirs.Fd(), null.Fd()},
		})
		must(t, err)
		_ = theirs.Close()
		_, err = out.Read(make([]byte, 1))
		must(t, err)
		if a := c.jobs(); a.Jobs != tc.jobs {
			t.Errorf("%s: %+v, want %d", tc.name, a, tc.jobs)
		}
		p.signal(unix.SIGKILL)
		<-p.done
		_ = out.Close()
	}
	_ = hold.Close()
	if os.Geteuid() != w.uid {
		c.sh("cd " + quote(w.dir) + "; mkfifo f; (exec -a /.dockerbox/agent bash attach <>f >/dev/null) &")
		eventually(t, "another account's is a job", func() bool { return c.jobs().Jobs == 1 })
	}
}

func TestTheDeadAreNoJobs(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	pidfile := filepath.Join(w.dir, "pid")
	// It never collects its child.
	c.sh(fmt.Sprintf("perl -e 'if (!($p = fork)) { exit } open F, \">%s.new\"; print F $p; close F; rename \"%s.new\", \"%s\"; sleep 8761' >/dev/null 2>&1 &", pidfile, pidfile, pidfile))
	eventually(t, "the child is dead and not collected", func() bool {
		text, err := os.ReadFile(pidfile)
		if err != nil {
			return false
		}
		pid, err := strconv.Atoi(string(text))
		must(t, err)
		p, ok := procStat(pid)
		return ok && p.zombie
	})
	if a := c.jobs(); a.Jobs != 1 || a.Example != "perl" {
		t.Errorf("%+v, want perl alone", a)
	}
}

// While commands come and go and shells are warmed up, a job is never overlooked, nor one made up.
func TestJobsAreCountedAmongTraffic(t *testing.T) {
	w := newWorld(t)
	one, two := w.connect(t), w.connect(t)
	one.sh("nohup sleep 8771 >/dev/null 2>&1 &")
	stop := make(chan struct{})
	var traffic sync.WaitGroup
	traffic.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				two.sh("export R=$RANDOM")
			}
		}
	})
	for range 50 {
		if a := one.jobs(); a.Jobs < 1 {
			t.Errorf("%+v, want the sleep at least", a)
		}
	}
	close(stop)
	traffic.Wait()
	eventually(t, "only the sleep is left", func() bool { a := one.jobs(); return a.Jobs == 1 && a.Example == "sleep" })
}

// What hears TERM ends by it and gets to say so, what does not is left to the caller, and the answer is not kept waiting.
func TestEndAsksEverything(t *testing.T) {
	w := newWorld(t)
	c, other := w.connect(t), w.connect(t)
	said := filepath.Join(w.dir, "said")
	must(t, writable(said))
	c.sh(fmt.Sprintf("setsid -f bash -c 'trap \"echo bye >%s; exit\" TERM; echo up >%s; while :; do sleep 0.05; done' >/dev/null 2>&1", said, said))
	has := func(text string) bool { b, err := os.ReadFile(said); must(t, err); return string(b) == text }
	eventually(t, "the trap is set", func() bool { return has("up\n") })
	a := other.start(wire.Run{Shell: []byte("echo up; sleep 8781")})
	a.until("up\n")
	if got := c.query(wire.Query{Op: wire.OpEnd, LimitMS: patience.Milliseconds()}); got.Error != "" || got.Jobs != 0 {
		t.Errorf("%+v", got)
	}
	if !has("bye\n") {
		t.Error("a trap for TERM did not run")
	}
	if a.wait(); a.code() != 128+int(unix.SIGTERM) {
		t.Errorf("a command that ran ended with %+v", a.exit)
	}
	if left := runningWith("8781"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	c.sh("setsid -f bash -c \"trap '' TERM; echo up >" + said + "; while :; do sleep 8782; done\" >/dev/null 2>&1")
	eventually(t, "the deaf one runs", func() bool { return has("up\n") })
	const limit = 300 * time.Millisecond
	if got := c.query(wire.Query{Op: wire.OpEnd, LimitMS: limit.Milliseconds()}); got.Error != "" || got.Jobs == 0 {
		t.Errorf("%+v, want what is deaf", got)
	}
}
