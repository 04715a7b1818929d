package provider_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// A daemon that is away fails calls that need it, and none that does not: commands go over a stream that is open.
func TestAnUnreachableDaemon(t *testing.T) {
	e := newEngine(t)
	p, cfgs := newProvider(t, e), fresh(e)
	cfg := cfgs()
	env := open(t, p, cfg)
	e.Down(true)
	prints(t, env, "echo on", "on\n")
	_, err := p.CreateEnvironment(t.Context(), cfgs(), "")
	backendError(t, err)
	if !errors.Is(err, engine.ErrUnreachable) {
		t.Errorf("%v, want it to be ErrUnreachable", err)
	}
	if err := e.Stop(env.Info().ContainerID); err != nil {
		t.Fatal(err)
	}
	_, err = env.Execute(t.Context(), contract.Request{Command: "true"})
	backendError(t, err, "does not answer")
	e.Down(false)
	if r := prints(t, env, "echo again", "again\n"); !r.Recreated {
		t.Error("a container that was restarted is not said to be")
	}
}

// A container that stopped is started again: the same one, with its home, without its shell state.
func TestAStoppedContainerIsStartedAgain(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	env := open(t, p, cfg)
	id := env.Info().ContainerID
	prints(t, env, "export A=1; echo kept >~/f", "")
	if err := e.Stop(id); err != nil {
		t.Fatal(err)
	}
	r := prints(t, env, `echo "[$A]"; cat ~/f`, "[]\nkept\n")
	if !r.Recreated || r.ContainerID != id {
		t.Errorf("recreated %v in %s, want true in %s", r.Recreated, r.ContainerID, id)
	}
}

// A paused container is not a failed command, and its hint is what to do; afterwards all is as before.
func TestAPausedContainer(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	env := open(t, p, cfg)
	id := env.Info().ContainerID
	prints(t, env, "export A=1", "")
	if err := e.Pause(id, true); err != nil {
		t.Fatal(err)
	}
	_, err := env.Execute(t.Context(), contract.Request{Command: "true"})
	backendError(t, err, "is paused", "unpause")
	_, err = p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "is paused", "unpause")
	if err := e.Pause(id, false); err != nil {
		t.Fatal(err)
	}
	prints(t, env, "echo $A", "1\n")
}

// A stream that breaks under a command is said to have, for the command may have run in part; the next one goes over a new stream.
func TestAStreamCutUnderACommand(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	const greeting = 4000 // more than a hello and the account take
	e.CutAfter(greeting)
	env := open(t, p, cfg)
	e.CutAfter(-1)
	_, err := env.Execute(t.Context(), contract.Request{Command: "export A=1; head -c 10000 /dev/zero; sleep 300"})
	backendError(t, err, "lost", "in part")
	prints(t, env, "echo on", "on\n")
}

// A removal that fails is not passed over, and can be tried again.
func TestARemovalThatFails(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	cfg.Persistent = false
	env := open(t, p, cfg)
	e.Fail(enginetest.OpRemove, errBad)
	if err := env.Cleanup(t.Context(), true); !errors.Is(err, errBad) {
		t.Errorf("the error is %v, want the engine's", err)
	}
	if err := env.Cleanup(t.Context(), true); err != nil {
		t.Error(err)
	}
	nothingIsLeft(t, e)
}

// Only what carries our labels is touched.
func TestAContainerThatIsNotOurs(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	open(t, p, cfg)
	name := e.Containers()[0]
	if err := p.Remove(t.Context(), cfg.Name, provider.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if err := e.AddForeign(t.Context(), name, cfg.Image, nil); err != nil {
		t.Fatal(err)
	}
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, name, "not dockerbox's")
	cfg.Recreate = true
	_, err = p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, name, "not dockerbox's")
	backendError(t, p.Remove(t.Context(), cfg.Name, provider.RemoveOptions{Force: true}), name)
	if list, err := p.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v; want none of ours", list, err)
	}
	if c := e.Containers(); !slices.Equal(c, []string{name}) {
		t.Errorf("containers %q, want %q alone", c, name)
	}
}

func TestRemoveAndAttachByAddress(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	cfg.Profile = "work"
	env := open(t, p, cfg)
	address := env.Info().Name
	list, err := p.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Address() != address || list[0].State != "running" || list[0].Image != cfg.Image || !list[0].Persistent {
		t.Fatalf("%+v, %v; want %s alone", list, err, address)
	}
	prints(t, env, "export A=1", "")
	second, err := p.Attach(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	prints(t, second, "echo $A", "1\n")
	if err := second.Cleanup(t.Context(), false); err != nil {
		t.Error(err)
	}
	backendError(t, p.Remove(t.Context(), address, provider.RemoveOptions{}), "is running", "rm -f")
	if err := p.Remove(t.Context(), address, provider.RemoveOptions{Force: true, KeepHome: true}); err != nil {
		t.Error(err)
	}
	if v := e.Volumes(); len(v) != 2 {
		t.Errorf("volumes %q, want the agent's and the home", v)
	}
	_, err = p.Attach(t.Context(), address)
	backendError(t, err, "there is no sandbox")
	backendError(t, p.Remove(t.Context(), address, provider.RemoveOptions{}), "there is no sandbox")
	for range 2 {
		if err := p.Remove(t.Context(), address, provider.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	}
	nothingIsLeft(t, e)
}
