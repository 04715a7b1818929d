package environment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

func TestDialRefusesWhatIsNoPort(t *testing.T) {
	e := connect(t, &testBox{play: obedient("one", nil)})
	for _, to := range [][2]string{
		{"udp", "127.0.0.1:80"}, {"unix", "/run/s"}, {"tcp6", "[::1]:80"}, {"tcp", "[::1]:80"}, {"tcp", "192.0.2.1:80"}, {"tcp", "0.0.0.0:80"},
		{"tcp", "localhost:80"}, {"tcp", "127.0.0.1:0"}, {"tcp", "127.0.0.1"}, {"tcp", ""}, {"", ""}, {"tcp", "127.0.0.1:70000"}, {"tcp", "\x1b[31m"},
	} {
		c, err := e.Dial(t.Context(), to[0], to[1])
		if got := backend(t, err); c != nil || !strings.Contains(got.Reason, "is not a port of the sandbox") || strings.Contains(got.Reason, "\x1b") {
			t.Errorf("%q: %+v", to, got)
		}
	}
}

// dials plays an agent that lets connect decide about each dial.
func dials(connect func(a *far, id uint32, d wire.Dial)) *testBox {
	return &testBox{play: func(_ int, a *far) {
		if !a.hello("one", wire.FeatureDial) {
			return
		}
		for {
			f, err := a.in.Next()
			if err != nil {
				return
			}
			switch f.Type {
			case wire.TypeQuery:
				a.send(wire.Encode(wire.TypeAnswer, f.ID, wire.Answer{}))
			case wire.TypeDial:
				d, err := wire.Decode[wire.Dial](f)
				if err != nil {
					return
				}
				connect(a, f.ID, d)
			}
		}
	}}
}

// stand answers that the connection stands.
func (a *far) stand(id uint32) { a.send(wire.Encode(wire.TypeAnswer, id, wire.Answer{})) }

func TestDialSaysWhyThereIsNoConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		play    func(a *far, id uint32, d wire.Dial)
		want    string
		refused bool
	}{
		"refused": {func(a *far, id uint32, d wire.Dial) {
			a.exit(id, wire.Exit{Reason: wire.ReasonRefused, Text: "connection refused"})
		}, `nothing listens on port 8080 in sandbox "t"`, true},
		"slow": {func(a *far, id uint32, d wire.Dial) {
			a.exit(id, wire.Exit{Reason: wire.ReasonRefused, Text: "connection timed out\x1b[31m"})
		}, `port 8080 in sandbox "t" cannot be connected to: connection timed out [31m`, false},
		"the agent failed": {func(a *far, id uint32, d wire.Dial) {
			a.exit(id, wire.Exit{Reason: wire.ReasonInternal, Text: "1024 ports are connected to already"})
		}, "cannot be connected to: 1024 ports", false},
		"the agent goes away": {func(a *far, id uint32, d wire.Dial) { _ = a.Close() }, `the connection to sandbox "t" was lost: the stream ended`, false},
		"silence":             {func(*far, uint32, wire.Dial) {}, `the connection to sandbox "t" was lost: the agent does not answer`, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := connect(t, dials(func(a *far, id uint32, d wire.Dial) {
					if d != (wire.Dial{Network: "tcp", Address: "127.0.0.1:8080"}) {
						t.Errorf("it asks for %+v", d)
					}
					tc.play(a, id, d)
				}))
				c, err := e.Dial(t.Context(), "tcp", "127.0.0.1:8080")
				if got := backend(t, err); c != nil || !strings.Contains(got.Reason, tc.want) || errors.Is(err, contract.ErrRefused) != tc.refused {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// An agent that does not know dials would never answer one.
func TestDialNeedsAnAgentThatKnowsIt(t *testing.T) {
	e := connect(t, &testBox{play: obedient("one", nil)})
	_, err := e.Dial(t.Context(), "tcp", "127.0.0.1:8080")
	if got := backend(t, err); !strings.Contains(got.Reason, "older version") || !strings.Contains(got.Hint, "--recreate") {
		t.Errorf("%+v", got)
	}
}

// A stream that broke unnoticed is made anew, and the caller never hears of it. A connection over it has ended.
func TestDialConnectsAnew(t *testing.T) {
	b := dials(func(a *far, id uint32, _ wire.Dial) { a.stand(id) })
	e := connect(t, b)
	first, err := e.Dial(t.Context(), "tcp", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	_ = b.ends[0].Close()
	b.mu.Unlock()
	second, err := e.Dial(t.Context(), "tcp", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := second.Write([]byte("x")); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	_, err = first.Read(make([]byte, 1))
	if got := backend(t, err); !strings.Contains(got.Reason, "was lost") {
		t.Errorf("%+v", got)
	}
	if _, err = first.Write([]byte("x")); !strings.Contains(backend(t, err).Reason, "was lost") {
		t.Errorf("%v", err)
	}
}

// A paused sandbox is said to be, and what is connected to it waits.
func TestDialDoesNotWaitForAPausedSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := make(chan bool, 2)
		kills := make(chan uint32, 1)
		b := &testBox{state: Running, play: func(_ int, a *far) {
			if !a.hello("one", wire.FeatureDial) {
				return
			}
			for {
				f, err := a.in.Next()
				switch {
				case err != nil:
					return
				case f.Type == wire.TypeDial && len(silent) == 0:
					silent <- true
					a.stand(f.ID)
				case f.Type == wire.TypeKill:
					kills <- f.ID
					a.exit(f.ID, wire.Exit{Killed: true})
				case f.Type == wire.TypeInput:
					a.output(f.ID, "after")
				}
			}
		}}
		e := connect(t, b)
		before, err := e.Dial(t.Context(), "tcp", "127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		b.mu.Lock()
		b.state = Paused
		b.mu.Unlock()
		began := time.Now()
		_, err = e.Dial(t.Context(), "tcp", "127.0.0.1:1")
		if got := backend(t, err); !strings.Contains(got.Reason, "is paused") || time.Since(began) > 2*pingEvery {
			t.Errorf("after %s: %+v", time.Since(began), got)
		}
		<-kills // the one that nobody waits for any more
		if _, err := before.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(before, got); err != nil || string(got) != "after" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestDialCanBeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kills := make(chan uint32, 1)
		e := connect(t, dials(func(a *far, id uint32, _ wire.Dial) {
			if f, ok := a.next(wire.TypeKill); ok {
				kills <- f.ID - id
			}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := e.Dial(ctx, "tcp", "127.0.0.1:1")
		if got := backend(t, err); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(got.Reason, "gave up") {
			t.Errorf("%+v", got)
		}
		if off := <-kills; off != 0 {
			t.Error("something else was killed")
		}
	})
}

// What an agent says of an end is what a reader hears.
func TestDialedEndsAsItsAgentSays(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(a *far, id uint32)
		want error
	}{
		"end":                     {func(a *far, id uint32) { a.send(wire.Frame{Type: wire.TypeEnd, ID: id}) }, io.EOF},
		"end and exit":            {func(a *far, id uint32) { a.send(wire.Frame{Type: wire.TypeEnd, ID: id}); a.exit(id, wire.Exit{}) }, io.EOF},
		"reset":                   {func(a *far, id uint32) { a.exit(id, wire.Exit{Reason: wire.ReasonReset, Text: "x"}) }, contract.ErrReset},
		"exit without an end":     {func(a *far, id uint32) { a.exit(id, wire.Exit{}) }, contract.ErrReset},
		"failure of the agent":    {func(a *far, id uint32) { a.exit(id, wire.Exit{Reason: wire.ReasonInternal, Text: "x"}) }, contract.ErrReset},
		"the stream":              {func(a *far, _ uint32) { _ = a.Close() }, errLost},
		"more output than is due": {flood, errLost},
	} {
		t.Run(name, func(t *testing.T) {
			e := connect(t, dials(func(a *far, id uint32, _ wire.Dial) {
				a.stand(id)
				a.output(id, "all of it")
				tc.end(a, id)
			}))
			c, err := e.Dial(t.Context(), "tcp", "127.0.0.1:1")
			if err != nil {
				t.Fatal(err)
			}
			got, err := readUntilError(c)
			if !errors.Is(err, tc.want) || !strings.HasPrefix(got, "all of it") {
				t.Errorf("%.20q, then %v", got, err)
			}
			if _, again := c.Read(make([]byte, 1)); !errors.Is(again, tc.want) {
				t.Errorf("at the next read %v", again)
			}
			if !errors.Is(tc.want, io.EOF) {
				if _, err := c.Write([]byte("x")); !errors.Is(err, tc.want) {
					t.Errorf("a write gives %v", err)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func readUntilError(r io.Reader) (string, error) {
	var all bytes.Buffer
	for buf := make([]byte, 4096); ; {
		n, err := r.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			return all.String(), err
		}
	}
}

// Close says that it was all, Reset that it was not; a second of either says that it is too late.
func TestDialedTellsItsAgentHowItEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(contract.Conn) error
		want string
	}{
		"close":             {contract.Conn.Close, "DIEK"},
		"reset":             {contract.Conn.Reset, "DIK"},
		"half":              {contract.Conn.CloseWrite, "DIE"},
		"half, then close":  {func(c contract.Conn) error { return errors.Join(c.CloseWrite(), c.Close()) }, "DIEK"},
		"half, then reset":  {func(c contract.Conn) error { return errors.Join(c.CloseWrite(), c.Reset()) }, "DIEK"},
		"twice":             {func(c contract.Conn) error { return errors.Join(c.Close(), wants(c.Close())) }, "DIEK"},
		"reset after close": {func(c contract.Conn) error { return errors.Join(c.Close(), wants(c.Reset())) }, "DIEK"},
		"half after close":  {func(c contract.Conn) error { return errors.Join(c.Close(), wants(c.CloseWrite())) }, "DIEK"},
		"write after half": {func(c contract.Conn) error {
			err := c.CloseWrite()
			_, late := c.Write([]byte("y"))
			return errors.Join(err, wants(late))
		}, "DIE"},
	} {
		t.Run(name, func(t *testing.T) {
			heard := make(chan string, 1)
			e := connect(t, &testBox{play: func(_ int, a *far) {
				if !a.hello("one", wire.FeatureDial) {
					return
				}
				var types []byte
				for {
					f, err := a.in.Next()
					if err != nil {
						return
					}
					if f.Type == wire.TypeQuery { // the test's mark behind everything
						heard <- string(types)
						a.send(wire.Encode(wire.TypeAnswer, f.ID, wire.Answer{}))
						continue
					}
					if types = append(types, byte(f.Type)); f.Type == wire.TypeDial {
						a.stand(f.ID)
					}
				}
			}})
			c, err := e.Dial(t.Context(), "tcp", "127.0.0.1:1")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if err := tc.end(c); err != nil {
				t.Error(err)
			}
			<-e.conn.ask(wire.Query{Op: wire.OpPing})
			if got := <-heard; got != tc.want {
				t.Errorf("the agent hears %q, want %q", got, tc.want)
			}
		})
	}
}

// wants makes an error of what should be net.ErrClosed and is not.
func wants(err error) error {
	switch {
	case errors.Is(err, net.ErrClosed):
		return nil
	case err == nil:
		return errors.New("got no error, want that it is closed")
	}
	return fmt.Errorf("got %w, want that it is closed", err)
}

// What nobody reads costs a window, and holds up no other.
func TestDialedWaitsAlone(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), wire.MaxData)
	e := connect(t, dials(func(a *far, id uint32, _ wire.Dial) {
		a.stand(id)
		for range wire.Window / len(chunk) {
			a.output(id, string(chunk))
		}
	}))
	var all []contract.Conn
	for range 20 {
		c, err := e.Dial(t.Context(), "tcp", "127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	last := all[len(all)-1]
	if n, err := io.CopyN(io.Discard, last, wire.Window); n != wire.Window || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	for _, c := range all {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What comes after a close is for nobody, and is not kept.
func TestDialedKeepsNothingAfterItsEnd(t *testing.T) {
	e := connect(t, dials(func(a *far, id uint32, _ wire.Dial) {
		a.stand(id)
		a.output(id, "early")
		if _, ok := a.next(wire.TypeKill); ok {
			a.output(id, "late")
		}
	}))
	c, err := e.Dial(t.Context(), "tcp", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	d, ok := c.(*dialed)
	if !ok {
		t.Fatalf("%T", c)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	<-e.conn.ask(wire.Query{Op: wire.OpPing}) // answered behind the last output
	d.call.mu.Lock()
	defer d.call.mu.Unlock()
	if n := len(d.call.pending); n > 0 || d.call.given != wire.Window-len("early")-len("late") {
		t.Errorf("%d pieces are kept, with %d bytes to come", n, d.call.given)
	}
}

// A reader or writer that waits hears of the end.
func TestDialedWakesWhoWaits(t *testing.T) {
	for name, end := range map[string]func(contract.Conn) error{"close": contract.Conn.Close, "reset": contract.Conn.Reset} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := connect(t, dials(func(a *far, id uint32, _ wire.Dial) { a.stand(id) }))
				c, err := e.Dial(t.Context(), "tcp", "127.0.0.1:1")
				if err != nil {
					t.Fatal(err)
				}
				ends := make(chan error, 2)
				go func() { _, err := c.Read(make([]byte, 1)); ends <- err }()
				go func() { _, err := c.Write(make([]byte, 2*wire.Window)); ends <- err }()
				synctest.Wait()
				if err := end(c); err != nil {
					t.Error(err)
				}
				for range 2 {
					if err := wants(<-ends); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
