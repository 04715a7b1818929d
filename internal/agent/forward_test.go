//go:build linux

package agent

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// serving listens on a port of the loopback and talks to whoever connects, until the test ends.
func serving(t *testing.T, address string, talk func(*net.TCPConn)) (port int) {
	t.Helper()
	at, err := netip.ParseAddrPort(address)
	must(t, err)
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	must(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return // the test is over
			}
			all.Go(func() {
				defer func() { _ = c.Close() }() // the talk may have
				talk(c)
			})
		}
	})
	t.Cleanup(func() { must(t, l.Close()); all.Wait() })
	return portOf(t, l.Addr())
}

func portOf(t *testing.T, address net.Addr) int {
	t.Helper()
	at, err := netip.ParseAddrPort(address.String())
	must(t, err)
	return int(at.Port())
}

// dial opens a connection.
func (c *client) dial(port int) *answer {
	c.tb.Helper()
	return c.dialTo(wire.Dial{Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", port)}, false)
}

func (c *client) dialTo(d wire.Dial, hoard bool) *answer {
	c.tb.Helper()
	a := &answer{hoard: hoard, connected: make(chan struct{}), ended: make(chan struct{})}
	return c.send(a, func(id uint32) wire.Frame { return wire.Encode(wire.TypeDial, id, d) })
}

// await waits for something that comes to a dial.
func (a *answer) await(what string, c <-chan struct{}) {
	a.client.tb.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		a.client.tb.Fatalf("connection %d: not %s; so far %.300q", a.id, what, a.output())
	}
}

// supply sends all of data as input, within the credit that the agent gives.
func (a *answer) supply(data []byte) {
	a.client.tb.Helper()
	for sent := 0; sent < len(data); {
		a.client.mu.Lock()
		n := min(wire.Window+a.credit-sent, wire.MaxData, len(data)-sent)
		a.client.mu.Unlock()
		if n == 0 {
			select {
			case <-a.more:
				continue
			case <-time.After(patience):
				a.client.tb.Errorf("connection %d takes no more than %d bytes", a.id, sent)
				return
			}
		}
		a.send(wire.TypeInput, data[sent:sent+n])
		sent += n
	}
}

// noise is size bytes that nobody else has.
func noise(seed, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(data) // it never fails
	return data
}

func TestForwardPassesOnTheEndOfInputAlone(t *testing.T) {
	port := serving(t, "127.0.0.1:0", func(c *net.TCPConn) {
		got, err := io.ReadAll(c) // returns when the end of input came through
		if err == nil {
			_, err = fmt.Fprintf(c, "%x", sha256.Sum256(got))
		}
		if err != nil {
			t.Error(err)
		}
	})
	a := newWorld(t).connect(t).dial(port)
	a.await("connected", a.connected)
	data := noise(1, 5<<20)
	a.supply(data)
	a.send(wire.TypeEnd, nil)
	a.wait().want(fmt.Sprintf("%x", sha256.Sum256(data)), 0)
	if want := []wire.Type{wire.TypeAnswer, wire.TypeOutput, wire.TypeEnd, wire.TypeExit}; !slices.Equal(trimCredits(a.frames), want) {
		t.Errorf("frames %q, want %q", a.frames, want)
	}
}

// trimCredits leaves out the frames that come when they come, and what follows another of its kind.
func trimCredits(frames []wire.Type) []wire.Type {
	return slices.Compact(slices.DeleteFunc(slices.Clone(frames), func(t wire.Type) bool { return t == wire.TypeCredit }))
}

func TestForwardPassesOnTheEndOfOutputAlone(t *testing.T) {
	got := make(chan []byte, 1)
	port := serving(t, "127.0.0.1:0", func(c *net.TCPConn) {
		if _, err := io.WriteString(c, "bye"); err != nil {
			t.Error(err)
		}
		if err := c.CloseWrite(); err != nil {
			t.Error(err)
		}
		rest, err := io.ReadAll(c)
		if err != nil {
			t.Error(err)
		}
		got <- rest
	})
	a := newWorld(t).connect(t).dial(port)
	a.await("at its end", a.ended)
	if said := a.output(); said != "bye" {
		t.Errorf("%q came before the end", said)
	}
	data := noise(2, 3<<20)
	a.supply(data)
	a.send(wire.TypeEnd, nil)
	a.wait().want("bye", 0)
	if rest := <-got; !bytes.Equal(rest, data) {
		t.Errorf("%d bytes came through after the end, not those %d that were sent", len(rest), len(data))
	}
}

// Row by row what cannot be connected to, and what an agent must not connect to at all.
func TestForwardSaysWhatCannotBeReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	free := l.Addr().String()
	must(t, l.Close())
	c := newWorld(t).connect(t)
	for name, tc := range map[string]struct {
		dial         wire.Dial
		reason, text string
	}{
		"nobody listens": {wire.Dial{Network: "tcp", Address: free}, wire.ReasonRefused, "connection refused"},
		"another host":   {wire.Dial{Network: "tcp", Address: "192.0.2.1:80"}, wire.ReasonInternal, "not a port of this sandbox"},
		"all interfaces": {wire.Dial{Network: "tcp", Address: "0.0.0.0:80"}, wire.ReasonInternal, "not a port of this sandbox"},
		"a name":         {wire.Dial{Network: "tcp", Address: "localhost:80"}, wire.ReasonInternal, "not a port of this sandbox"},
		"port zero":      {wire.Dial{Network: "tcp", Address: "127.0.0.1:0"}, wire.ReasonInternal, "not a port of this sandbox"},
		"no address":     {wire.Dial{Network: "tcp"}, wire.ReasonInternal, "not a port of this sandbox"},
		"a socket":       {wire.Dial{Network: "unix", Address: "/run/docker.sock"}, wire.ReasonInternal, `"unix" is not tcp`},
		"udp":            {wire.Dial{Network: "udp", Address: "127.0.0.1:53"}, wire.ReasonInternal, `"udp" is not tcp`},
		"long":           {wire.Dial{Network: "tcp", Address: strings.Repeat("x", 100_000)}, wire.ReasonInternal, "not a port of this sandbox"},
	} {
		a := c.dialTo(tc.dial, false).wait()
		if a.exit.Reason != tc.reason || !strings.Contains(a.exit.Text, tc.text) || len(a.exit.Text) > 200 || len(a.frames) != 1 {
			t.Errorf("%s: %q and %+v, want reason %s and %q", name, a.frames, a.exit, tc.reason, tc.text)
		}
	}
}

func TestForwardFindsAListenerOfIPv6Alone(t *testing.T) {
	port := serving(t, "[::1]:0", func(c *net.TCPConn) {
		if _, err := io.WriteString(c, "six"); err != nil {
			t.Error(err)
		}
	})
	a := newWorld(t).connect(t).dial(port)
	a.await("at its end", a.ended)
	a.send(wire.TypeEnd, nil)
	a.wait().want("six", 0)
}

// A listener whose queue is full neither accepts nor refuses. Nobody else waits for it, and it can be given up.
func TestForwardGivesUpAListenerThatDoesNotAccept(t *testing.T) {
	socket := func() (fd int) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		must(t, err)
		t.Cleanup(func() { must(t, unix.Close(fd)) })
		return fd
	}
	listener := socket()
	must(t, unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, unix.Listen(listener, 0))
	name, err := unix.Getsockname(listener)
	must(t, err)
	at, ok := name.(*unix.SockaddrInet4)
	if !ok {
		t.Fatalf("%T is no IPv4 address", name)
	}
	eventually(t, "the queue is full", func() bool {
		fd := socket()
		if err := unix.Connect(fd, name); !errors.Is(err, unix.EINPROGRESS) {
			must(t, err)
		}
		_, err := unix.Getpeername(fd)
		return err != nil
	})
	c := newWorld(t).connect(t)
	a := c.dial(at.Port)
	c.argv("true").want("", 0)
	a.kill()
	if x := a.wait().exit; x.Reason != wire.ReasonRefused || len(a.frames) != 1 {
		t.Errorf("%+v after %q", x, a.frames)
	}
}

// A socket that happens to get the port it connects to is its own peer.
func TestForwardKnowsAConnectionToItself(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	file := os.NewFile(uintptr(fd), "self")
	defer file.Close()
	must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := unix.Getsockname(fd)
	must(t, err)
	raw, err := file.SyscallConn()
	must(t, err)
	p := &peer{file, raw}
	if p.isSelf() {
		t.Error("it is not connected yet")
	}
	must(t, unix.Connect(fd, name))
	if !p.isSelf() {
		t.Error("it is not noticed")
	}
}

func TestForwardCarriesAHundredAtOnce(t *testing.T) {
	port := serving(t, "127.0.0.1:0", func(c *net.TCPConn) {
		if _, err := io.Copy(c, c); err != nil { // back again, as it comes
			t.Error(err)
		}
	})
	const connections, size = 100, 2 << 20
	c := newWorld(t).connect(t)
	before := runtime.NumGoroutine()
	all := make([]*answer, connections)
	for i := range all {
		all[i] = c.dial(port)
	}
	for _, a := range all {
		a.await("connected", a.connected)
	}
	// Two of the agent's for each; the others are the echoes.
	if more := runtime.NumGoroutine() - before; more > 4*connections {
		t.Errorf("%d connections cost %d goroutines", connections, more)
	}
	var group sync.WaitGroup
	for i, a := range all {
		group.Go(func() {
			data := noise(i, size)
			a.supply(data)
			a.send(wire.TypeEnd, nil)
			a.await("over", a.done)
			if got := a.output(); sha256.Sum256([]byte(got)) != sha256.Sum256(data) {
				t.Errorf("connection %d: %d other bytes came back", i, len(got))
			}
		})
	}
	group.Wait()
}

// What one host does not read waits in its own connection alone.
func TestForwardsDoNotWaitForASlowReader(t *testing.T) {
	port := serving(t, "127.0.0.1:0", func(c *net.TCPConn) {
		for data := noise(3, 1<<16); ; {
			if _, err := c.Write(data); err != nil {
				return // whoever asked has gone
			}
		}
	})
	echo := serving(t, "127.0.0.1:0", func(c *net.TCPConn) { _, _ = io.Copy(c, c) }) // the test looks at what comes back
	w := newWorld(t)
	c := w.connect(t)
	slow := c.dialTo(wire.Dial{Network: "tcp", Address: fmt.Sprintf("127.0.0.1:%d", port)}, true)
	eventually(t, "the window is full", func() bool { return len(slow.output()) == wire.Window })
	w.agent.courtesy.mu.Lock()
	if w.agent.courtesy.live != 1 {
		t.Error("commands do not know of the flood")
	}
	w.agent.courtesy.mu.Unlock()
	a := c.dial(echo)
	data := noise(4, 4<<20)
	a.supply(data)
	a.send(wire.TypeEnd, nil)
	a.wait().want(string(data), 0)
	c.argv("echo", "hi").want("hi\n", 0)
	if n := len(slow.output()); n != wire.Window {
		t.Errorf("%d bytes came, with %d granted", n, wire.Window)
	}
	slow.kill()
	if x := slow.wait().exit; !x.Killed {
		t.Errorf("%+v", x)
	}
}

// How a connection ends for the one that listens, when its host ends it.
func TestForwardEndsAsItsHostDoes(t *testing.T) {
	type end struct {
		bytes int
		err   error
	}
	ends := make(chan end, 1)
	port := serving(t, "127.0.0.1:0", func(c *net.TCPConn) {
		n, err := io.Copy(io.Discard, c)
		ends <- end{int(n), err}
	})
	w := newWorld(t)
	data := noise(5, wire.Window)
	for name, tc := range map[string]struct {
		end   func(*answer)
		whole bool
	}{
		"closed":                {func(a *answer) { a.send(wire.TypeEnd, nil); a.kill() }, true},
		"broken off":            {(*answer).kill, false},
		"the host is gone":      {func(a *answer) { a.client.close() }, false},
		"gone after its end":    {func(a *answer) { a.send(wire.TypeEnd, nil); a.client.close() }, true},
		"closed and then again": {func(a *answer) { a.send(wire.TypeEnd, nil); a.kill(); a.kill() }, true},
	} {
		a := w.connect(t).dial(port)
		a.await("connected", a.connected)
		a.supply(data)
		tc.end(a)
		got := <-ends
		if tc.whole && (got.err != nil || got.bytes != len(data)) || !tc.whole && !errors.Is(got.err, unix.ECONNRESET) {
			t.Errorf("%s: %d of %d bytes and %v", name, got.bytes, len(data), got.err)
		}
		a.await("over", a.done)
	}
}

// What breaks off is not taken for what ends.
func TestForwardTellsABreakFromAnEnd(t *testing.T) {
	port := serving(t, "127.0.0.1:0", func(c *net.TCPConn) {
		if _, err := io.WriteString(c, "half"); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil { // "half" was read
			t.Error(err)
		}
		if err := c.SetLinger(0); err != nil {
			t.Error(err)
		}
	})
	a := newWorld(t).connect(t).dial(port)
	a.until("half")
	a.supply([]byte("x"))
	if a.wait(); a.exit.Reason != wire.ReasonReset || a.exit.Text != "connection reset by peer" || slices.Contains(a.frames, wire.TypeEnd) {
		t.Errorf("%+v, frames %q", a.exit, a.frames)
	}
}

// A peer that has closed shows only at the next bytes to it.
func TestForwardNoticesAPeerThatHasGone(t *testing.T) {
	port := serving(t, "127.0.0.1:0", func(*net.TCPConn) {})
	a := newWorld(t).connect(t).dial(port)
	a.await("at its end", a.ended)
	select {
	case <-a.done:
		t.Fatalf("it is over, and might have been half an end: %+v", a.exit)
	default:
	}
	limit := time.Now().Add(patience)
	for over := false; !over && time.Now().Before(limit); {
		a.send(wire.TypeInput, []byte("x"))
		select {
		case <-a.done:
			over = true
		default:
		}
	}
	if x := a.wait().exit; x.Reason != wire.ReasonReset {
		t.Errorf("%+v", x)
	}
}

// Input that goes on when the connection is over, or beyond the window, is treated as that of a command.
func TestForwardHoldsItsHostToTheWindow(t *testing.T) {
	port := serving(t, "127.0.0.1:0", func(c *net.TCPConn) { _, _ = c.Read(nil); <-t.Context().Done() })
	c := newWorld(t).connect(t)
	a := c.dial(port)
	a.await("connected", a.connected)
	for range 64 { // the kernel takes some of it
		if c.out.Write(wire.Frame{Type: wire.TypeInput, ID: a.id, Payload: make([]byte, wire.MaxData)}) != nil {
			break
		}
	}
	<-c.serve
	if c.err == nil || !strings.Contains(c.err.Error(), "bytes of input with") {
		t.Errorf("the connection ended with %v", c.err)
	}
}

func TestTooManyForwards(t *testing.T) {
	w := newWorld(t)
	c := &conn{agent: w.agent, user: w.user, live: map[uint32]served{}, gone: make(chan struct{})}
	var got bytes.Buffer
	c.w = wire.NewWriter(&got)
	for id := range uint32(maxForwards) {
		c.live[id+1] = newForward(c, id+1, wire.Dial{})
	}
	c.forwards = maxForwards
	must(t, c.start(maxForwards+1, newForward(c, maxForwards+1, wire.Dial{})))
	f, err := wire.NewReader(&got, wire.MaxFromAgent).Next()
	must(t, err)
	if x, err := wire.Decode[wire.Exit](f); err != nil || f.ID != maxForwards+1 || x.Reason != wire.ReasonInternal || !strings.Contains(x.Text, "1024 ports") {
		t.Errorf("%+v, %v", x, err)
	}
	// A command has a bound of its own.
	must(t, c.start(maxForwards+2, newRun(c, maxForwards+2, wire.Run{Argv: byteWords("true")})))
	c.runs.Wait()
	for id := range uint32(maxForwards) {
		c.forget(id + 1)
	}
	if c.forwards != 0 || len(c.live) != 0 {
		t.Errorf("%d forwards are counted, of %d that live", c.forwards, len(c.live))
	}
}

// A thousand that came and went leave nothing behind.
func TestForwardsLeaveNothing(t *testing.T) {
	port := serving(t, "127.0.0.1:0", func(c *net.TCPConn) { _, _ = io.Copy(c, c) }) // the test looks at what comes back
	c := newWorld(t).connect(t)
	one := func(i int) {
		a := c.dial(port)
		a.supply([]byte("hi"))
		switch i % 3 {
		case 0:
			a.send(wire.TypeEnd, nil)
			a.wait().want("hi", 0)
		case 1:
			a.until("hi")
			a.kill()
		default:
			a.send(wire.TypeEnd, nil)
			a.kill()
		}
		a.wait()
	}
	for i := range 30 {
		one(i)
	}
	before, files := runtime.NumGoroutine(), openFiles(t)
	for i := range 1000 {
		one(i)
	}
	const some = 10 // that are just ending, on either side
	eventually(t, "all goroutines and files are gone", func() bool {
		return runtime.NumGoroutine() <= before+some && openFiles(t) <= files+some
	})
}

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(all)
}

// A flood through a port counts as company for commands, and only while it is there.
func TestForwardsAreGuestsOfCommands(t *testing.T) {
	var c courtesy
	idle := c.guest()
	command := c.begin()
	if c.company() {
		t.Error("a connection that waits is company")
	}
	command.over()
	idle.grow()
	idle.grow()
	command = c.begin()
	if !c.company() || c.live != 2 {
		t.Errorf("a flood is no company; %d live", c.live)
	}
	command.over()
	idle.over()
	idle.over()
	if c.live != 0 || c.young != 0 {
		t.Errorf("%d live, %d young", c.live, c.young)
	}
}
