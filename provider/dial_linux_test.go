package provider_test

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// A connection to a port does what net.Conn says, through frames and a real agent.
func TestDialedIsANetConn(t *testing.T) {
	e := newEngine(t)
	env, err := newProvider(t, e).CreateEnvironment(t.Context(), fresh(e)(), "")
	if err != nil {
		t.Fatal(err)
	}
	dialer, ok := env.(contract.Dialer)
	if !ok {
		t.Fatalf("%T offers no Dial", env)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nettest.TestConn(t, func() (near, far net.Conn, stop func(), err error) {
		near, err = dialer.Dial(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			return nil, nil, nil, err
		}
		far, err = l.Accept()
		return near, far, func() { _, _ = near.Close(), far.Close() }, err // most tests have closed them
	})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := env.Cleanup(t.Context(), true); err != nil {
		t.Error(err)
	}
}
