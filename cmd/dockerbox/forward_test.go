package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestMappings(t *testing.T) {
	at := func(local string, remote uint16) mapping { return mapping{netip.MustParseAddrPort(local), remote} }
	got, err := parseMappings("127.0.0.1", []string{"80", "8080:80", "0:80", ":81", "65535:1", "0:80"})
	want := []mapping{at("127.0.0.1:80", 80), at("127.0.0.1:8080", 80), at("127.0.0.1:0", 80), at("127.0.0.1:0", 81), at("127.0.0.1:65535", 1), at("127.0.0.1:0", 80)}
	if err != nil || !cmp.Equal(want, got, cmp.AllowUnexported(mapping{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if got, err := parseMappings("::1", []string{"80"}); err != nil || got[0] != at("[::1]:80", 80) {
		t.Errorf("%v, %v", got, err)
	}
}

// All listen or none does.
func TestListenAllIsAllOrNone(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close() }() // nothing was accepted
	taken := netip.MustParseAddrPort(busy.Addr().String())
	all, err := listenAll([]mapping{{netip.MustParseAddrPort("127.0.0.1:0"), 80}, {taken, 81}})
	var backend *contract.BackendError
	if all != nil || !errors.As(err, &backend) {
		t.Fatalf("%v, %v", all, err)
	}
	if want := fmt.Sprintf("port %d of 127.0.0.1 is in use on this machine", taken.Port()); backend.Reason != want || !strings.HasPrefix(backend.Hint, "0:81 takes a port that is free") {
		t.Errorf("%+v", backend)
	}
	if all, err = listenAll([]mapping{{netip.MustParseAddrPort("127.0.0.1:0"), 80}, {netip.MustParseAddrPort("[::1]:0"), 80}}); err != nil || len(all) != 2 || all[0].remote != 80 {
		t.Errorf("%v, %v", all, err)
	}
	if err := closeAll(all); err != nil {
		t.Error(err)
	}
}

func TestCannotListenSaysWhatToDo(t *testing.T) {
	m := mapping{netip.MustParseAddrPort("127.0.0.1:80"), 8000}
	for errno, want := range map[syscall.Errno][2]string{
		syscall.EADDRINUSE:    {"port 80 of 127.0.0.1 is in use on this machine", "0:8000 takes a port that is free; another before the colon takes that one"},
		syscall.EACCES:        {"port 80 of this machine is not for this user", "ports below 1024 often are for root alone: 8080:8000 takes another, 0:8000 any that is free"},
		syscall.EADDRNOTAVAIL: {"this machine has no address 127.0.0.1", "without --address it listens on 127.0.0.1"},
		syscall.EMFILE:        {"this machine cannot listen on 127.0.0.1:80: too many open files", "give a port before the colon that it can listen on, such as 8080:80"},
	} {
		var b *contract.BackendError
		if err := cannotListen(m, &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", errno)}); !errors.As(err, &b) || [2]string{b.Reason, b.Hint} != want {
			t.Errorf("%v: %+v", errno, b)
		}
	}
}

// fakeSandbox connects to listeners of this machine, or fails.
type fakeSandbox struct{ fail error }

func (s *fakeSandbox) Dial(ctx context.Context, network, address string) (contract.Conn, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, contract.ErrRefused
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("%T", c)
	}
	return fakeConn{tcp}, nil
}

type fakeConn struct{ *net.TCPConn }

func (c fakeConn) Reset() error { return errors.Join(c.SetLinger(0), c.Close()) }

// What many connections meet is said once, and again when it has changed.
func TestForwardSaysThingsOnce(t *testing.T) {
	var said bytes.Buffer
	n := forwardNotes{w: &said, name: "b", refused: map[uint16]bool{}}
	away := &contract.BackendError{Reason: "the daemon is away", Hint: "start it"}
	refused := &contract.BackendError{Reason: "nothing listens", Hint: "do", Err: contract.ErrRefused}
	reset := fmt.Errorf("port 80: %w", contract.ErrReset)
	for range 3 {
		n.failed(80, refused)
		n.failed(81, refused)
		n.lost(reset)
		n.lost(nil)
		n.lost(io.ErrUnexpectedEOF)
	}
	n.reached(80)
	n.reached(81)
	for range 3 {
		n.lost(away)
		n.failed(80, away)
	}
	n.failed(80, refused)
	n.failed(80, refused)
	want := `dockerbox: nothing listens on port 80 in sandbox "b", so what connects is closed until something does, on 127.0.0.1 or on all addresses
dockerbox: nothing listens on port 81 in sandbox "b", so what connects is closed until something does, on 127.0.0.1 or on all addresses
dockerbox: the daemon is away; start it
dockerbox: sandbox "b" is reached again
dockerbox: nothing listens on port 80 in sandbox "b", so what connects is closed until something does, on 127.0.0.1 or on all addresses
`
	if diff := cmp.Diff(want, said.String()); diff != "" {
		t.Error(diff)
	}
}

// listener accepts on a port of the loopback until the test ends.
func listener(t *testing.T) (*net.TCPListener, uint16) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // some tests close it
	return l, netip.MustParseAddrPort(l.Addr().String()).Port()
}

// pair is a client and what its connection has become on the other side of a carrier.
func pair(t *testing.T, c *carrier) (client, server *net.TCPConn) {
	t.Helper()
	inside, port := listener(t)
	outside, _ := listener(t)
	go func() {
		if err := c.accept(listening{outside, port}); err != nil {
			t.Error(err)
		}
	}()
	conn, err := net.Dial("tcp", outside.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = inside.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	if err := outside.Close(); err != nil {
		t.Error(err)
	}
	client, ok := conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("%T", conn)
	}
	return client, server
}

// How one side ends is how the other sees it.
func TestCarryPassesEndsOn(t *testing.T) {
	type ends = func(a, b *net.TCPConn, c *carrier) error
	for name, tc := range map[string]struct {
		end  ends
		want error // what reading gives on the other side
	}{
		"half": {func(a, b *net.TCPConn, _ *carrier) error {
			err := a.CloseWrite()
			_, late := b.Write([]byte("late"))
			got := make([]byte, 4)
			_, read := io.ReadFull(a, got)
			return errors.Join(err, late, read)
		}, nil},
		"close":   {func(a, _ *net.TCPConn, _ *carrier) error { return a.Close() }, nil},
		"reset":   {func(a, _ *net.TCPConn, _ *carrier) error { return errors.Join(a.SetLinger(0), a.Close()) }, syscall.ECONNRESET},
		"the end": {func(_, _ *net.TCPConn, c *carrier) error { c.cancel(); return nil }, syscall.ECONNRESET},
	} {
		for _, reverse := range []bool{false, true} {
			t.Run(fmt.Sprint(name, reverse), func(t *testing.T) {
				c := newCarrier(t.Context(), &fakeSandbox{}, "b", io.Discard)
				a, b := pair(t, c)
				if reverse {
					a, b = b, a
				}
				if _, err := a.Write([]byte("all")); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, 3)
				if _, err := io.ReadFull(b, got); err != nil || string(got) != "all" {
					t.Fatalf("%q, %v", got, err)
				}
				if err := tc.end(a, b, c); err != nil {
					t.Error(err)
				}
				if rest, err := io.ReadAll(b); len(rest) > 0 || !errors.Is(err, tc.want) {
					t.Errorf("%q, %v, want %v", rest, err, tc.want)
				}
				_, _ = a.Close(), b.Close() // some have ended
				c.end()
				if len(c.slots) != 0 {
					t.Errorf("%d are carried still", len(c.slots))
				}
			})
		}
	}
}

// Without a sandbox a client sees its connection broken off, not an empty answer.
func TestCarryBreaksOffWhatLeadsNowhere(t *testing.T) {
	for _, fail := range []error{contract.ErrRefused, &contract.BackendError{Reason: "away", Hint: "start it"}} {
		var said bytes.Buffer
		c := newCarrier(t.Context(), &fakeSandbox{fail: fail}, "b", &said)
		l, _ := listener(t)
		accepted := make(chan error, 1)
		go func() { accepted <- c.accept(listening{l, 80}) }()
		for range 3 {
			var got []byte
			client, err := net.Dial("tcp", l.Addr().String())
			if err == nil { // else it was broken off before it could be used
				got, err = io.ReadAll(client)
				_ = client.Close() // it has ended
			}
			if len(got) > 0 || !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%q, %v", got, err)
			}
		}
		if err := errors.Join(l.Close(), <-accepted); err != nil {
			t.Error(err)
		}
		c.end()
		if strings.Count(said.String(), "\n") != 1 {
			t.Errorf("it says %q", said.String())
		}
	}
}
