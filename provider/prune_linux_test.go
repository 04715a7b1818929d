package provider_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// town is an engine with sandboxes that somebody left.
type town struct {
	*testing.T
	engine *enginetest.Engine
	p      *provider.Provider
	cfgs   func() contract.Config
	// later is how far the provider's clock is ahead; an agent's own cannot be.
	later time.Duration
}

func newTown(t *testing.T) *town {
	t.Helper()
	e := newEngine(t)
	w := &town{T: t, engine: e, cfgs: fresh(e)}
	var err error
	w.p, err = provider.New(provider.Endpoint{}, provider.WithEngine(e), provider.WithLogf(t.Logf), provider.WithClock(func() time.Time { return time.Now().Add(w.later) }))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// settle makes a sandbox, does command in it and leaves, as a process that dies does.
func (w *town) settle(name, command string, change func(*contract.Config)) (id string) {
	w.Helper()
	env := w.stay(name, command, change)
	w.engine.HangUp(env.Info().ContainerID)
	return env.Info().ContainerID
}

// stay is settle by somebody who stays.
func (w *town) stay(name, command string, change func(*contract.Config)) contract.Environment {
	w.Helper()
	cfg := w.cfgs()
	cfg.Name = name
	if change != nil {
		change(&cfg)
	}
	env, err := w.p.CreateEnvironment(w.Context(), cfg, "")
	if err != nil {
		w.Fatal(err)
	}
	prints(w.T, env, command, "")
	return env
}

// alone waits until the agents have noticed who left.
func (w *town) alone(names ...string) {
	w.Helper()
	for deadline := time.Now().Add(grace); ; {
		done, err := w.p.Prune(w.Context(), provider.PruneOptions{DryRun: true})
		if err != nil {
			w.Fatal(err)
		}
		got := idleNames(done.Removed)
		if !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(got, n) }) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("idle are %q, want all of %q among them; kept are %v", got, names, done.Kept)
		}
		time.Sleep(time.Millisecond)
	}
}

func idleNames(list []provider.Leftover) []string {
	names := make([]string, len(list))
	for i, l := range list {
		names[i] = l.Name
	}
	slices.Sort(names)
	return names
}

func ephemeral(c *contract.Config) { c.Persistent = false }

func TestPruneRemovesWhatNobodyUses(t *testing.T) {
	w := newTown(t)
	w.settle("idle", "echo kept >~/f", nil)
	w.settle("session", "true", ephemeral)
	stopped := w.settle("stopped", "true", nil)
	w.settle("works", "nohup sleep 8901 >/dev/null 2>&1 & while [[ $(cat /proc/$!/comm) != sleep ]]; do :; done", nil)
	asleep := w.settle("asleep", "true", nil)
	w.stay("visited", "true", nil)
	w.settle("other", "true", func(c *contract.Config) { c.Profile = "work" })
	unreadable := map[string]string{"dev.dockerbox.name": "odd", "dev.dockerbox.profile": ""}
	if err := errors.Join(w.engine.Stop(stopped), w.engine.Pause(asleep, true),
		w.engine.AddForeign(t.Context(), "nobodys", w.cfgs().Image, nil), w.engine.AddForeign(t.Context(), "odd", w.cfgs().Image, unreadable)); err != nil {
		t.Fatal(err)
	}
	w.alone("idle", "session", "stopped")
	before := w.engine.Containers()

	// Nothing is idle for a day.
	done, err := w.p.Prune(t.Context(), provider.PruneOptions{Idle: 24 * time.Hour})
	if err != nil || len(done.Removed) > 0 || !slices.Equal(before, w.engine.Containers()) {
		t.Errorf("%+v, %v; want nothing removed", done, err)
	}
	dry, err := w.p.Prune(t.Context(), provider.PruneOptions{DryRun: true})
	if err != nil || !slices.Equal(before, w.engine.Containers()) {
		t.Errorf("a dry run: %v, left %q of %q", err, w.engine.Containers(), before)
	}
	done, err = w.p.Prune(t.Context(), provider.PruneOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]provider.Pruned{"a dry run": dry, "it": done} {
		if names := idleNames(got.Removed); !slices.Equal(names, []string{"idle", "session", "stopped"}) {
			t.Errorf("%s says %q", what, names)
		}
		for _, l := range got.Removed {
			if l.Kind != provider.KindSandbox || l.Bytes <= 0 || !strings.Contains(l.Why, map[bool]string{true: "stopped for", false: "not used for"}[l.Name == "stopped"]) {
				t.Errorf("%s says %+v", what, l)
			}
		}
		kept := map[string]string{}
		for _, k := range got.Kept {
			kept[k.Name] = k.Why
		}
		if want := map[string]string{
			"asleep": "it is paused", "works": "a process runs in it (sleep)", "visited": "somebody is connected to it",
			"odd": "it does not say how it was made; dockerbox rm -f --keep-home odd removes it",
		}; !maps.Equal(kept, want) {
			t.Errorf("%s keeps %v, want %v", what, kept, want)
		}
	}
	for name, want := range map[string]string{"idle": "", "session": "", "stopped": "", "works": "running", "asleep": "paused", "visited": "running", "work/other": "running"} {
		if s := state(t, w.p, name); s != want {
			t.Errorf("%s is %q, want %q", name, s, want)
		}
	}
	if left := w.engine.Containers(); len(left) != len(before)-3 {
		t.Errorf("left %q of %q", left, before)
	}
	// What is used is what it was, and a home is there for the next.
	prints(t, w.stay("idle", "true", func(c *contract.Config) { c.Image = "conformance-1" }), "cat ~/f", "kept\n")
	done, err = w.p.Prune(t.Context(), provider.PruneOptions{Profile: "work"})
	if got := idleNames(done.Removed); err != nil || !slices.Equal(got, []string{"work/other"}) {
		t.Errorf("of the other profile: %q, %v", got, err)
	}
}

// Whatever fails in the middle, the rest is done, and the failure is told with it.
func TestPruneGoesOnAfterAFailure(t *testing.T) {
	for _, op := range []enginetest.Op{enginetest.OpInspect, enginetest.OpKill, enginetest.OpRemove, enginetest.OpWrittenSize, enginetest.OpExec} {
		t.Run(string(op), func(t *testing.T) {
			w := newTown(t)
			var names []string
			for i := range 3 {
				names = append(names, fmt.Sprintf("box-%d", i))
				w.settle(names[i], "true", nil)
			}
			w.alone(names...)
			w.engine.Fail(op, errBad)
			done, err := w.p.Prune(t.Context(), provider.PruneOptions{})
			switch {
			case op == enginetest.OpWrittenSize: // only its size is unknown
				if err != nil || len(done.Removed) != 3 || !slices.ContainsFunc(done.Removed, func(l provider.Leftover) bool { return l.Bytes < 0 }) {
					t.Errorf("%+v, %v", done, err)
				}
			case op == enginetest.OpExec: // then nobody knows whether anybody uses it
				if err != nil || len(done.Removed) != 2 || len(done.Kept) != 1 || !strings.Contains(done.Kept[0].Why, errBad.Reason) {
					t.Errorf("%+v, %v", done, err)
				}
			case !errors.Is(err, errBad) || len(done.Removed) != 2:
				t.Errorf("%+v, %v; want two removed and the error", done, err)
			}
			if op == enginetest.OpKill { // its agent lets nobody in for some seconds more
				if left := w.engine.Containers(); len(left) != 1 || state(t, w.p, left[0][len("dockerbox-"):len("dockerbox-box-0")]) != "running" {
					t.Errorf("left %q", left)
				}
				return
			}
			done, err = w.p.Prune(t.Context(), provider.PruneOptions{})
			if err != nil || len(w.engine.Containers()) > 0 {
				t.Errorf("once more: %+v, %v; left %q", done, err, w.engine.Containers())
			}
		})
	}
}

func TestPruneOfADaemonThatGoesAway(t *testing.T) {
	w := newTown(t)
	for i := range 3 {
		w.settle(fmt.Sprintf("box-%d", i), "true", nil)
	}
	w.alone("box-0", "box-1", "box-2")
	w.engine.Before(enginetest.OpKill, func() { w.engine.Down(true) })
	_, err := w.p.Prune(t.Context(), provider.PruneOptions{Homes: true})
	if !errors.Is(err, engine.ErrUnreachable) {
		t.Errorf("%v, want that the daemon does not answer", err)
	}
	backendError(t, err)
	w.engine.Down(false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = w.p.Prune(ctx, provider.PruneOptions{}); err == nil {
		t.Error("a caller who gave up is told nothing")
	}
}

func TestPrunesAtOnce(t *testing.T) {
	w := newTown(t)
	var names []string
	for i := range 4 {
		names = append(names, fmt.Sprintf("box-%d", i))
		w.settle(names[i], "true", nil)
	}
	w.alone(names...)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if _, err := w.p.Prune(t.Context(), provider.PruneOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if left := w.engine.Containers(); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// Who comes while a sandbox is given up has one in the end: the same, or a new one with the same home.
func TestPruneBesideSomebodyWhoComes(t *testing.T) {
	for name, op := range map[string]enginetest.Op{"before the stop": enginetest.OpKill, "after it": enginetest.OpRemove} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			cfg := w.cfgs()
			cfg.Name = "box"
			w.settle(cfg.Name, "echo kept >~/f", func(c *contract.Config) { c.Image = cfg.Image })
			w.alone(cfg.Name)
			come := func() {
				env, err := w.p.CreateEnvironment(t.Context(), cfg, "")
				if err != nil {
					t.Errorf("who came got %v", err)
					return
				}
				prints(t, env, "cat ~/f", "kept\n")
			}
			var wait sync.WaitGroup
			w.engine.Before(op, func() {
				if op == enginetest.OpRemove {
					come()
					return
				}
				asked := w.engine.Calls(enginetest.OpExec)
				wait.Go(come) // who is not let in, and waits for the end
				for w.engine.Calls(enginetest.OpExec) == asked {
					time.Sleep(time.Millisecond)
				}
			})
			done, err := w.p.Prune(t.Context(), provider.PruneOptions{})
			wait.Wait()
			if err != nil || op == enginetest.OpRemove && len(done.Removed) > 0 {
				t.Errorf("%+v, %v", done, err)
			}
			if s := state(t, w.p, cfg.Name); s != "running" {
				t.Errorf("it is %q", s)
			}
		})
	}
}

func TestPruneOfOtherThings(t *testing.T) {
	w := newTown(t)
	labels := func(kind string) map[string]string { return map[string]string{"dev.dockerbox.kind": kind} }
	w.settle("box", "true", nil)
	home := map[string]string{"dev.dockerbox.kind": "home", "dev.dockerbox.name": "box", "dev.dockerbox.profile": ""}
	for name, l := range map[string]map[string]string{
		"dockerbox-agent-000000000000": labels("agent"), "dockerbox-agent-111111111111": nil, "mine": labels("agent"), "dockerbox-home-x-0": home, "data": nil,
	} {
		if _, err := w.engine.CreateVolume(t.Context(), name, l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.engine.AddForeign(t.Context(), "dockerbox-helper-00", w.cfgs().Image, labels("helper")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.engine.Build(t.Context(), engine.Recipe{Tag: "dockerbox/desktop:latest", Labels: map[string]string{image.RecipeLabel: "x"}}, func(engine.BuildProgress) {}); err != nil {
			t.Fatal(err)
		}
	}
	w.settle("left", "echo 1234 >~/f", nil)
	if err := w.p.Remove(t.Context(), "left", provider.RemoveOptions{Force: true, KeepHome: true}); err != nil {
		t.Fatal(err)
	}
	w.alone("box")
	prune := func(homes bool, want ...string) {
		t.Helper()
		done, err := w.p.Prune(t.Context(), provider.PruneOptions{Idle: 24 * time.Hour, Homes: homes})
		got := []string{}
		for _, l := range done.Removed {
			got = append(got, l.Kind+" "+strings.SplitAfter(l.Name, "left-")[0])
			if l.Why == "" || l.Bytes < 0 && l.Kind != provider.KindHelper {
				t.Errorf("%+v", l)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		for i, w := range want {
			if err != nil || len(got) != len(want) || !strings.HasPrefix(got[i], w) {
				t.Errorf("after %s: removed %q, %v; want %q", w, got, err, want)
				return
			}
		}
		if len(got) != len(want) {
			t.Errorf("removed %q, want %q", got, want)
		}
	}
	before := w.engine.Volumes()
	w.later = 9 * time.Minute
	prune(true)
	w.later = 11 * time.Minute
	prune(true, "agent dockerbox-agent-000000000000", "helper dockerbox-helper-00")
	w.later = 25 * time.Hour
	prune(false, "image sha256:") // the sandbox's own agent says that it was used a moment ago
	prune(true, "home dockerbox-home-left-")
	prune(true)
	if got := w.engine.Volumes(); len(got) != len(before)-2 {
		t.Errorf("left %q of %q", got, before)
	}
	if s := state(t, w.p, "box"); s != "running" {
		t.Errorf("the sandbox is %q", s)
	}
}

// A volume that is used after all, or gone, is no failure, and one that cannot be looked at keeps no other from going.
func TestPruneOfVolumesMeanwhile(t *testing.T) {
	w := newTown(t)
	w.settle("box", "true", nil)
	for i := range 2 {
		if _, err := w.engine.CreateVolume(t.Context(), fmt.Sprintf("dockerbox-agent-%012d", i), map[string]string{"dev.dockerbox.kind": "agent"}); err != nil {
			t.Fatal(err)
		}
	}
	w.later = 11 * time.Minute
	w.engine.Fail(enginetest.OpRemoveVolume, engine.ErrConflict)
	w.engine.Fail(enginetest.OpVolumeSizes, errBad)
	done, err := w.p.Prune(t.Context(), provider.PruneOptions{Idle: time.Hour})
	if err != nil || len(done.Removed) != 1 || done.Removed[0].Bytes >= 0 {
		t.Errorf("%+v, %v", done, err)
	}
	w.engine.Fail(enginetest.OpVolumeUsers, errBad)
	if done, err = w.p.Prune(t.Context(), provider.PruneOptions{Idle: time.Hour}); !errors.Is(err, errBad) || len(done.Removed) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
	for _, op := range []enginetest.Op{enginetest.OpList, enginetest.OpListVolumes, enginetest.OpNamelessImages} {
		w.engine.Fail(op, errBad)
		if _, err = w.p.Prune(t.Context(), provider.PruneOptions{Idle: time.Hour}); !errors.Is(err, errBad) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// A program that has looked into an image long ago makes sandboxes still when another version's prune took its agent.
func TestAPrunedAgentComesBack(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	prints(t, open(t, p, cfg), "true", "")
	if err := p.Remove(t.Context(), cfg.Name, provider.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	for _, v := range e.Volumes() {
		if err := e.RemoveVolume(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	prints(t, open(t, p, cfg), "echo on", "on\n")
}

// Ended ones are in TestReap.
func TestReapOfRunningOrphans(t *testing.T) {
	w := newTown(t)
	session := func(c *contract.Config) { c.Persistent, c.Task = false, "t-1" }
	w.settle("orphan", "true", session)
	w.settle("works", "nohup sleep 8902 >/dev/null 2>&1 &", session)
	w.settle("shared", "true", ephemeral)
	w.settle("persistent", "true", func(c *contract.Config) { c.Task = "t-1" })
	w.stay("lives", "true", session)
	if _, err := w.engine.CreateVolume(t.Context(), "dockerbox-agent-000000000000", map[string]string{"dev.dockerbox.kind": "agent"}); err != nil {
		t.Fatal(err)
	}
	w.alone("orphan", "shared", "persistent")
	reap := func(want ...string) {
		t.Helper()
		got, err := w.p.Reap(t.Context(), "")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	reap() // nobody has been away for an hour
	w.p.SetOrphanIdle(0)
	reap("orphan")
	for name, want := range map[string]string{"orphan": "", "works": "running", "shared": "running", "persistent": "running", "lives": "running"} {
		if s := state(t, w.p, name); s != want {
			t.Errorf("%s is %q, want %q", name, s, want)
		}
	}
	w.later = 11 * time.Minute
	reap()
	if got := w.engine.Volumes(); slices.Contains(got, "dockerbox-agent-000000000000") {
		t.Errorf("the old agent is left: %q", got)
	}
}
