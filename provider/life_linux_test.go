package provider_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// grace is longer than anything that is willing to end takes.
const grace = 30 * time.Second

func TestStopAsksFirst(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	env := open(t, p, cfg)
	id := env.Info().ContainerID
	prints(t, env, `export LOST=1; nohup bash -c 'trap "echo bye >~/bye; exit" TERM; echo up >~/up; while :; do sleep 0.02; done' >/dev/null 2>&1 &
		while [[ ! -s ~/up ]]; do sleep 0.01; done`, "")
	if err := p.Stop(t.Context(), cfg.Name, grace); err != nil {
		t.Fatal(err)
	}
	if s := state(t, p, cfg.Name); s != "exited" {
		t.Errorf("it is %s", s)
	}
	if err := p.Stop(t.Context(), cfg.Name, grace); err != nil {
		t.Errorf("stopping it again: %v", err)
	}
	// Whoever comes next starts it, and is told.
	if r := prints(t, env, `cat ~/bye; echo "[$LOST]"`, "bye\n[]\n"); !r.Recreated || r.ContainerID != id {
		t.Errorf("%+v", r)
	}
}

// What does not hear is ended all the same, and so is everything where the agent cannot be asked, or nobody is to wait.
func TestStopDoesNotWaitForEver(t *testing.T) {
	for name, tc := range map[string]struct {
		grace  time.Duration
		before func(*enginetest.Engine)
	}{
		"deaf":     {200 * time.Millisecond, func(*enginetest.Engine) {}},
		"no agent": {grace, func(e *enginetest.Engine) { e.Fail(enginetest.OpExec, errBad) }},
		"at once":  {0, func(*enginetest.Engine) {}},
		"gone meanwhile": {grace, func(e *enginetest.Engine) {
			e.Before(enginetest.OpKill, func() { _ = e.Vanish(e.Containers()[0]) }) // seen below
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			p, cfg := newProvider(t, e), fresh(e)()
			env := open(t, p, cfg)
			if tc.grace < grace {
				prints(t, env, `setsid -f bash -c 'trap "" TERM; echo up >~/up; while :; do sleep 8831; done' >/dev/null 2>&1
					while [[ ! -s ~/up ]]; do sleep 0.01; done`, "")
			}
			tc.before(e)
			if err := p.Stop(t.Context(), cfg.Name, tc.grace); err != nil {
				t.Fatal(err)
			}
			if s := state(t, p, cfg.Name); s != "exited" && s != "" {
				t.Errorf("it is %s", s)
			}
		})
	}
}

// state is the state of a sandbox, "" when there is none.
func state(t *testing.T, p *provider.Provider, name string) string {
	t.Helper()
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.Address() == name {
			return s.State
		}
	}
	return ""
}

func TestStartAndRestart(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	env := open(t, p, cfg)
	id := env.Info().ContainerID
	for what, verb := range map[string]func() error{
		"start of a running one":   func() error { return p.Start(t.Context(), cfg.Name) },
		"stop, start":              func() error { return errors.Join(p.Stop(t.Context(), cfg.Name, 0), p.Start(t.Context(), cfg.Name)) },
		"restart":                  func() error { return p.Restart(t.Context(), cfg.Name, grace) },
		"restart of a stopped one": func() error { return errors.Join(e.Stop(id), p.Restart(t.Context(), cfg.Name, grace)) },
	} {
		prints(t, env, "export A=1; echo x >~/kept", "")
		if err := verb(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if s := state(t, p, cfg.Name); s != "running" {
			t.Errorf("%s: it is %s", what, s)
		}
		want := "[]\nx\n"
		if strings.HasSuffix(what, "running one") {
			want = "[1]\nx\n"
		}
		if r := prints(t, env, `echo "[$A]"; cat ~/kept`, want); r.ContainerID != id || r.Recreated != (want == "[]\nx\n") {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

func TestVerbsOnWhatTheyCannotHave(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	verbs := map[string]func(string) error{
		"stop":    func(name string) error { return p.Stop(t.Context(), name, grace) },
		"start":   func(name string) error { return p.Start(t.Context(), name) },
		"restart": func(name string) error { return p.Restart(t.Context(), name, grace) },
		"inspect": func(name string) error { _, err := p.Inspect(t.Context(), name); return err },
		"attach":  func(name string) error { _, err := p.Attach(t.Context(), name); return err },
	}
	for what, verb := range verbs {
		err := verb("nosuch")
		backendError(t, err, `there is no sandbox "nosuch"`)
		if strings.Contains(err.Error(), "home") {
			t.Errorf("%s: %v", what, err)
		}
		var faults contract.Faults
		if err := verb("a/b/c"); !errors.As(err, &faults) {
			t.Errorf("%s: %v, want a fault", what, err)
		}
	}
	env := open(t, p, cfg)
	if err := e.Pause(env.Info().ContainerID, true); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"start", "attach"} {
		backendError(t, verbs[what](cfg.Name), "is paused", "dockerbox unpause "+cfg.Name)
	}
	for _, what := range []string{"restart", "stop"} { // as docker does, at once
		if err := verbs[what](cfg.Name); err != nil {
			t.Errorf("%s of a paused one: %v", what, err)
		}
	}
	// A container that is gone has left its home.
	if err := e.Vanish(env.Info().ContainerID); err != nil {
		t.Fatal(err)
	}
	for _, verb := range verbs {
		backendError(t, verb(cfg.Name), "its home is kept", "dockerbox up "+cfg.Name)
	}
	backendError(t, p.Remove(t.Context(), cfg.Name, provider.RemoveOptions{}), "its home is kept", "dockerbox rm -f "+cfg.Name)
}

func TestInspect(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	cfg.Profile, cfg.Task, cfg.MemoryMB, cfg.Env = "work", "t1", 256, map[string]string{"B": "secret", "A": ""}
	env := open(t, p, cfg)
	address := env.Info().Name
	prints(t, env, "export KEPT=1", "")
	cfg.MemoryMB, cfg.CPUs = 512, 0.5
	open(t, p, cfg)
	d, err := p.Inspect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if d.Address() != address || d.Task != "t1" || d.ID != env.Info().ContainerID || d.Image != cfg.Image || d.User != enginetest.User() || d.State != "running" ||
		!d.Persistent || d.Home != env.Info().Home || d.Owner == "" || d.Network != contract.NetworkBridge || time.Since(d.Created) > time.Hour ||
		!slices.Equal(d.Env, []string{"A", "B"}) {
		t.Errorf("%+v", d)
	}
	names := map[string]float64{}
	for _, l := range d.Limits {
		names[l.Name] = l.Wanted
	}
	if names["memory"] != 512 || names["cpus"] != 0.5 || names["pids"] != 2048 || names["disk"] != contract.DefaultDiskMB || len(names) != 4 {
		t.Errorf("%+v, want what was changed since it was made", d.Limits)
	}
	prints(t, env, "echo $KEPT", "1\n")
	if err := e.Stop(env.Info().ContainerID); err != nil {
		t.Fatal(err)
	}
	d, err = p.Inspect(t.Context(), address)
	if err != nil || d.State != "exited" || d.Home != env.Info().Home {
		t.Errorf("%+v, %v", d, err)
	}
	for _, l := range d.Limits {
		if l.Name != "disk" && (l.Applied != nil || l.Note != "it does not run") {
			t.Errorf("of a stopped one: %+v", l)
		}
	}
	if s := state(t, p, address); s != "exited" {
		t.Errorf("after a look at it, it is %s", s)
	}
}

func TestReap(t *testing.T) {
	e := newEngine(t)
	cfgs := fresh(e)
	later := time.Duration(0)
	p, err := provider.New(provider.Endpoint{}, provider.WithEngine(e), provider.WithLogf(t.Logf), provider.WithClock(func() time.Time { return time.Now().Add(later) }))
	if err != nil {
		t.Fatal(err)
	}
	add := func(profile, name string, persistent, stopped bool) string {
		cfg := cfgs()
		cfg.Profile, cfg.Name, cfg.Persistent = profile, name, persistent
		env, err := p.CreateEnvironment(t.Context(), cfg, "") // whoever made it died: nobody cleans up
		if err != nil {
			t.Fatal(err)
		}
		prints(t, env, "true", "")
		if stopped {
			if err := e.Stop(env.Info().ContainerID); err != nil {
				t.Fatal(err)
			}
		}
		return env.Info().ContainerID
	}
	add("work", "ended", false, true)
	add("work", "ended-too", false, true)
	add("work", "running", false, false)
	add("work", "persistent", true, true)
	add("other", "ended", false, true)
	add("", "ended", false, true)
	foreign := map[string]string{"dev.dockerbox.name": "unreadable", "dev.dockerbox.profile": "work"}
	if err := errors.Join(e.AddForeign(t.Context(), "nobodys", cfgs().Image, nil), e.AddForeign(t.Context(), "unreadable", cfgs().Image, foreign)); err != nil {
		t.Fatal(err)
	}
	before := e.Containers()
	reap := func(profile string, want ...string) {
		t.Helper()
		got, err := p.Reap(t.Context(), profile)
		slices.Sort(got)
		if err != nil || got == nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", profile, got, err, want)
		}
	}
	later = 9 * time.Minute
	reap("work")
	later = 11 * time.Minute
	reap("nobody")

	// One that is started in the last moment is the daemon's to refuse, and one that fails does not keep the other.
	start := sync.OnceFunc(func() {
		for _, name := range []string{"work/ended", "work/ended-too"} {
			if err := p.Start(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
	})
	e.Before(enginetest.OpRemove, start)
	e.Before(enginetest.OpRemove, start)
	reap("work")
	for _, name := range []string{"work/ended", "work/ended-too"} {
		if err := p.Stop(t.Context(), name, 0); err != nil {
			t.Error(err)
		}
	}
	later = 12 * time.Minute
	e.Fail(enginetest.OpRemove, errBad)
	got, err := p.Reap(t.Context(), "work")
	if len(got) != 1 || !errors.Is(err, errBad) {
		t.Errorf("%q, %v; want one removed and one error", got, err)
	}
	if got, err = p.Reap(t.Context(), "work"); len(got) != 1 || err != nil {
		t.Errorf("%q, %v; want the other one", got, err)
	}
	reap("work")
	reap("", "ended")
	if after := e.Containers(); len(after) != len(before)-3 {
		t.Errorf("left %q of %q, want three gone", after, before)
	}
	for name, want := range map[string]string{"work/running": "running", "work/persistent": "exited", "other/ended": "exited"} {
		if s := state(t, p, name); s != want {
			t.Errorf("%s is %q, want %s", name, s, want)
		}
	}
}

// A sandbox that somebody removes or stops while it is opened is there in the end.
func TestOpeningWhatSomebodyTakesAway(t *testing.T) {
	for name, tc := range map[string]struct {
		take func(*enginetest.Engine, string) error
		says string // when it is done again and again
	}{
		"removed": {(*enginetest.Engine).Vanish, "was removed or stopped by somebody else"},
		"stopped": {(*enginetest.Engine).Stop, "ended at once"}, // as far as one can see
	} {
		t.Run(name, func(t *testing.T) {
			take := tc.take
			e := newEngine(t)
			p, cfg := newProvider(t, e), fresh(e)()
			id := open(t, p, cfg).Info().ContainerID
			e.Before(enginetest.OpExec, func() {
				if err := take(e, id); err != nil {
					t.Error(err)
				}
			})
			prints(t, open(t, p, cfg), "echo on", "on\n")
			again := func() {
				if err := take(e, e.Containers()[0]); err != nil {
					t.Error(err)
				}
			}
			for range 3 {
				e.Before(enginetest.OpExec, again)
			}
			_, err := p.CreateEnvironment(t.Context(), cfg, "")
			backendError(t, err, cfg.Name, tc.says)
		})
	}
}

// A caller who gives up is not kept.
func TestStopGivesUpWithItsCaller(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	env := open(t, p, cfg)
	input, feed := io.Pipe()
	output, up := io.Pipe()
	var wait sync.WaitGroup
	wait.Go(func() {
		_, err := env.Execute(t.Context(), contract.Request{Command: "trap '' TERM; echo up; read -r", Stdin: input, Stdout: up})
		if err != nil {
			t.Error(err)
		}
	})
	if _, err := io.ReadFull(output, make([]byte, len("up\n"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	wait.Go(func() {
		for e.Calls(enginetest.OpExec) < 2 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	})
	backendError(t, p.Stop(ctx, cfg.Name, time.Hour), cfg.Name)
	if s := state(t, p, cfg.Name); s != "running" {
		t.Errorf("it is %s", s)
	}
	if err := feed.Close(); err != nil {
		t.Error(err)
	}
	wait.Wait()
}
