package provider_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

var errBad = &contract.BackendError{Reason: "the daemon had a bad day", Hint: "wait for a better one"}

// backendError fails the test unless err is a BackendError that says what to do, with all parts in it.
func backendError(t *testing.T, err error, parts ...string) {
	t.Helper()
	var b *contract.BackendError
	if !errors.As(err, &b) {
		t.Fatalf("got %v, want a BackendError", err)
	}
	if b.Reason == "" || b.Hint == "" {
		t.Errorf("reason %q, hint %q; want both", b.Reason, b.Hint)
	}
	for _, part := range parts {
		if !strings.Contains(b.Reason+"\n"+b.Hint, part) {
			t.Errorf("%q, %q says nothing of %q", b.Reason, b.Hint, part)
		}
	}
}

// open makes the sandbox of cfg, which must work, and lets go of it with the test.
func open(t *testing.T, p *provider.Provider, cfg contract.Config) contract.Environment {
	t.Helper()
	env, err := p.CreateEnvironment(t.Context(), cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Cleanup(context.Background(), false); err != nil {
			t.Error(err)
		}
	})
	return env
}

// prints runs a command that must succeed.
func prints(t *testing.T, env contract.Environment, command, output string) contract.Result {
	t.Helper()
	r, err := env.Execute(t.Context(), contract.Request{Command: command})
	if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	if r.ExitCode != 0 || string(r.Output) != output {
		t.Errorf("%q: status %d and %q, want %q", command, r.ExitCode, r.Output, output)
	}
	return r
}

// Whatever fails while a sandbox is made, nothing of it is left, the helper that looks into the image included; and the next try works.
func TestAFailedCreationLeavesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		op   enginetest.Op
		pass int // calls of op that work first
	}{
		"looking for the container":  {enginetest.OpInspect, 0},
		"looking for the image":      {enginetest.OpImage, 0},
		"the agent's volume":         {enginetest.OpCreateVolume, 0},
		"the helper":                 {enginetest.OpCreate, 0},
		"looking for the agent":      {enginetest.OpFileSize, 0},
		"writing the agent":          {enginetest.OpWriteFile, 0},
		"reading the image's passwd": {enginetest.OpReadFile, 0},
		"reading the image's groups": {enginetest.OpReadFile, 1},
		"the home's volume":          {enginetest.OpCreateVolume, 1},
		"the container":              {enginetest.OpCreate, 1},
		"starting it":                {enginetest.OpStart, 0},
		"attaching to its agent":     {enginetest.OpExec, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			p, cfg := newProvider(t, e), fresh(e)()
			for range tc.pass {
				e.Fail(tc.op, nil)
			}
			e.Fail(tc.op, errBad)
			if _, err := p.CreateEnvironment(t.Context(), cfg, ""); !errors.Is(err, errBad) {
				t.Errorf("the error is %v, want the engine's", err)
			}
			nothingIsLeft(t, e)
			prints(t, open(t, p, cfg), "echo on", "on\n")
		})
	}
}

// A caller that gives up in the middle leaves nothing behind either: cleaning up does not use the context that is over.
func TestAnAbandonedCreationLeavesNothing(t *testing.T) {
	for _, op := range []enginetest.Op{enginetest.OpWriteFile, enginetest.OpReadFile, enginetest.OpStart, enginetest.OpExec} {
		t.Run(string(op), func(t *testing.T) {
			e := newEngine(t)
			p, cfg := newProvider(t, e), fresh(e)()
			ctx, cancel := context.WithCancel(t.Context())
			e.Before(op, cancel)
			_, err := p.CreateEnvironment(ctx, cfg, "")
			backendError(t, err)
			nothingIsLeft(t, e)
		})
	}
}

// An agent that is cut off before it can say who the account is has not made a sandbox.
func TestAStreamCutDuringTheGreetingLeavesNothing(t *testing.T) {
	for _, n := range []int64{0, 1, 30} {
		e := newEngine(t)
		p, cfg := newProvider(t, e), fresh(e)()
		e.CutAfter(n)
		_, err := p.CreateEnvironment(t.Context(), cfg, "")
		backendError(t, err, "agent")
		nothingIsLeft(t, e)
	}
}

// A container that ends as it starts is named as what failed, although the end of the stream is heard before the daemon knows.
func TestAContainerThatEndsAtOnceIsSaid(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	e.CutAfter(0)
	for range 2 { // the look for its name, and the first one after the stream has ended
		e.Before(enginetest.OpInspect, func() {})
	}
	e.Before(enginetest.OpInspect, func() {
		if err := e.Stop(e.Containers()[0]); err != nil {
			t.Error(err)
		}
	})
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "ended at once", "--pids")
	nothingIsLeft(t, e)
}

// Somebody takes the name between our look and our creation: his sandbox is adopted, and our half is not left behind.
func TestAConflictAdoptsTheOther(t *testing.T) {
	e := newEngine(t)
	p, other, cfg := newProvider(t, e), newProvider(t, e), fresh(e)()
	var first contract.Environment
	e.Before(enginetest.OpCreate, func() {}) // the helper
	e.Before(enginetest.OpCreate, func() { first = open(t, other, cfg) })
	env := open(t, p, cfg)
	if i := env.Info(); i.Created || first == nil || i.ContainerID != first.Info().ContainerID {
		t.Errorf("%+v, want the other's sandbox %+v", i, first.Info())
	}
	prints(t, first, "export A=1; echo kept >~/f", "")
	prints(t, env, "echo $A; cat ~/f", "1\nkept\n")
	if c := e.Containers(); len(c) != 1 {
		t.Errorf("containers %q, want one", c)
	}
}

// A sandbox that goes away between the look and the start is made anew.
func TestASandboxThatGoesAwayWhileItIsAdoptedIsMadeAgain(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	id := open(t, p, cfg).Info().ContainerID
	if err := e.Stop(id); err != nil {
		t.Fatal(err)
	}
	e.Before(enginetest.OpStart, func() {
		if err := e.Vanish(id); err != nil {
			t.Error(err)
		}
	})
	if i := open(t, p, cfg).Info(); !i.Created || i.ContainerID == id {
		t.Errorf("%+v, want a new container", i)
	}
}

func TestAMissingImage(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	e.RemoveImage(cfg.Image)
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, cfg.Image, "cannot be pulled")
	nothingIsLeft(t, e)
	e.Before(enginetest.OpPull, func() { e.AddImage(cfg.Image) })
	prints(t, open(t, p, cfg), "echo on", "on\n")

	pulls := e.Calls(enginetest.OpPull)
	cfg.Name, cfg.Image = "own", "" // the default image is built, never pulled
	_, err = p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "dockerbox/desktop", "make image")
	if n := e.Calls(enginetest.OpPull) - pulls; n != 0 {
		t.Errorf("%d pulls of an image that is nobody's but ours", n)
	}
}
