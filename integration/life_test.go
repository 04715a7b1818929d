//go:build integration

package integration

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// realLimits is what Docker says a container is limited to: memory in MB, billionths of a core, processes.
func realLimits(t *testing.T, id string) string {
	t.Helper()
	return docker(t, "inspect", "-f", "{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}} {{.HostConfig.PidsLimit}}", id)
}

// applied returns what the container's own cgroup has, by the name of the setting.
func applied(t *testing.T, p *provider.Provider, address string) map[string]float64 {
	t.Helper()
	d, err := p.Inspect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, l := range d.Limits {
		if l.Applied != nil {
			all[l.Name] = *l.Applied
		}
	}
	return all
}

// Row 20 of the field cases: a session that comes back with other limits gets them, on the living sandbox.
func TestChangedLimitsApplyToALivingSandbox(t *testing.T) {
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name, cfg.MemoryMB, cfg.Adapt = uniqueName(t, p), 256, true
	first := create(t, p, cfg)
	id := first.Info().ContainerID
	sh(t, first, "export KEPT=1; nohup sleep 9911 >/dev/null 2>&1 &")
	for _, want := range []struct {
		memory, pids int64
		cpus         float64
		real         string
	}{
		{512, 2048, 1, "536870912 1000000000 2048"},
		{8192, 300, 0.57, "8589934592 570000000 300"},
		{256, 0, 2, "268435456 2000000000 0"},
	} {
		cfg.MemoryMB, cfg.CPUs, cfg.PIDs = want.memory, want.cpus, want.pids
		env := create(t, p, cfg)
		if i := env.Info(); i.ContainerID != id || i.Created {
			t.Fatalf("%+v, want %s", i, id)
		}
		if got := realLimits(t, id); got != want.real {
			t.Errorf("the container has %s, want %s", got, want.real)
		}
		in := applied(t, p, cfg.Name)
		if in["memory"] != float64(want.memory) || in["cpus"] != want.cpus || in["pids"] != float64(want.pids) {
			t.Errorf("its cgroup has %v, want %+v", in, want)
		}
		if out := sh(t, env, "echo $KEPT; pgrep -cf 'sleep 991[1]'"); out != "1\n1\n" {
			t.Errorf("state and jobs after a change: %q", out)
		}
	}
	// Docker cannot take more away than is in use, and says so; Hermes goes on with what there is.
	sh(t, first, "head -c 100M /dev/zero >/dev/shm/x")
	cfg.MemoryMB, cfg.Adapt = 64, false
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	var b *contract.BackendError
	if !errors.As(err, &b) || !strings.Contains(b.Reason, "more memory is in use") || b.Hint == "" {
		t.Errorf("%v", err)
	}
	cfg.Adapt = true
	if w := create(t, p, cfg).Info().Warnings; !slices.ContainsFunc(w, func(s string) bool { return strings.Contains(s, "memory is 256 MB, wanted 64 MB") }) {
		t.Errorf("warnings %q", w)
	}
	if got := realLimits(t, id); got != "268435456 2000000000 0" {
		t.Errorf("after a refusal the container has %s", got)
	}
}

// hostStream starts words in the sandbox as the host does with an exec_prefix, and returns when they have printed a line. The end of input is
// theirs.
func hostStream(t *testing.T, env contract.Environment, script string) (end func()) {
	t.Helper()
	argv, err := env.ExecPrefix(t.Context(), "", true)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), argv[0], append(argv[1:], "bash", "-c", script)...)
	command.Env = []string{}
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatalf("%v: %s", err, said.Bytes())
	}
	return func() {
		t.Helper()
		if err := errors.Join(input.Close(), command.Wait()); err != nil {
			t.Errorf("%v: %s", err, said.Bytes())
		}
	}
}

// A sandbox is made anew for a setting that cannot be changed only when nothing of anybody's runs in it: neither a job of the agent's, nor a
// command of another client, nor what came in by docker exec.
func TestASandboxWithJobsIsNotMadeAnew(t *testing.T) {
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name = uniqueName(t, p)
	first := create(t, p, cfg)
	id := first.Info().ContainerID
	sh(t, first, "echo kept >~/kept")
	cfg.Adapt, cfg.Env = true, map[string]string{"GREETING": "hunter2"}
	// names are those the job may have: until it has become its program it goes by the name of what it is forked from.
	stays := func(what string, names ...string) {
		t.Helper()
		i := create(t, p, cfg).Info()
		if i.ContainerID != id || i.Created || len(i.Warnings) == 0 {
			t.Fatalf("%s: %+v, want %s and a warning", what, i, id)
		}
		if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(i.Warnings[0], "runs in it ("+name+")") }) {
			t.Errorf("%s: %q names none of %q", what, i.Warnings[0], names)
		}
		for _, part := range []string{"env differs in GREETING", "dockerbox stop " + cfg.Name} {
			if !strings.Contains(i.Warnings[0], part) {
				t.Errorf("%s: %q says nothing of %q", what, i.Warnings[0], part)
			}
		}
		if strings.Contains(strings.Join(i.Warnings, ""), "hunter2") {
			t.Errorf("%q shows a value", i.Warnings)
		}
	}
	sh(t, first, "nohup sleep 9921 >/dev/null 2>&1 &")
	stays("a background job", "sleep", "nohup", "bash")
	sh(t, first, "pkill -f 'sleep 992[1]'; while pgrep -f 'sleep 992[1]'; do sleep 0.01; done >/dev/null")

	end := hostStream(t, first, "echo; exec cat")
	stays("a stream of the host's", "cat", "bash")
	end()

	input, feed := io.Pipe()
	output, up := io.Pipe()
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := first.Execute(t.Context(), contract.Request{Command: "echo; read -r", Stdin: input, Stdout: up}); err != nil {
			t.Error(err)
		}
	})
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	stays("a command of another client", "bash")
	if err := feed.Close(); err != nil {
		t.Error(err)
	}
	wait.Wait()

	env := create(t, p, cfg)
	i := env.Info()
	if i.ContainerID == id || !i.Created || !strings.Contains(strings.Join(i.Warnings, ""), "made anew") {
		t.Errorf("%+v, want a new container and why", i)
	}
	if out := sh(t, env, "cat ~/kept; echo $GREETING"); out != "kept\nhunter2\n" {
		t.Errorf("%q", out)
	}
	if r := run(t, first, contract.Request{Command: "true"}); !r.Recreated || r.ContainerID != i.ContainerID {
		t.Errorf("the other client got %+v", r)
	}
}

// Eight sessions that come back at the same moment with the same new settings end in one container that has them.
func TestSessionsThatAdaptAtOnceGetOneContainer(t *testing.T) {
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name = uniqueName(t, p)
	create(t, p, cfg)
	cfg.Adapt, cfg.Env = true, map[string]string{"A": "new"}
	const sessions = 8
	var (
		envs [sessions]contract.Environment
		errs [sessions]error
		wait sync.WaitGroup
	)
	for i := range sessions {
		wait.Go(func() { envs[i], errs[i] = p.CreateEnvironment(t.Context(), cfg, "") })
	}
	wait.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for _, env := range envs {
		if out := sh(t, env, "echo $A"); out != "new\n" {
			t.Errorf("%q", out)
		}
		if err := env.Cleanup(t.Context(), false); err != nil {
			t.Error(err)
		}
	}
	if ids := docker(t, "ps", "-aq", "--filter", "label=dev.dockerbox.name="+cfg.Name); len(strings.Fields(ids)) != 1 {
		t.Errorf("containers %q, want one", ids)
	}
}

// Names that differ in what Docker would make the same, and profiles, are sandboxes of their own.
func TestNamesAndProfilesDoNotMeet(t *testing.T) {
	p := newProvider(t)
	base := uniqueName(t, p)
	ids := map[string]string{}
	for _, id := range [][2]string{{"", base + ":x"}, {"", base + "_x"}, {"one", base}, {"two", base}} {
		cfg := contract.Defaults()
		cfg.Profile, cfg.Name, cfg.CPUs = id[0], id[1], 0
		env := create(t, p, cfg)
		address := env.Info().Name
		t.Cleanup(func() {
			if err := p.Remove(context.Background(), address, provider.RemoveOptions{Force: true}); err != nil {
				t.Error(err)
			}
		})
		if out := sh(t, env, "ls ~; echo "+address+" >~/mine"); out != "" {
			t.Errorf("%s finds %q in its home", address, out)
		}
		if other, met := ids[env.Info().ContainerID]; met {
			t.Errorf("%s and %s are one", address, other)
		}
		ids[env.Info().ContainerID] = address
	}
	if err := p.Remove(t.Context(), "one/"+base, provider.RemoveOptions{Force: true}); err != nil {
		t.Error(err)
	}
	env, err := p.Attach(t.Context(), "two/"+base)
	if err != nil {
		t.Fatal(err)
	}
	if out := sh(t, env, "cat ~/mine"); out != "two/"+base+"\n" {
		t.Errorf("%q", out)
	}
}

// What a dead process left is removed when it is old enough, keeps nothing, does not run and is of that profile.
func TestReapRemovesOnlyOrphans(t *testing.T) {
	p := newProvider(t)
	profile := uniqueName(t, p)
	addresses := map[string]string{}
	for what, change := range map[string]func(*contract.Config){
		"orphan":     func(c *contract.Config) { c.Persistent = false },
		"running":    func(c *contract.Config) { c.Persistent = false },
		"persistent": func(*contract.Config) {},
		"other":      func(c *contract.Config) { c.Profile, c.Persistent = c.Profile+"-2", false },
	} {
		cfg := contract.Defaults()
		cfg.Profile, cfg.Name = profile, what
		change(&cfg)
		env, err := p.CreateEnvironment(t.Context(), cfg, "") // nobody cleans up after a process that died
		if err != nil {
			t.Fatal(err)
		}
		addresses[what] = env.Info().Name
		t.Cleanup(func() {
			if err := p.Remove(context.Background(), env.Info().Name, provider.RemoveOptions{Force: true}); err != nil {
				t.Error(err)
			}
		})
		if what != "running" {
			if err := p.Stop(t.Context(), env.Info().Name, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	later := func(d time.Duration) *provider.Provider { return sparing(t, profile, d) }
	if got, err := later(9*time.Minute).Reap(t.Context(), profile); err != nil || len(got) > 0 {
		t.Errorf("after 9 minutes: %q, %v", got, err)
	}
	if got, err := later(11*time.Minute).Reap(t.Context(), profile); err != nil || !slices.Equal(got, []string{addresses["orphan"]}) {
		t.Errorf("after 11 minutes: %q, %v; want %s alone", got, err, addresses["orphan"])
	}
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, address := range addresses {
		there := slices.ContainsFunc(list, func(s provider.Sandbox) bool { return s.Address() == address })
		if there != (what != "orphan") {
			t.Errorf("%s is there: %v", what, there)
		}
	}
}

// Whoever removes and whoever makes a sandbox at the same moment both get what they want, or a sentence that says what to do.
func TestUpRacingWithRemoval(t *testing.T) {
	name := freshName("race")
	defer removeSandboxes(t, name)
	self := dockerboxBinary(t)
	for range 3 {
		var out [3][]byte
		var errs [3]error
		var wait sync.WaitGroup
		for i, args := range [][]string{{"up", name}, {"rm", "-f", name}, {"up", "--recreate", name}} {
			wait.Go(func() { out[i], errs[i] = exec.CommandContext(t.Context(), self, args...).CombinedOutput() })
		}
		wait.Wait()
		for i, err := range errs {
			var status *exec.ExitError
			switch {
			case err == nil:
			case !errors.As(err, &status) || status.ExitCode() != contract.ExitBackend, !bytes.Contains(out[i], []byte("dockerbox: hint: ")):
				t.Errorf("%d: %v: %s", i, err, out[i])
			default:
				t.Logf("%d: %s", i, out[i])
			}
		}
	}
	if out, err := exec.CommandContext(t.Context(), self, "up", name).CombinedOutput(); err != nil {
		t.Errorf("afterwards: %v: %s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), self, "run", name, "echo on").CombinedOutput(); err != nil || string(out) != "on\n" {
		t.Errorf("afterwards: %v: %s", err, out)
	}
	if ids := docker(t, "ps", "-aq", "--filter", "label=dev.dockerbox.name="+name); len(strings.Fields(ids)) != 1 {
		t.Errorf("containers %q, want one", ids)
	}
}
