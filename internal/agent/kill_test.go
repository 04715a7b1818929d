//go:build linux

package agent

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// endBound is how long a killed command may take: grace, freezing, and a busy machine.
const endBound = 4 * time.Second

// Every attack tries to have something left when its command is reported dead. Each has its own number of seconds to sleep, {n}, so that what
// is left can be found; "never" must not be printed.
var killAttacks = []struct{ name, text string }{
	{"plain", "echo up; sleep {n}; echo never"},
	{"deaf to TERM", "trap '' TERM INT HUP; echo up; setsid sleep {n} & sleep {n}; echo never"},
	{"own sessions", "setsid -f sleep {n}; (setsid sleep {n} &); env -i setsid -f sleep {n}; echo up; sleep {n}; echo never"},
	{"deaf loop in its own session", "setsid -f bash -c \"trap '' TERM INT HUP; while :; do sleep {n}; done\"; echo up; exec sleep {n}"},
	{"double fork", "( ( setsid bash -c 'setsid sleep {n} & exit' & ) & ); echo up; sleep {n}; echo never"},
	{"fork loop that changes session", "trap '' TERM; f() { ( setsid bash -c 'trap \"\" TERM; sleep 0.01; exec setsid -f sleep {n}' & ); }; echo up; while :; do f; sleep 0.02; done"},
	{"restarts what is killed", "trap '' TERM; echo up; while :; do bash -c 'trap \"\" TERM; sleep {n}'; done"},
	{"stopped", "setsid -f bash -c 'kill -STOP $$; sleep {n}'; echo up; sleep {n}; echo never"},
	{"pipeline", "echo up; sleep {n} | sleep {n} | cat; echo never"},
	{"deaf pipeline", "trap '' TERM; echo up; yes | sleep {n}; echo never"},
	{"cleans up and starts anew", "trap 'setsid -f sleep {n}; exit' TERM; echo up; sleep {n} & wait; echo never"},
}

func TestKillEndsTheWholeTree(t *testing.T) {
	for i, attack := range killAttacks {
		t.Run(attack.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.connect(t)
			c.sh("nohup sleep 8642 >/dev/null 2>&1 & setsid -f sleep 8641 >/dev/null 2>&1")
			eventually(t, "the jobs run", func() bool { return alive("sleep", "8642") && alive("sleep", "8641") })
			n := fmt.Sprint(86500 + i)
			a := c.start(wire.Run{Shell: []byte(strings.ReplaceAll(attack.text, "{n}", n))})
			a.until("up\n")
			began := time.Now()
			a.kill()
			a.wait()
			if took := time.Since(began); took > endBound {
				t.Errorf("took %s", took)
			}
			if left := runningWith(n); len(left) > 0 {
				t.Errorf("left at its end: %q", left)
			}
			if !a.exit.Killed {
				t.Errorf("exit %+v", a.exit)
			}
			if strings.Contains(a.output(), "never") {
				t.Errorf("went on to its next command: %q", a.output())
			}
			for _, n := range []string{"8642", "8641"} {
				if !alive("sleep", n) {
					t.Errorf("sleep %s, a job of an earlier command, was ended too", n)
				}
			}
			c.sh("echo next").want("next\n", 0)
		})
	}
}

// runningWith lists the command lines of living processes that have word among their arguments.
func runningWith(word string) []string {
	var found []string
	for pid, p := range processes() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && !p.zombie && strings.Contains("\x00"+string(b), "\x00"+word+"\x00") {
			found = append(found, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}

func TestKillOfWords(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	a := c.start(wire.Run{Argv: byteWords("bash", "-c", "setsid -f sleep 86601; echo up; exec sleep 86601")})
	a.until("up")
	a.kill()
	a.wait()
	if left := runningWith("86601"); len(left) > 0 || !a.exit.Killed {
		t.Errorf("left %q, exit %+v", left, a.exit)
	}
}

func TestTermTrapRuns(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	a := c.start(wire.Run{Shell: []byte("trap 'echo cleaned; exit 7' TERM; echo up; sleep 86602 & wait")})
	a.until("up")
	a.kill()
	a.wait().want("up\ncleaned\n", 7)
	if !a.exit.Killed {
		t.Error("not reported as killed")
	}
}

// TERM is enough for most, and then nobody waits for the grace to pass.
func TestWillingTreeIsNotSentKill(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	a := c.start(wire.Run{Shell: []byte("echo up; sleep 86603")})
	a.until("up")
	a.kill()
	a.wait()
	if a.exit.Signal != int(unix.SIGTERM) {
		t.Errorf("exit %+v", a.exit)
	}
}

func TestOwnDeadline(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	a := c.run(wire.Run{Shell: []byte("cd /usr; echo partial; sleep 86604"), TimeoutMS: 200})
	if !a.exit.Killed || a.output() != "partial\n" {
		t.Errorf("exit %+v, output %q", a.exit, a.output())
	}
	if a := c.run(wire.Run{Shell: []byte("true"), TimeoutMS: 60_000}); a.exit.Killed {
		t.Error("killed before its time")
	}
}

// A Kill that crosses with the end, comes twice, or comes before the shell runs, leads to exactly one Exit.
func TestKillAtAnyMoment(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	for range 30 {
		a := c.start(wire.Run{Shell: []byte("true")})
		a.kill()
		a.kill()
		a.wait()
		if n := strings.Count(string(kinds(a)), "X"); n != 1 {
			t.Fatalf("%d Exit frames", n)
		}
	}
	c.sh("echo fine").want("fine\n", 0)
}

func TestLostConnectionEndsItsCommandsAlone(t *testing.T) {
	w := newWorld(t)
	c, d := w.connect(t), w.connect(t)
	c.sh("nohup sleep 86611 >/dev/null 2>&1 &")
	eventually(t, "the job runs", func() bool { return alive("sleep", "86611") })
	a := c.start(wire.Run{Shell: []byte("trap '' TERM; echo up; sleep 86612; sleep 86612")})
	a.until("up")
	b := d.start(wire.Run{Shell: []byte("echo up; sleep 86613")})
	b.until("up")
	eventually(t, "they sleep", func() bool { return alive("sleep", "86612") && alive("sleep", "86613") })
	c.close()
	select {
	case <-c.serve:
	case <-time.After(patience):
		t.Fatal("the connection is not over")
	}
	if c.err != nil {
		t.Errorf("a clean end gave %v", c.err)
	}
	if left := runningWith("86612"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if !alive("sleep", "86611") || !alive("sleep", "86613") {
		t.Error("a job, or another connection's command, was ended too")
	}
	b.kill()
	b.wait()
	d.sh("echo fine").want("fine\n", 0)
}

func kinds(a *answer) []byte {
	a.client.mu.Lock()
	defer a.client.mu.Unlock()
	var b []byte
	for _, k := range a.frames {
		b = append(b, byte(k))
	}
	return b
}

// Fifty short background jobs are all collected: none stays a zombie.
func TestNoZombies(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	c.sh("for i in {1..50}; do setsid -f true; (true &) ; done; for i in {1..50}; do true & done").want("", 0)
	eventually(t, "no zombie below the agent", func() bool {
		for _, p := range processes() {
			if p.zombie && p.parent == os.Getpid() {
				return false
			}
		}
		return true
	})
}

// What has left parent, session and environment behind is still known by its mark, also when nobody watched it go.
func TestMarkFindsWhatGotAway(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	marks := map[string]string{}
	for _, n := range []string{"86621", "86622"} {
		a := c.sh("env -i setsid bash -c 'setsid -f sleep " + n + " >/dev/null 2>&1' & wait; ulimit -Hq")
		marks[n] = strings.TrimSpace(a.output())
	}
	eventually(t, "both run", func() bool { return alive("sleep", "86621") && alive("sleep", "86622") })
	for n, mark := range marks {
		value, err := strconv.ParseUint(mark, 10, 64)
		must(t, err)
		found := (&tree{mark: value, seen: map[int]uint64{}, deaf: map[int]bool{}}).scan()
		if len(found) != 1 {
			t.Fatalf("mark %s: processes %v", mark, found)
		}
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", found[0])); err != nil || string(b) != "sleep\x00"+n+"\x00" {
			t.Errorf("mark %s found %q, %v", mark, b, err)
		}
	}
	if found := (&tree{mark: 1, seen: map[int]uint64{}}).scan(); len(found) > 0 {
		t.Errorf("another mark found %v", found)
	}
}

// A host that wants a command dead may have stopped reading it: the Exit comes without more credit.
func TestKillWithoutCredit(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	a := c.call(true, func(id uint32) wire.Frame {
		return wire.Encode(wire.TypeRun, id, wire.Run{Shell: []byte("yes")})
	})
	eventually(t, "the window is filled", func() bool { return len(a.output()) == wire.Window })
	a.kill()
	a.wait()
	if !a.exit.Killed {
		t.Errorf("exit %+v", a.exit)
	}
}
