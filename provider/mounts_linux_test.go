package provider_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/system"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// userVolumes are the volumes on e that are not dockerbox's.
func userVolumes(e *enginetest.Engine) []string {
	return slices.DeleteFunc(e.Volumes(), func(name string) bool { return strings.HasPrefix(name, "dockerbox-") })
}

// Of the volumes that a sandbox mounts, a creation that fails removes those it made and no other.
func TestAFailedCreationRemovesTheVolumesItMade(t *testing.T) {
	for name, tc := range map[string]struct {
		op   enginetest.Op
		pass int
	}{
		"asking the daemon about itself": {enginetest.OpInfo, 0},
		"the second new volume":          {enginetest.OpCreateVolume, 4}, // after the agent's, the home's, the old one and the first
		"the container":                  {enginetest.OpCreate, 1},
		"the directories":                {enginetest.OpMakeDirectories, 0},
		"starting it":                    {enginetest.OpStart, 0},
		"attaching to its agent":         {enginetest.OpExec, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			p, cfg := newProvider(t, e), fresh(e)()
			cfg.Mounts = []contract.Mount{{Source: "old", Target: "/a"}, {Source: "new", Target: "/b"}, {Source: "newer", Target: "/c"}}
			if _, err := e.CreateVolume(t.Context(), "old", nil); err != nil {
				t.Fatal(err)
			}
			for range tc.pass {
				e.Fail(tc.op, nil)
			}
			e.Fail(tc.op, errBad)
			if _, err := p.CreateEnvironment(t.Context(), cfg, ""); !errors.Is(err, errBad) {
				t.Errorf("the error is %v, want the engine's", err)
			}
			if v := userVolumes(e); !slices.Equal(v, []string{"old"}) {
				t.Errorf("volumes %q, want that which was there", v)
			}
			if c := e.Containers(); len(c) > 0 {
				t.Errorf("containers remain: %q", c)
			}
			prints(t, open(t, p, cfg), "echo on", "on\n")
			if err := p.Remove(t.Context(), cfg.Name, provider.RemoveOptions{Force: true}); err != nil {
				t.Error(err)
			}
			if v := userVolumes(e); !slices.Equal(v, []string{"new", "newer", "old"}) {
				t.Errorf("volumes %q after the sandbox was removed, want all of the user's", v)
			}
		})
	}
}

func TestAMissingHostPathLeavesNothing(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	there, missing := t.TempDir(), filepath.Join(t.TempDir(), "no", "such")
	cfg.Mounts = []contract.Mount{{Source: there, Target: "/a"}, {Source: missing, Target: "/b"}}
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "the host path "+missing+", to be mounted at /b, does not exist on the daemon's machine", "make it, or correct -v")
	nothingIsLeft(t, e)

	// Nor does it cost the sandbox that is there.
	cfg.Mounts = cfg.Mounts[:1]
	id := open(t, p, cfg).Info().ContainerID
	cfg.Mounts = []contract.Mount{{Source: missing, Target: "/b"}}
	cfg.Recreate = true
	_, err = p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, missing)
	cfg.Given, cfg.Recreate = []string{}, false
	if i := open(t, p, cfg).Info(); i.ContainerID != id {
		t.Errorf("%+v, want the container %s", i, id)
	}
}

// What is mounted at the home is the home; no volume is made for another.
func TestAMountedHomeNeedsNoVolume(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	home := open(t, p, cfg).Info().Home
	if err := p.Remove(t.Context(), cfg.Name, provider.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	cfg.Mounts = []contract.Mount{{Source: "mine", Target: home}}
	prints(t, open(t, p, cfg), "echo kept >~/f", "")
	if v := e.Volumes(); len(v) != 2 || v[1] != "mine" {
		t.Errorf("volumes %q, want the agent's and the user's", v)
	}
	if err := p.Remove(t.Context(), cfg.Name, provider.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	prints(t, open(t, p, cfg), "cat ~/f", "kept\n")
}

func TestTheWayToAMountInTheHomeIsTheAccounts(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	home := open(t, p, cfg).Info().Home
	if err := p.Remove(t.Context(), cfg.Name, provider.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	cfg.Mounts = []contract.Mount{{Source: t.TempDir(), Target: home + "/.config/tool/cache"}}
	prints(t, open(t, p, cfg), "[[ -O ~/.config && -O ~/.config/tool ]] && touch ~/.config/x ~/.config/tool/y && echo mine", "mine\n")
}

func TestAVolumeWithAHomeThatIsInUse(t *testing.T) {
	e := newEngine(t)
	p, cfgs := newProvider(t, e), fresh(e)
	cfg, other := cfgs(), cfgs()
	open(t, p, cfg)
	volume := e.Volumes()[slices.IndexFunc(e.Volumes(), func(name string) bool { return strings.HasPrefix(name, "dockerbox-home-") })]
	other.Mounts = []contract.Mount{{Source: volume, Target: "/theirs", ReadOnly: true}}
	open(t, p, other)
	user := e.Containers()[slices.IndexFunc(e.Containers(), func(name string) bool { return strings.Contains(name, other.Name) })]
	force := provider.RemoveOptions{Force: true}
	backendError(t, p.Remove(t.Context(), cfg.Name, force), volume, user, "--keep-home")
	prints(t, open(t, p, cfg), "echo still here", "still here\n")
	force.KeepHome = true
	if err := p.Remove(t.Context(), cfg.Name, force); err != nil {
		t.Error(err)
	}
	force.KeepHome = false
	err := p.Remove(t.Context(), cfg.Name, force)
	backendError(t, err, volume, user)
	if !errors.Is(err, engine.ErrConflict) {
		t.Errorf("%v, want a conflict", err)
	}
	if err := p.Remove(t.Context(), other.Name, force); err != nil {
		t.Error(err)
	}
	if err := p.Remove(t.Context(), cfg.Name, force); err != nil {
		t.Error(err)
	}
	nothingIsLeft(t, e)
}

// A quota is tried where the storage may have one. Where it has none the sandbox is made without, and that is said each time it is taken.
func TestADiskLimit(t *testing.T) {
	e := newEngine(t)
	describe(t, e, func(i *system.Info) { i.Driver, i.DriverStatus = "btrfs", nil })
	p, cfgs := newProvider(t, e), fresh(e)
	limit := func(env contract.Environment) string {
		found, err := e.Inspect(t.Context(), env.Info().ContainerID)
		if err != nil {
			t.Fatal(err)
		}
		return found.HostConfig.StorageOpt["size"]
	}
	cfg := cfgs()
	cfg.DiskMB = 1000
	kept := open(t, p, cfg)
	if size, w := limit(kept), kept.Info().Warnings; size != "1000M" || len(w) > 0 {
		t.Errorf("limited to %q with warnings %q, want 1000M and none", size, w)
	}
	cfg = cfgs()
	cfg.DiskMB = 1000
	e.Fail(enginetest.OpCreate, nil) // the helper
	e.Fail(enginetest.OpCreate, errBad)
	without := open(t, p, cfg)
	if size, w := limit(without), without.Info().Warnings; size != "" || len(w) != 1 || !strings.Contains(w[0], "1000 MB is not enforced: the storage driver btrfs refused one") {
		t.Errorf("limited to %q with warnings %q", size, w)
	}
	if w := open(t, p, cfg).Info().Warnings; len(w) != 1 {
		t.Errorf("when it is taken again: %q", w)
	}
	cfg = cfgs()
	e.Fail(enginetest.OpCreate, nil)
	e.Fail(enginetest.OpCreate, errBad)
	if w := open(t, p, cfg).Info().Warnings; len(w) > 0 {
		t.Errorf("a default that nobody chose gives %q", w)
	}
}

func TestWhatTheDaemonDoesNotKeepIsSaid(t *testing.T) {
	e := newEngine(t)
	describe(t, e, func(i *system.Info) { i.CPUCfsQuota = false })
	e.Warn("Your kernel does not support pids limit capabilities or the cgroup is not mounted. PIDs limit discarded.")
	p, cfg := newProvider(t, e), fresh(e)()
	cfg.DiskMB = 1000
	cfg.Mounts = []contract.Mount{{Source: "/", Target: "/host", ReadOnly: true}}
	cfg.ForwardEnv = []string{"TOKEN", "KEY"}
	env := open(t, p, cfg)
	said := strings.Join(env.Info().Warnings, "\n")
	for _, part := range []string{"1 CPUs does not apply", "2048 processes does not apply", "1000 MB is not enforced", "controls the machine"} {
		if !strings.Contains(said, part) {
			t.Errorf("nothing of %q in %q", part, said)
		}
	}
	if n := len(env.Info().Warnings); n != 4 {
		t.Errorf("%d warnings: %q", n, said)
	}
	found, err := e.Inspect(t.Context(), env.Info().ContainerID)
	if err != nil {
		t.Fatal(err)
	}
	if found.HostConfig.NanoCPUs != 0 {
		t.Error("a limit that the daemon refuses was asked for")
	}
	if names := open(t, p, cfg).Info().ForwardEnv; !slices.Equal(names, []string{"KEY", "TOKEN"}) {
		t.Errorf("forwarded: %q", names)
	}
}
