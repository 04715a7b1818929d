package provider_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// What follows a sandbox goes by what others do to it, and does nothing to it itself.
func TestFollowBringsNothingBack(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	cfg := fresh(e)()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // ends what follows
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			_, err = io.WriteString(c, "hi")
			_ = errors.Join(err, c.Close()) // the test looks at what comes
		}
	}()
	make1 := func() {
		env, err := p.CreateEnvironment(t.Context(), cfg, "")
		if err == nil {
			err = env.Cleanup(t.Context(), false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	make1()
	env, err := p.Follow(t.Context(), cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	dialer, ok := env.(contract.Dialer)
	if !ok {
		t.Fatalf("%T offers no Dial", env)
	}
	// refused is part of why there is no connection, "" when there is one.
	try := func(when, refused string) {
		t.Helper()
		c, err := dialer.Dial(t.Context(), "tcp", l.Addr().String())
		if refused != "" {
			var b *contract.BackendError
			if !errors.As(err, &b) || !strings.Contains(b.Reason, refused) || b.Hint == "" {
				t.Errorf("%s: %v, want %q", when, err, refused)
			}
			return
		}
		if err != nil {
			t.Errorf("%s: %v", when, err)
			return
		}
		got, err := io.ReadAll(c)
		if err := errors.Join(err, c.Close()); err != nil || string(got) != "hi" {
			t.Errorf("%s: %q, %v", when, got, err)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	try("at first", "")
	do(p.Stop(t.Context(), cfg.Name, time.Second))
	try("stopped", "is not running any more")
	try("stopped still", "is not running any more")
	do(p.Start(t.Context(), cfg.Name))
	try("started", "")
	do(p.Remove(t.Context(), cfg.Name, provider.RemoveOptions{Force: true}))
	try("removed", "there is no sandbox")
	if c := e.Containers(); len(c) > 0 {
		t.Errorf("it was made again: %q", c)
	}
	make1()
	try("made anew", "")
	do(env.Cleanup(t.Context(), false))
	do(p.Remove(t.Context(), cfg.Name, provider.RemoveOptions{Force: true}))
	nothingIsLeft(t, e)
}
