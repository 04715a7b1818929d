//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// ownEngine is the tests' daemon without what is nobody's in particular, and so may be in use beside this test: helper containers, agents of
// other versions and images, except those whose name has a word of the test's own in it.
type ownEngine struct {
	*engine.Engine
	own string
}

func (e ownEngine) ListVolumes(ctx context.Context, labels ...string) ([]engine.Volume, error) {
	all, err := e.Engine.ListVolumes(ctx, labels...)
	if slices.Contains(labels, "dev.dockerbox.kind=agent") {
		all = slices.DeleteFunc(all, func(v engine.Volume) bool { return !strings.Contains(v.Name, e.own) })
	}
	return all, err
}

func (e ownEngine) NamelessImages(context.Context, ...string) ([]engine.Nameless, error) {
	return nil, nil
}

// sparing is a provider on such an engine, with a clock that is ahead.
func sparing(t *testing.T, own string, ahead time.Duration) *provider.Provider {
	t.Helper()
	e, err := engine.Open(engine.Endpoint{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := provider.New(provider.Endpoint{}, provider.WithEngine(helpless{ownEngine{e, own}}), provider.WithLogf(t.Logf),
		provider.WithClock(func() time.Time { return time.Now().Add(ahead) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// left is a sandbox of a profile that somebody made, used and left.
func left(t *testing.T, profile, name, command string, persistent bool) (address string) {
	t.Helper()
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Profile, cfg.Name, cfg.Persistent, cfg.Network = profile, name, persistent, "none"
	env, err := p.CreateEnvironment(t.Context(), cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	address = env.Info().Name
	t.Cleanup(func() {
		if err := p.Remove(context.Background(), address, provider.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	sh(t, env, command)
	if persistent {
		if err := env.Cleanup(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	return address
}

// idle waits until a sandbox's agent has noticed that its clients left.
func idle(t *testing.T, p *provider.Provider, address string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		d, err := p.Inspect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if d.Use != nil && d.Use.Clients == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s still has %+v", address, d.Use)
		}
	}
}

// Row 22: idle, ownerless and past its time, a sandbox goes, and its home stays; one with a live job stays, and so does one that somebody uses.
func TestFieldRow22(t *testing.T) {
	profile := freshName("prune")
	p := sparing(t, profile, 0)
	gone := left(t, profile, "gone", "echo kept >~/f", true)
	works := left(t, profile, "works", "nohup sleep 600 >/dev/null 2>&1 &", true)
	screen := left(t, profile, "screen", "true", true)
	if got := cli(t, "desktop", "start", screen); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	visited := contract.Defaults()
	visited.Profile, visited.Name, visited.Network = profile, "visited", "none"
	env := create(t, newProvider(t), visited)
	t.Cleanup(func() {
		if err := p.Remove(context.Background(), env.Info().Name, provider.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	agent := "dockerbox-agent-" + profile
	docker(t, "volume", "create", "--label", "dev.dockerbox.kind=agent", agent)
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "volume", "rm", "-f", agent).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	for _, address := range []string{gone, works, screen} {
		idle(t, p, address)
	}
	if done, err := p.Prune(t.Context(), provider.PruneOptions{Profile: profile, Idle: time.Hour}); err != nil || len(done.Removed) > 0 {
		t.Fatalf("nothing is idle for an hour: %+v, %v", done, err)
	}

	// What would go is what goes.
	dry := cli(t, "prune", "--dry-run", "--json", "--idle", "0s", "--of", profile)
	var answer struct {
		Removed []struct {
			Kind, Name string
			Bytes      *int64
		}
		Kept []struct{ Name, Why string }
	}
	if err := json.Unmarshal([]byte(dry.stdout), &answer); err != nil || dry.status != 0 {
		t.Fatalf("%+v, %v", dry, err)
	}
	var would []string
	for _, r := range answer.Removed {
		if r.Kind == "sandbox" {
			would = append(would, r.Name)
		}
		if r.Bytes == nil && r.Kind != "helper" {
			t.Errorf("%+v has no size", r)
		}
	}
	done, err := p.Prune(t.Context(), provider.PruneOptions{Profile: profile})
	if err != nil {
		t.Fatal(err)
	}
	var did []string
	for _, r := range done.Removed {
		did = append(did, r.Name)
	}
	if want := []string{gone, screen}; !slices.Equal(would, want) || !slices.Equal(did, want) {
		t.Errorf("it would remove %q and removed %q, want %q", would, did, want)
	}
	kept := map[string]string{}
	for _, k := range done.Kept {
		kept[k.Name] = k.Why
	}
	if len(kept) != 2 || !strings.Contains(kept[works], "(sleep)") || !strings.Contains(kept[env.Info().Name], "connected") {
		t.Errorf("kept are %q", kept)
	}
	sh(t, env, "true")
	if got := cli(t, "inspect", works); !strings.Contains(got.stdout, "state         running\n") || !strings.Contains(got.stdout, "jobs          1 (sleep)\n") {
		t.Errorf("%+v", got)
	}

	// The home is there for the next, until homes are asked for; another version's agent goes when it is not just being made.
	late := sparing(t, profile, 11*time.Minute)
	done, err = late.Prune(t.Context(), provider.PruneOptions{Profile: profile, Idle: 10 * time.Minute})
	if err != nil || len(done.Removed) != 1 || done.Removed[0].Name != agent || done.Removed[0].Bytes < 0 {
		t.Errorf("%+v, %v; want the agent", done, err)
	}
	if got := strings.Fields(docker(t, "volume", "ls", "-q", "--filter", "label=dev.dockerbox.profile="+profile)); len(got) != 4 {
		t.Errorf("homes are %q", got)
	}
	next := contract.Defaults()
	next.Profile, next.Name, next.Network = profile, "gone", "none"
	wants(t, create(t, newProvider(t), next), "cat ~/f", "kept\n")
	done, err = late.Prune(t.Context(), provider.PruneOptions{Profile: profile, Idle: 10 * time.Minute, Homes: true})
	if err != nil || len(done.Removed) != 1 || !strings.HasPrefix(done.Removed[0].Name, "dockerbox-home-screen-") || done.Removed[0].Bytes <= 0 {
		t.Errorf("%+v, %v; want the home without a sandbox", done, err)
	}
}

// helpless hides the containers that look into images.
type helpless struct{ ownEngine }

func (e helpless) List(ctx context.Context, labels ...string) ([]container.Summary, error) {
	if slices.Contains(labels, "dev.dockerbox.kind=helper") {
		return nil, nil
	}
	return e.Engine.List(ctx, labels...)
}

// Somebody who makes or takes a sandbox beside two prunes always has it.
func TestPruneBesideUp(t *testing.T) {
	profile := freshName("prune")
	p := sparing(t, profile, 0)
	address := left(t, profile, "box", "echo kept >~/f", true)
	cfg := contract.Defaults()
	cfg.Profile, cfg.Name, cfg.Network = profile, "box", "none"
	use := func() {
		env, err := newProvider(t).CreateEnvironment(t.Context(), cfg, "")
		if err != nil {
			t.Error(err)
			return
		}
		r, err := env.Execute(t.Context(), contract.Request{Command: "cat ~/f"})
		if err != nil || string(r.Output) != "kept\n" {
			t.Errorf("%q, %v", r.Output, err)
		}
		if err := env.Cleanup(t.Context(), false); err != nil {
			t.Error(err)
		}
	}
	for range 5 {
		use() // whether it is there, or must be made anew
		idle(t, p, address)
		var wait sync.WaitGroup
		for range 2 {
			wait.Go(func() {
				if _, err := p.Prune(t.Context(), provider.PruneOptions{Profile: profile}); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Go(func() { use() })
		wait.Wait()
	}
}
