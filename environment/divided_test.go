package environment

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// dividedBox is a box with an agent per account: that of the sandbox's own knows "pn" and "1000", and that "4242" is another.
type dividedBox struct {
	*testBox
	confinement wire.Confinement

	mu    sync.Mutex
	asked []string // users of AttachAs
	boot  int
	last  *far
}

func newDividedBox() *dividedBox {
	d := &dividedBox{confinement: wire.Confinement{NoNewPrivileges: true, Filtered: true, ReadOnly: true}}
	d.testBox = &testBox{play: func(_ int, a *far) { d.serve(a, "first", "own") }}
	return d
}

func (d *dividedBox) AttachAs(ctx context.Context, user string) (Stream, error) {
	d.mu.Lock()
	d.asked = append(d.asked, user)
	boot := "other" + strconv.Itoa(d.boot)
	d.mu.Unlock()
	other := &testBox{play: func(_ int, a *far) {
		d.mu.Lock()
		d.last = a
		d.mu.Unlock()
		d.serve(a, boot, "other")
	}}
	return other.Attach(ctx)
}

// serve answers questions, and each command with who answers it.
func (d *dividedBox) serve(a *far, boot, who string) {
	a.send(wire.Encode(wire.TypeHello, 0, wire.Hello{Name: wire.AgentName, Protocol: wire.Protocol, Boot: boot}))
	for {
		f, err := a.in.Next()
		if err != nil {
			return
		}
		switch f.Type {
		case wire.TypeQuery:
			q, err := wire.Decode[wire.Query](f)
			if err != nil {
				return
			}
			answer := wire.Answer{Account: &wire.Account{Name: "pn", UID: 1000, GID: 1000, Home: "/home/pn", Confinement: &d.confinement}}
			if q.User == "4242" || q.User == strconv.Itoa(wire.AttachUID) {
				answer = wire.Answer{Error: "the agent cannot become it", Reason: wire.ReasonAccount}
			}
			a.send(wire.Encode(wire.TypeAnswer, f.ID, answer))
		case wire.TypeRun:
			a.output(f.ID, who)
			a.exit(f.ID, wire.Exit{})
		}
	}
}

func connectDivided(t *testing.T, d *dividedBox) (*Environment, error) {
	t.Helper()
	e, err := Connect(t.Context(), Options{Container: d, Info: contract.Info{Name: "t"}, Account: "pn", Home: "/home/pn"})
	if err == nil {
		t.Cleanup(func() {
			if err := e.Cleanup(context.Background(), false); err != nil {
				t.Error(err)
			}
		})
	}
	return e, err
}

// A command of the sandbox's own account, by whichever name, goes to its agent; one of another account to that account's, over one
// connection. That it began anew is said once.
func TestEachAccountHasAnAgent(t *testing.T) {
	d := newDividedBox()
	e, err := connectDivided(t, d)
	if err != nil {
		t.Fatal(err)
	}
	says := func(user, want string, recreated bool) {
		t.Helper()
		r, err := e.Execute(t.Context(), contract.Request{Command: "who", User: user})
		if err != nil || string(r.Output) != want || r.Recreated != recreated {
			t.Errorf("%s: %q, recreated %v, %v", user, r.Output, r.Recreated, err)
		}
	}
	says("", "own", false)
	says("1000", "own", false)
	says("4242", "other", false)
	says("4242", "other", false)
	if len(d.asked) != 1 || d.asked[0] != "4242" {
		t.Errorf("attached as %q", d.asked)
	}
	d.mu.Lock()
	d.boot++
	_ = d.last.Close() // it has died
	d.mu.Unlock()
	<-e.others.conns["4242"].ended
	says("4242", "other", true)
	says("4242", "other", false)
	says("", "own", false)
	_, err = e.Execute(t.Context(), contract.Request{Command: "who", User: strconv.Itoa(wire.AttachUID)})
	if b := backend(t, err); !strings.Contains(b.Reason, "that of its connections") {
		t.Errorf("%v", err)
	}
}

func TestAHardenedSandboxThatIsNotIsLetGo(t *testing.T) {
	d := newDividedBox()
	d.confinement.ReadOnly = false
	_, err := connectDivided(t, d)
	if b := backend(t, err); !strings.Contains(b.Reason, `does not keep sandbox "t" hardened: the root directory can be written to`) {
		t.Errorf("%v", err)
	}
	d.playing.Wait() // its connection was closed
}
