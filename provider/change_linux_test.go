package provider_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// limitsOf reads what limits a container has now.
func limitsOf(t *testing.T, e *enginetest.Engine, id string) (memoryMB, nanoCPUs, pids int64) {
	t.Helper()
	found, err := e.Inspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if found.HostConfig.PidsLimit != nil {
		pids = *found.HostConfig.PidsLimit
	}
	return found.HostConfig.Memory >> 20, found.HostConfig.NanoCPUs, pids
}

// said finds the one warning that has all parts in it.
func said(t *testing.T, info contract.Info, parts ...string) {
	t.Helper()
	if len(info.Warnings) != 1 {
		t.Fatalf("warnings %q, want one", info.Warnings)
	}
	for _, part := range parts {
		if !strings.Contains(info.Warnings[0], part) {
			t.Errorf("%q says nothing of %q", info.Warnings[0], part)
		}
	}
}

// Limits change under a living sandbox, whoever asks, as often as they ask, and are compared with what it has rather than with its label.
func TestLimitsChangeWhileItLives(t *testing.T) {
	for name, adapt := range map[string]bool{"command line": false, "Hermes": true} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			p, cfg := newProvider(t, e), fresh(e)()
			cfg.Adapt = adapt
			cfg.MemoryMB = 256
			env := open(t, p, cfg)
			id := env.Info().ContainerID
			prints(t, env, "export A=1; nohup sleep 8811 >/dev/null 2>&1 & export JOB=$!", "")
			for _, want := range []struct {
				memory int64
				cpus   float64
				pids   int64
			}{{512, 1, 2048}, {256, 0.57, 100}, {8192, 2, 0}, {256, 1, 2048}} {
				cfg.MemoryMB, cfg.CPUs, cfg.PIDs = want.memory, want.cpus, want.pids
				i := open(t, p, cfg).Info()
				if i.ContainerID != id || i.Created || len(i.Warnings) > 0 {
					t.Errorf("%+v, want %s without a warning", i, id)
				}
				memory, cpus, pids := limitsOf(t, e, id)
				if memory != want.memory || cpus != int64(want.cpus*1e9+0.5) || max(0, pids) != want.pids {
					t.Errorf("memory %d, cpus %d, pids %d; want %+v", memory, cpus, pids, want)
				}
			}
			calls := e.Calls(enginetest.OpUpdate)
			open(t, p, cfg)
			if n := e.Calls(enginetest.OpUpdate); n != calls {
				t.Errorf("%d updates where nothing differs", n-calls)
			}
			prints(t, env, "echo $A; kill $JOB", "1\n")
		})
	}
}

func TestDifferencesAreRefusedWithTheirList(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	id := open(t, p, cfg).Info().ContainerID
	cfg.MemoryMB, cfg.CPUs, cfg.Network, cfg.Env = 256, 0, contract.NetworkNone, map[string]string{"A": "secret"}
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "network is bridge, wanted none", "env differs in A", "cpus is 1, wanted no limit", "dockerbox up --recreate", cfg.Name)
	if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "memory") {
		t.Errorf("%q shows a value, or what can be changed", err)
	}
	if memory, _, _ := limitsOf(t, e, id); memory != 5120 {
		t.Errorf("memory is %d MB after a refusal, want it as it was", memory)
	}
}

// Nothing that is not given counts, and what is given counts alone.
func TestOnlyWhatIsGivenCounts(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	cfg.MemoryMB, cfg.Network, cfg.Env = 256, contract.NetworkNone, map[string]string{"A": "1"}
	id := open(t, p, cfg).Info().ContainerID

	other := contract.Defaults()
	other.Name, other.Given = cfg.Name, []string{}
	if i := open(t, p, other).Info(); i.ContainerID != id || len(i.Warnings) > 0 || i.Image != cfg.Image {
		t.Errorf("%+v, want %s as it is", i, id)
	}
	other.Given, other.MemoryMB = []string{"memory_mb"}, 512
	if i := open(t, p, other).Info(); i.ContainerID != id {
		t.Errorf("%+v, want %s", i, id)
	}
	if memory, cpus, _ := limitsOf(t, e, id); memory != 512 || cpus != 1e9 {
		t.Errorf("memory %d, cpus %d", memory, cpus)
	}
	other.Given = []string{"network"}
	_, err := p.CreateEnvironment(t.Context(), other, "")
	backendError(t, err, "network is none, wanted bridge")
	if strings.Contains(err.Error(), "env") {
		t.Errorf("%q names what was not given", err)
	}
	other.Given = []string{"memory"}
	var faults contract.Faults
	if _, err := p.CreateEnvironment(t.Context(), other, ""); !errors.As(err, &faults) || len(faults) != 1 || faults[0].Key != "given" {
		t.Errorf("%v, want a fault", err)
	}
}

// Made anew on request it has the settings that are given, and its own for all others, changed limits too.
func TestRecreateKeepsWhatIsNotGiven(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	cfg.MemoryMB, cfg.Env = 256, map[string]string{"A": "kept"}
	first := open(t, p, cfg)
	prints(t, first, "echo home >~/f", "")
	cfg.MemoryMB = 300
	open(t, p, cfg)

	again := contract.Defaults()
	again.Name, again.Given, again.Recreate = cfg.Name, []string{"pids"}, true
	again.PIDs = 100
	env := open(t, p, again)
	i := env.Info()
	if i.ContainerID == first.Info().ContainerID || !i.Created || i.Image != cfg.Image || len(i.Warnings) > 0 {
		t.Errorf("%+v, want another one of the same image, without a warning", i)
	}
	if memory, _, pids := limitsOf(t, e, i.ContainerID); memory != 300 || pids != 100 {
		t.Errorf("memory %d, pids %d", memory, pids)
	}
	prints(t, env, "cat ~/f; echo $A", "home\nkept\n")
	if r := prints(t, first, "echo $A", "kept\n"); !r.Recreated {
		t.Error("a client of the old one is not told")
	}
}

// A setting that cannot be had must not cost the sandbox there is.
func TestAFailedRecreationCostsNothing(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	env := open(t, p, cfg)
	prints(t, env, "export A=1", "")
	id := env.Info().ContainerID
	for what, change := range map[string]func(*contract.Config){
		"recreate, image": func(c *contract.Config) { c.Image, c.Recreate = "nosuch", true },
		"recreate, user":  func(c *contract.Config) { c.User, c.Recreate = "nobody-there", true },
		"adapt, image":    func(c *contract.Config) { c.Image, c.Adapt = "nosuch", true },
	} {
		wrong := cfg
		change(&wrong)
		_, err := p.CreateEnvironment(t.Context(), wrong, "")
		backendError(t, err)
		if r := prints(t, env, "echo $A", "1\n"); r.Recreated || r.ContainerID != id {
			t.Errorf("%s: %+v, want %s untouched", what, r, id)
		}
	}
}

func TestAdaptMakesItAnewWhereNothingLives(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	old := open(t, p, cfg)
	prints(t, old, "echo home >~/f; export GONE=1", "")
	cfg.Env, cfg.Adapt = map[string]string{"A": "secret"}, true
	env := open(t, p, cfg)
	i := env.Info()
	if i.ContainerID == old.Info().ContainerID || !i.Created {
		t.Errorf("%+v, want a new container", i)
	}
	said(t, i, "made anew", "env differs in A", "kept its home")
	if strings.Contains(i.Warnings[0], "secret") {
		t.Errorf("%q shows a value", i.Warnings[0])
	}
	prints(t, env, "cat ~/f; echo $A $GONE", "home\nsecret\n")
	if r := prints(t, old, "echo $A", "secret\n"); !r.Recreated || r.ContainerID != i.ContainerID {
		t.Errorf("the other client got %+v", r)
	}
	if j := open(t, p, cfg).Info(); j.ContainerID != i.ContainerID || len(j.Warnings) > 0 {
		t.Errorf("%+v, want it said and done once", j)
	}
}

func TestAdaptLeavesASandboxWithJobs(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	env := open(t, p, cfg)
	id := env.Info().ContainerID
	// Until it is a sleep it goes by the name of the shell it is forked from.
	prints(t, env, "sleep 8821 >/dev/null 2>&1 & until read -r name <\"/proc/$!/comm\" && [[ $name == sleep ]]; do :; done", "")
	cfg.Env, cfg.MemoryMB, cfg.Adapt = map[string]string{"A": "1"}, 256, true
	i := open(t, p, cfg).Info()
	if i.ContainerID != id || i.Created {
		t.Errorf("%+v, want %s", i, id)
	}
	said(t, i, "a process runs in it (sleep)", "env differs in A", "dockerbox stop "+cfg.Name, "keeps its home")
	if memory, _, _ := limitsOf(t, e, id); memory != 256 {
		t.Errorf("memory is %d MB: what can be changed is", memory)
	}
	// A stopped one has no jobs.
	if err := e.Stop(id); err != nil {
		t.Fatal(err)
	}
	j := open(t, p, cfg).Info()
	if j.ContainerID == id || !j.Created {
		t.Errorf("%+v, want a new container", j)
	}
	said(t, j, "made anew", "env differs in A")
}

// A command of another client counts while it runs, and so does an agent that cannot tell.
func TestAdaptLeavesASandboxThatIsInUse(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	env := open(t, p, cfg)
	id := env.Info().ContainerID
	cfg.Network, cfg.Adapt = contract.NetworkNone, true
	input, feed := io.Pipe()
	output, up := io.Pipe()
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := env.Execute(t.Context(), contract.Request{Command: "echo up; read -r", Stdin: input, Stdout: up}); err != nil {
			t.Error(err)
		}
	})
	if _, err := io.ReadFull(output, make([]byte, len("up\n"))); err != nil {
		t.Fatal(err)
	}
	i := open(t, p, cfg).Info()
	if i.ContainerID != id {
		t.Errorf("%+v, want %s", i, id)
	}
	said(t, i, "a process runs in it (bash)", "network is bridge, wanted none")
	if err := feed.Close(); err != nil {
		t.Error(err)
	}
	wait.Wait()

	e.Fail(enginetest.OpExec, errBad) // the question
	i = open(t, p, cfg).Info()
	if i.ContainerID != id {
		t.Errorf("%+v, want %s", i, id)
	}
	said(t, i, "cannot be told", errBad.Reason, "network is bridge, wanted none")
}

// Eight clients with the same new settings end in one container that has them.
func TestAdaptRacesEndInOneContainer(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	old := open(t, p, cfg).Info().ContainerID
	cfg.Env, cfg.Adapt = map[string]string{"A": "new"}, true
	const clients = 8
	var (
		envs [clients]contract.Environment
		errs [clients]error
		wait sync.WaitGroup
	)
	for i := range clients {
		wait.Go(func() { envs[i], errs[i] = p.CreateEnvironment(t.Context(), cfg, "") })
	}
	wait.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	created := 0
	for _, env := range envs {
		prints(t, env, "echo $A", "new\n")
		if id := env.Info().ContainerID; id == old || id != envs[0].Info().ContainerID {
			t.Errorf("one got %s, another %s", id, envs[0].Info().ContainerID)
		}
		if env.Info().Created {
			created++
		}
		if err := env.Cleanup(t.Context(), false); err != nil {
			t.Error(err)
		}
	}
	if c := e.Containers(); len(c) != 1 || created != 1 {
		t.Errorf("containers %q, made by %d, want one", c, created)
	}
}

// Where there are no quotas nobody loses a sandbox over a limit that would not hold; he is told that it does not.
func TestADiskLimitThatCannotHoldChangesNothing(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	id := open(t, p, cfg).Info().ContainerID
	cfg.DiskMB = 1000
	for _, adapt := range []bool{true, false} {
		cfg.Adapt = adapt
		i := open(t, p, cfg).Info()
		if i.ContainerID != id {
			t.Errorf("%+v, want %s", i, id)
		}
		said(t, i, "1000 MB")
	}
	info, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info.DriverStatus = [][2]string{{"Backing Filesystem", "xfs"}}
	e.Describe(info)
	_, err = newProvider(t, e).CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "disk is 51200 MB, wanted 1000 MB")
}

// Whoever removes it first, the other goes on.
func TestAdaptBesideAnotherRemoval(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	old := open(t, p, cfg).Info().ContainerID
	for what, change := range map[string]func(*contract.Config){
		"adapt":    func(c *contract.Config) { c.Adapt, c.Env = true, map[string]string{"A": "adapted"} },
		"recreate": func(c *contract.Config) { c.Recreate, c.Env = true, map[string]string{"A": "made anew"} },
	} {
		wants := cfg
		change(&wants)
		id := e.Containers()[0]
		e.Before(enginetest.OpRemove, func() {
			if err := e.Vanish(id); err != nil {
				t.Error(err)
			}
		})
		e.Fail(enginetest.OpRemove, &contract.BackendError{Reason: "somebody is removing it already", Hint: "wait", Err: engine.ErrConflict})
		if i := open(t, p, wants).Info(); i.ContainerID == old || !i.Created {
			t.Errorf("%s: %+v, want another container", what, i)
		}
	}
}

// A revival is no request: what somebody changed since stays.
func TestARevivalChangesNothing(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	cfg.MemoryMB = 256
	env := open(t, p, cfg)
	id := env.Info().ContainerID
	newer := cfg
	newer.MemoryMB = 512
	open(t, p, newer)
	if err := e.Stop(id); err != nil {
		t.Fatal(err)
	}
	if r := prints(t, env, "true", ""); !r.Recreated || r.ContainerID != id {
		t.Errorf("%+v", r)
	}
	if memory, _, _ := limitsOf(t, e, id); memory != 512 {
		t.Errorf("memory is %d MB after a revival", memory)
	}
}

// Where the daemon refuses, who watches is told, and who does not goes on with what there is.
func TestLimitsThatCannotBeChanged(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	id := open(t, p, cfg).Info().ContainerID
	cfg.MemoryMB = 256
	e.Fail(enginetest.OpUpdate, errBad)
	if _, err := p.CreateEnvironment(t.Context(), cfg, ""); !errors.Is(err, errBad) {
		t.Errorf("%v, want the daemon's word", err)
	}
	cfg.Adapt = true
	e.Fail(enginetest.OpUpdate, errBad)
	i := open(t, p, cfg).Info()
	if i.ContainerID != id {
		t.Errorf("%+v", i)
	}
	said(t, i, "memory is 5120 MB, wanted 256 MB", errBad.Reason)
	// Somebody removes it just then: the next look tells whether it is there.
	e.Fail(enginetest.OpUpdate, engine.ErrConflict)
	if i := open(t, p, cfg).Info(); i.ContainerID != id || len(i.Warnings) > 0 {
		t.Errorf("%+v, want %s with its new limits", i, id)
	}
	cfg.MemoryMB = 512
	e.Before(enginetest.OpUpdate, func() {
		if err := e.Vanish(id); err != nil {
			t.Error(err)
		}
	})
	if i := open(t, p, cfg).Info(); !i.Created || i.ContainerID == id {
		t.Errorf("%+v, want a new one", i)
	}
}

// A rebuilt image under the same tag is no reason to make a sandbox anew.
func TestARebuiltImageChangesNothing(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	cfg.Adapt = true
	id := open(t, p, cfg).Info().ContainerID
	e.RemoveImage(cfg.Image)
	e.AddImage(cfg.Image)
	if i := open(t, p, cfg).Info(); i.ContainerID != id || len(i.Warnings) > 0 {
		t.Errorf("%+v, want %s", i, id)
	}
}

// Names that Docker would make the same, and profiles, never meet.
func TestSandboxesDoNotMeet(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	cfgs := fresh(e)
	var ids []string
	for _, who := range [][2]string{{"", "p:x"}, {"", "p_x"}, {"one", "same"}, {"two", "same"}, {"", "same"}} {
		cfg := cfgs()
		cfg.Profile, cfg.Name = who[0], who[1]
		env := open(t, p, cfg)
		prints(t, env, "[[ ! -e ~/f ]] && echo $$ >~/f", "")
		ids = append(ids, env.Info().ContainerID)
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != 5 || len(e.Containers()) != 5 {
		t.Errorf("%d containers, %q", n, e.Containers())
	}
	if err := p.Remove(t.Context(), "one/same", provider.RemoveOptions{Force: true}); err != nil {
		t.Error(err)
	}
	if n := len(e.Containers()); n != 4 {
		t.Errorf("%d containers after one was removed", n)
	}
}
