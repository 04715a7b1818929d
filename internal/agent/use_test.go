//go:build linux

package agent

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// look joins w's agent as a host that only looks.
func (w *world) look(t *testing.T) *client {
	t.Helper()
	hostIn, agentIn, agentOut, hostOut := streamPair(t)
	c := newClient(t, hostIn, hostOut)
	go func() {
		c.err = w.agent.Serve(agentIn, agentOut, w.user)
		close(c.serve)
	}()
	r := wire.NewReader(hostOut, wire.MaxFromAgent)
	f, err := r.Next()
	must(t, err)
	c.hello, err = wire.Decode[wire.Hello](f)
	must(t, err)
	must(t, c.out.Write(wire.Encode(wire.TypeHello, 0, wire.Hello{Name: wire.HostName, Protocol: wire.Protocol, Looks: true})))
	go c.read(r)
	t.Cleanup(c.close)
	return c
}

// longAgo makes the agent believe that nothing was used for an hour.
func (w *world) longAgo() {
	w.agent.use.mu.Lock()
	defer w.agent.use.mu.Unlock()
	w.agent.use.last = time.Now().Add(-time.Hour)
}

func (c *client) use() wire.Use {
	c.tb.Helper()
	u := c.jobs().Use
	if u == nil {
		c.tb.Fatal("the answer says nothing of the use")
	}
	return *u
}

const almostAnHour = int64(59 * time.Minute / time.Millisecond)

func TestUseIsWhatHostsDo(t *testing.T) {
	w := newWorld(t)
	looker := w.look(t)
	if u := looker.use(); u.Clients != 0 || u.IdleMS >= almostAnHour {
		t.Errorf("an agent that was just started: %+v", u)
	}
	w.longAgo()
	looker.sh("true").want("", 0)
	other := w.look(t)
	other.close()
	<-other.serve
	if u := looker.use(); u.Clients != 0 || u.IdleMS < almostAnHour {
		t.Errorf("after looks: %+v", u)
	}
	host := w.connect(t)
	eventually(t, "a host counts", func() bool { u := looker.use(); return u.Clients == 1 && u.IdleMS < almostAnHour })
	w.longAgo()
	host.sh("true").want("", 0)
	if u := looker.use(); u.IdleMS >= almostAnHour {
		t.Errorf("after a command: %+v", u)
	}
	w.longAgo()
	host.close()
	<-host.serve
	if u := looker.use(); u.Clients != 0 || u.IdleMS >= almostAnHour {
		t.Errorf("after the host has gone: %+v", u)
	}
}

func TestAUsedAgentIsNotRetired(t *testing.T) {
	hour := wire.Query{Op: wire.OpRetire, LimitMS: almostAnHour}
	for name, keep := range map[string]func(*testing.T, *world){
		"just used":       func(t *testing.T, w *world) { t.Helper(); w.agent.use.touch() },
		"somebody is in":  func(t *testing.T, w *world) { t.Helper(); w.connect(t).sh("true"); w.longAgo() },
		"a job goes on":   func(t *testing.T, w *world) { t.Helper(); w.look(t).sh("nohup sleep 8771 >/dev/null 2>&1 &") },
		"it cannot tell":  func(t *testing.T, w *world) { t.Helper(); w.agent.use.clients++ },
		"retired already": func(t *testing.T, w *world) { t.Helper(); w.agent.use.claim(0) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			looker := w.look(t)
			looker.jobs() // its hello was heard
			w.longAgo()
			keep(t, w)
			if a := looker.query(hour); a.Retired || a.Error != "" || a.Use == nil {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestARetiredAgentTakesNobody(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	w.agent.journal = journal{open: func() (io.WriteCloser, error) { return kept{&log}, nil }}
	looker := w.look(t)
	looker.jobs()
	w.longAgo()
	if a := looker.query(wire.Query{Op: wire.OpRetire, LimitMS: almostAnHour}); !a.Retired || a.Jobs != 0 {
		t.Fatalf("%+v", a)
	}
	if !strings.Contains(log.String(), "dockerbox-agent: nobody has used the sandbox for 59m0s") {
		t.Errorf("the log says %q", log.String())
	}
	hostIn, agentIn, agentOut, hostOut := streamPair(t)
	defer closeAll([]*os.File{hostIn, hostOut})
	if err := w.agent.Serve(agentIn, agentOut, w.user); err == nil {
		t.Error("somebody was served")
	}
	f, err := wire.NewReader(hostOut, wire.MaxHello).Next()
	must(t, err)
	hello, err := wire.Decode[wire.Hello](f)
	if err != nil || !strings.Contains(hello.Error, "being removed") {
		t.Errorf("%+v, %v", hello, err)
	}
	// Whoever retired it may have died: it takes hosts again.
	w.agent.use.mu.Lock()
	w.agent.use.retired = time.Now()
	w.agent.use.mu.Unlock()
	w.connect(t).sh("echo on").want("on\n", 0)
}

// A screen on which nothing was opened keeps nobody.
func TestAnEmptyScreenIsFurniture(t *testing.T) {
	w := newWorld(t)
	looker := w.look(t)
	looker.sh(`cp "$(command -v sleep)" Xvnc; cp Xvnc editor
mkdir used; printf './Xvnc 8781 >/dev/null 2>&1 & wait\n' >launcher.sh
sed 's/8781/8782/; s,wait,./editor 8783 \& wait,' launcher.sh >used/launcher.sh
setsid -f bash launcher.sh >/dev/null 2>&1`).want("", 0)
	eventually(t, "it is a screen", func() bool { a := looker.jobs(); return a.Jobs == 2 && a.Screen == 2 })
	w.longAgo()
	if a := looker.query(wire.Query{Op: wire.OpRetire, LimitMS: almostAnHour}); !a.Retired {
		t.Errorf("%+v", a)
	}
	looker.sh("setsid -f bash used/launcher.sh >/dev/null 2>&1; setsid -f ./Xvnc 8784 >/dev/null 2>&1").want("", 0)
	eventually(t, "what was opened there counts, and what only has such a name", func() bool { a := looker.jobs(); return a.Jobs == 6 && a.Screen == 4 })
}

// What its owner should know of a sandbox is said once, in a line each.
func TestWhatTheLogTells(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	w.agent.journal = journal{open: func() (io.WriteCloser, error) { return kept{&log}, nil }}
	w.agent.loginLimit = 200 * time.Millisecond
	w.rc(".profile", "while :; do :; done\n")
	c := w.connect(t)
	c.sh("echo on").want("on\n", 0)
	c.query(wire.Query{Op: wire.OpEnd})
	want := "dockerbox-agent: the login profile of user " + w.user + " was ended, for it did not end within 200ms; commands run without what it had left to do\n" +
		"dockerbox-agent: everything is asked to end, and given 0s\n"
	if got := log.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	w.agent.journal.say("two\nlines")
	if got := log.String()[len(want):]; got != "dockerbox-agent: two lines\n" {
		t.Errorf("%q", got)
	}
	// A log that cannot be had changes nothing.
	w.agent.journal.open = func() (io.WriteCloser, error) { return nil, io.ErrClosedPipe }
	w.agent.journal.say("nobody hears it")
	(journal{}).say("nor this")
}
