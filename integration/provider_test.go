//go:build integration

package integration

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// newProvider talks to the daemon these tests run against.
func newProvider(t *testing.T) *provider.Provider {
	t.Helper()
	p, err := provider.New(provider.Endpoint{}, provider.WithLogf(t.Logf))
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

// uniqueName is a sandbox name nobody else uses; the sandbox and its home go with the test.
func uniqueName(t *testing.T, p *provider.Provider) string {
	t.Helper()
	name := "t-" + strings.ToLower(rand.Text()[:10])
	t.Cleanup(func() {
		if err := p.Remove(context.Background(), name, provider.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	return name
}

// create makes the sandbox of cfg and lets go of it when the test ends.
func create(t *testing.T, p *provider.Provider, cfg contract.Config) contract.Environment {
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

// newSandbox is a sandbox with default settings.
func newSandbox(t *testing.T) (*provider.Provider, contract.Environment) {
	t.Helper()
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name = uniqueName(t, p)
	return p, create(t, p, cfg)
}

// run executes a command that must not meet a backend fault.
func run(t *testing.T, env contract.Environment, req contract.Request) contract.Result {
	t.Helper()
	r, err := env.Execute(t.Context(), req)
	if err != nil {
		t.Fatalf("%q: %v", req.Command, err)
	}
	return r
}

// sh runs shell text and wants status 0.
func sh(t *testing.T, env contract.Environment, command string) string {
	t.Helper()
	r := run(t, env, contract.Request{Command: command})
	if r.ExitCode != 0 {
		t.Fatalf("%q: status %d, %q", command, r.ExitCode, r.Output)
	}
	return string(r.Output)
}

// docker runs the docker CLI.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestSandboxStartsInTheHomeOfItsAccount(t *testing.T) {
	_, env := newSandbox(t)
	if out := sh(t, env, "pwd; id -un; echo $HOME"); out != "/home/pn\npn\n/home/pn\n" {
		t.Fatalf("%q", out)
	}
	if i := env.Info(); i.Home != "/home/pn" || i.User != "pn" || i.Cwd != "/home/pn" || !i.Created {
		t.Fatalf("%+v", i)
	}
}

func TestShellStateLastsAndIsSharedByConnections(t *testing.T) {
	p, env := newSandbox(t)
	sh(t, env, "cd /usr/share; export A='x y'; f() { echo in f; }; alias l='echo in l'")
	second, err := p.Attach(t.Context(), env.Info().Name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := second.Cleanup(context.Background(), false); err != nil {
			t.Error(err)
		}
	}()
	for _, e := range []contract.Environment{env, second} {
		if out := sh(t, e, "pwd; echo \"$A\"; f; l"); out != "/usr/share\nx y\nin f\nin l\n" {
			t.Fatalf("%q", out)
		}
	}
}

func TestUsersSwitch(t *testing.T) {
	_, env := newSandbox(t)
	for user, want := range map[string]string{
		"":       "1000 1000 /home/pn\n",
		"pn":     "1000 1000 /home/pn\n",
		"root":   "0 0 /root\n",
		"4242":   "4242 0 /tmp/home-4242\n",
		"1000:0": "1000 0 /home/pn\n",
		"0:100":  "0 100 /root\n",
	} {
		r := run(t, env, contract.Request{Command: "echo $(id -u) $(id -g) $HOME && touch \"$HOME/probe-$(id -u)-$(id -g)\"", User: user})
		if string(r.Output) != want || r.ExitCode != 0 {
			t.Errorf("user %q: %d %q", user, r.ExitCode, r.Output)
		}
	}
	_, err := env.Execute(t.Context(), contract.Request{Command: "true", User: "nosuch"})
	var b *contract.BackendError
	if !errors.As(err, &b) || !strings.Contains(b.Reason, "nosuch") {
		t.Fatalf("unknown user: %v", err)
	}
	if out := sh(t, env, "sudo -n id -u; sudo -n apt-get --version >/dev/null && echo apt"); out != "0\napt\n" {
		t.Fatalf("sudo: %q", out)
	}
}

func TestTimeoutAndInterruptKillTheTree(t *testing.T) {
	_, env := newSandbox(t)
	sh(t, env, "nohup sleep 4711 >/dev/null 2>&1 &")
	left := func() string {
		return sh(t, env, "pgrep -fx 'sleep (78|79|80)' | wc -l; pgrep -fx 'sleep 4711' | wc -l")
	}

	began := time.Now()
	r := run(t, env, contract.Request{Command: "echo part; trap '' TERM INT; sleep 78 & setsid sleep 79 & sleep 80", Timeout: 2 * time.Second})
	if took := time.Since(began); r.ExitCode != contract.ExitTimedOut || !r.TimedOut || !strings.HasPrefix(string(r.Output), "part\n") || took > 4*time.Second {
		t.Fatalf("%+v after %s", r, took)
	}
	if out := left(); out != "0\n1\n" {
		t.Fatalf("after the time-out: %q", out)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	out := &trigger{want: "ready\n", fire: func() { cancel(contract.ErrInterrupted) }}
	r, err := env.Execute(ctx, contract.Request{Command: "echo ready; setsid sleep 78 & sleep 79", Stdout: out})
	if err != nil || r.ExitCode != contract.ExitInterrupted || !r.Interrupted {
		t.Fatalf("%+v %v", r, err)
	}
	if out := left(); out != "0\n1\n" {
		t.Fatalf("after the interrupt: %q", out)
	}
}

// trigger calls fire when want was written.
type trigger struct {
	got  bytes.Buffer
	want string
	fire func()
}

func (w *trigger) Write(p []byte) (int, error) {
	w.got.Write(p)
	if strings.Contains(w.got.String(), w.want) {
		w.fire()
	}
	return len(p), nil
}

func TestBytesArriveUnchanged(t *testing.T) {
	_, env := newSandbox(t)
	const size = 64 << 20
	in, out := sha256.New(), sha256.New()
	r, err := env.Execute(t.Context(), contract.Request{
		Command: "cat", Stdin: io.TeeReader(io.LimitReader(rand.Reader, size), in), Stdout: out,
	})
	if err != nil || r.ExitCode != 0 || !bytes.Equal(in.Sum(nil), out.Sum(nil)) {
		t.Fatalf("%+v %v: %x in, %x out", r, err, in.Sum(nil), out.Sum(nil))
	}
	// stdout and stderr of one command keep their order.
	if out := sh(t, env, "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done"); out != "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n" {
		t.Fatalf("%q", out)
	}
	r = run(t, env, contract.Request{Command: "seq 1 1000000; echo END", MaxOutput: 1000})
	if len(r.Output) > 1100 || !bytes.HasPrefix(r.Output, []byte("1\n2\n")) || !bytes.HasSuffix(r.Output, []byte("\nEND\n")) || r.Dropped == 0 {
		t.Fatalf("bounded capture kept %d bytes, dropped %d: %.80q", len(r.Output), r.Dropped, r.Output)
	}
}

func TestFilesComeOutWhole(t *testing.T) {
	_, env := newSandbox(t)
	sh(t, env, `printf '\xff\x00\x80z' > "$HOME/b in"; mkdir d; ln -s "$HOME/b in" d/l; chmod 000 d; mkdir t && sudo -n mount -t tmpfs x t 2>/dev/null || true`)
	var got bytes.Buffer
	if err := env.FetchFile(t.Context(), "/home/pn/b in", &got, 4); err != nil || got.String() != "\xff\x00\x80z" {
		t.Fatalf("%q %v", got.String(), err)
	}
	if err := env.FetchFile(t.Context(), "/home/pn/b in", io.Discard, 3); !errors.Is(err, contract.ErrTooLarge) {
		t.Fatal(err)
	}
	for _, path := range []string{"/home/pn/none", "/home/pn", "/home/pn/d/l", "/etc/shadow", "/dev/zero"} {
		var f *contract.FileError
		if err := env.FetchFile(t.Context(), path, io.Discard, 10); !errors.As(err, &f) || f.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
	sh(t, env, "chmod 755 d")
	if p, err := env.Realpath(t.Context(), "/home/pn/d/../d/l"); err != nil || p != "/home/pn/b in" {
		t.Errorf("%q %v", p, err)
	}
	if p, err := env.Realpath(t.Context(), "/home/pn/missing"); err != nil || p != "/home/pn/missing" {
		t.Errorf("%q %v", p, err)
	}
	if p, err := env.Realpath(t.Context(), "/no/such/dir/x"); err == nil {
		t.Errorf("%q", p)
	}
}

func TestEightCreationsGiveOneContainer(t *testing.T) {
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name = uniqueName(t, p)
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		other := newProvider(t) // as another process would have
		wg.Go(func() {
			env, err := other.CreateEnvironment(t.Context(), cfg, "")
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = env.Info().ContainerID
			if err := env.Cleanup(t.Context(), false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || id == "" {
			t.Fatalf("%q", ids)
		}
	}
}

func TestHomeOutlivesTheContainer(t *testing.T) {
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name = uniqueName(t, p)
	env := create(t, p, cfg)
	first := env.Info().ContainerID
	sh(t, env, "echo kept > ~/note; sudo -n touch /etc/gone")
	cfg.Recreate = true
	again := create(t, p, cfg)
	if again.Info().ContainerID == first {
		t.Fatal("it was not made anew")
	}
	if out := sh(t, again, "cat ~/note; ls /etc/gone 2>/dev/null; hostname"); out != "kept\n"+docker(t, "inspect", "-f", "{{.Config.Hostname}}", again.Info().ContainerID)+"\n" {
		t.Fatalf("%q", out)
	}
}

func TestVanishedAndStoppedSandboxesComeBack(t *testing.T) {
	_, env := newSandbox(t)
	sh(t, env, "echo kept > ~/note")
	for _, verb := range [][]string{{"rm", "-f"}, {"stop", "-t", "2"}, {"kill"}} {
		docker(t, append(verb, env.Info().ContainerID)...)
		r := run(t, env, contract.Request{Command: "cat ~/note"})
		if !r.Recreated || string(r.Output) != "kept\n" {
			t.Fatalf("after %v: %+v", verb, r)
		}
		if r := run(t, env, contract.Request{Command: "true"}); r.Recreated {
			t.Fatalf("after %v: told twice", verb)
		}
	}
	docker(t, "pause", env.Info().ContainerID)
	fresh := newProvider(t)
	_, err := fresh.Attach(t.Context(), env.Info().Name)
	docker(t, "unpause", env.Info().ContainerID)
	var b *contract.BackendError
	if !errors.As(err, &b) || !strings.Contains(b.Reason, "is paused") {
		t.Fatalf("paused: %v", err)
	}
	sh(t, env, "true")
}

func TestLimitsReallyApply(t *testing.T) {
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name, cfg.CPUs, cfg.MemoryMB, cfg.PIDs, cfg.ShmBytes, cfg.Network = uniqueName(t, p), 0.5, 256, 64, 32<<20, contract.NetworkNone
	cfg.Env = map[string]string{"GREETING": "a b"}
	env := create(t, p, cfg)
	got := docker(t, "inspect", "-f", "{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} {{.HostConfig.NetworkMode}}", env.Info().ContainerID)
	if got != "500000000 268435456 64 none" {
		t.Fatal(got)
	}
	if out := sh(t, env, `df -m /dev/shm | awk 'END {print $2}'; ls /sys/class/net; echo "$GREETING"`); out != "32\nlo\na b\n" {
		t.Fatalf("%q", out)
	}
}

// A creation that fails leaves nothing: no container, no volume.
func TestFailedCreationsLeaveNothing(t *testing.T) {
	p := newProvider(t)
	for name, tc := range map[string]struct {
		change func(*contract.Config)
		want   string
	}{
		"unknown user":  {func(c *contract.Config) { c.User = "nosuch" }, `no user "nosuch"`},
		"missing image": {func(c *contract.Config) { c.Image = "dockerbox/nosuch:1" }, "is not on this daemon"},
		"unknown group": {func(c *contract.Config) { c.User = "pn:nosuch" }, `no group "nosuch"`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := contract.Defaults()
			cfg.Name = "t-" + strings.ToLower(rand.Text()[:10])
			tc.change(&cfg)
			_, err := p.CreateEnvironment(t.Context(), cfg, "")
			var b *contract.BackendError
			if !errors.As(err, &b) || !strings.Contains(b.Reason, tc.want) {
				t.Fatalf("%v, want %q", err, tc.want)
			}
			for _, what := range []string{"ps -a", "volume ls"} {
				args := append(strings.Fields(what), "-q", "--filter", "label=dev.dockerbox.name="+cfg.Name)
				if left := docker(t, args...); left != "" {
					t.Fatalf("docker %s shows %s", what, left)
				}
			}
		})
	}
	if left := docker(t, "ps", "-aq", "--filter", "label=dev.dockerbox.kind=helper"); left != "" {
		t.Fatalf("helper containers left: %s", left)
	}
}

func TestEphemeralSandboxesGoWithTheirEnvironment(t *testing.T) {
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name, cfg.Persistent = uniqueName(t, p), false
	env, err := p.CreateEnvironment(t.Context(), cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	if out := sh(t, env, "touch ~/x && ls ~"); out != "x\n" {
		t.Fatalf("%q", out)
	}
	for range 2 {
		if err := env.Cleanup(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	boxes, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range boxes {
		if b.Name == cfg.Name {
			t.Fatalf("%+v is still there", b)
		}
	}
}

func TestExecPrefixReachesTheContainer(t *testing.T) {
	_, env := newSandbox(t)
	for _, user := range []string{"", "root", "pn", "4242"} {
		argv, err := env.ExecPrefix(t.Context(), user, true)
		if err != nil {
			t.Fatal(err)
		}
		argv = append(argv, "bash", "-c", "id -u; pwd")
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = []string{"PATH=/usr/bin:/bin"} // all that a host keeps
		out, err := cmd.CombinedOutput()
		want := map[string]string{"": "1000", "pn": "1000", "root": "0", "4242": "4242"}[user]
		if err != nil || string(out) != fmt.Sprintf("%s\n/home/pn\n", want) {
			t.Fatalf("%q: %s %v", argv, out, err)
		}
	}
}
