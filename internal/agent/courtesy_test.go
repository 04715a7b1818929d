//go:build linux

package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

func waited(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func TestFloodsYieldToTheYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c courtesy
		flood := c.begin()
		defer flood.over()
		flood.grow()
		if d := waited(flood.yield); d != 0 {
			t.Errorf("with nobody else it waited %v", d)
		}

		short := c.begin()
		time.AfterFunc(3*time.Millisecond, short.over)
		if d := waited(flood.yield); d != 3*time.Millisecond {
			t.Errorf("for a command of 3 ms it waited %v", d)
		}

		long := c.begin()
		defer long.over()
		if d := waited(flood.yield); d != youth {
			t.Errorf("for a long command it waited %v", d)
		}
		if d := waited(flood.yield); d != 0 {
			t.Errorf("for a command that has grown it waited %v", d)
		}

		stop := time.Now().Add(time.Second)
		go func() { // somebody is always young
			for time.Now().Before(stop) {
				v := c.begin()
				time.Sleep(youth / 2)
				w := c.begin()
				v.over()
				time.Sleep(youth / 4)
				w.over()
			}
		}()
		time.Sleep(youth / 4)
		for time.Now().Before(stop) {
			if d := waited(flood.yield); d > youth {
				t.Fatalf("beside many short commands it waited %v for a frame", d)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func TestCompanyLastsAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c courtesy
		a := c.begin()
		time.Sleep(time.Second)
		a.over()
		c.begin().over()
		if c.company() {
			t.Error("commands that follow each other are company")
		}
		a = c.begin()
		defer a.over()
		c.begin().over()
		time.Sleep(companyFor - time.Millisecond)
		if !c.company() {
			t.Error("a command that began beside another was forgotten too soon")
		}
		time.Sleep(time.Millisecond)
		if c.company() {
			t.Error("a command that began beside another is remembered for ever")
		}
	})
}

// What a flood has under way cannot be overtaken, so in company it waits for the host to have consumed most of it; but not for ever, because in
// which steps a host grants is up to the host.
func TestFloodHasLittleUnderWayInCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c courtesy
		o := newOutput(1, wire.NewWriter(writerFunc(func(p []byte) (int, error) { return len(p), nil })), nil)
		o.visit = c.begin()
		defer o.visit.over()
		take := func(most, want int, wait time.Duration) {
			t.Helper()
			began := time.Now()
			if n := o.reserve(most); n != want {
				t.Fatalf("it may send %d bytes, not %d", n, want)
			}
			if d := time.Since(began); d != wait {
				t.Fatalf("it waited %v, not %v", d, wait)
			}
			o.put(wire.TypeOutput, make([]byte, want), want)
		}
		take(wire.MaxData, wire.MaxData, 0)
		take(wire.MaxData, wire.MaxData, 0) // alone, the window is its only bound

		c.begin().over()
		o.grant(2 * wire.MaxData)
		take(wire.MaxData, inCompany, 0)
		take(wire.MaxData, inCompany, youth) // nothing was granted
		time.AfterFunc(time.Millisecond, func() { o.grant(inCompany) })
		time.AfterFunc(2*time.Millisecond, func() { o.grant(inCompany) })
		take(wire.MaxData, inCompany, 2*time.Millisecond)
		time.AfterFunc(time.Millisecond, o.stop)
		take(wire.MaxData, 0, time.Millisecond)
		o.start()

		time.Sleep(companyFor)
		take(wire.MaxData, wire.MaxData, 0)
	})
}
