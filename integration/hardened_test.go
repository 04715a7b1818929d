//go:build integration

package integration

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/conformance"
	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/desktop"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// The tests of hardened sandboxes run beside one another: most of what they do is waiting.

//go:embed testdata/hardened_attack.py
var hardenedAttack string

// hardenedSandbox is one with default settings but for what change makes of them.
func hardenedSandbox(t *testing.T, change func(*contract.Config)) (*provider.Provider, contract.Environment) {
	t.Helper()
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name, cfg.Security, cfg.Given = uniqueName(t, p), contract.SecurityHardened, []string{"security", "user", "persistent", "mounts"}
	if change != nil {
		change(&cfg)
	}
	return p, create(t, p, cfg)
}

// confinedStatus is what the kernel says of a process of the sandbox's, whoever starts it.
const confinedStatus = "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2"

func TestHardenedSandboxIsWhatItSays(t *testing.T) {
	t.Parallel()
	_, env := hardenedSandbox(t, nil)
	id := env.Info().ContainerID
	if got := docker(t, "inspect", "-f", "{{.HostConfig.CapAdd}} {{.HostConfig.CapDrop}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.NetworkMode}} {{.HostConfig.Privileged}} {{index .HostConfig.SecurityOpt 1}}", id); got != "[] [ALL] true none false no-new-privileges" {
		t.Errorf("%s", got)
	}
	const status = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"
	for who, got := range map[string]string{
		"a command":        sh(t, env, status),
		"a command of 0":   string(run(t, env, contract.Request{Command: status, User: "0"}).Output),
		"a docker exec":    docker(t, "exec", id, "bash", "-c", status),
		"a docker exec -u": docker(t, "exec", "-u", "root", id, "bash", "-c", status),
	} {
		if strings.TrimSpace(got) != confinedStatus {
			t.Errorf("%s:\n%s", who, got)
		}
	}
	if r := run(t, env, contract.Request{Command: "sudo -n true"}); r.ExitCode == 0 {
		t.Error("sudo works")
	}
	if got := sh(t, env, "for d in / /etc /usr/bin /var/lib /root /opt; do touch $d/x 2>/dev/null && echo $d; done; grep -v -e lo: -e '|' /proc/net/dev || :"); got != "" {
		t.Errorf("can be written to, or leads out: %s", got)
	}
	if got := string(run(t, env, contract.Request{Command: "for d in / /etc /usr/bin /var/lib /opt; do touch $d/x 2>/dev/null && echo $d; done; :", User: "root"}).Output); got != "" {
		t.Errorf("root can write to %s", got)
	}
	for _, dir := range []string{"~", "/tmp", "/var/tmp", "/dev/shm", "$XDG_RUNTIME_DIR"} {
		if got := sh(t, env, "cd "+dir+" && touch x && rm x && echo fine"); got != "fine\n" {
			t.Errorf("%s: %q", dir, got)
		}
	}
	for _, dir := range []string{"~", "/tmp", "/var/tmp"} {
		if got := sh(t, env, "cd "+dir+" && printf '#!/bin/sh\necho ran\n' >x && chmod +x x && ./x; rm x"); got != "ran\n" {
			t.Errorf("a script in %s: %q", dir, got)
		}
	}
	// A command's text is longer than an argument can be.
	if got := sh(t, env, ": "+strings.Repeat("x", 200_000)+"; echo long"); got != "long\n" {
		t.Errorf("%.80q", got)
	}
}

// Nothing that the account sends, traces, takes or fills reaches the agent: state stays, and what commands answer comes from it.
func TestHardenedAgentIsOutOfReach(t *testing.T) {
	t.Parallel()
	p, env := hardenedSandbox(t, nil)
	sh(t, env, "export KEPT=state; nohup sleep 7101 >/dev/null 2>&1 &")
	id := env.Info().ContainerID
	began := docker(t, "inspect", "-f", "{{.State.StartedAt}}", id)
	r := run(t, env, contract.Request{Argv: []string{"python3", "-"}, Stdin: strings.NewReader(hardenedAttack)})
	if r.ExitCode != 0 || string(r.Output) != "" {
		t.Errorf("status %d: %s", r.ExitCode, r.Output)
	}
	for _, command := range []string{
		"for s in {1..64}; do kill -$s 1 2>/dev/null; done; :",
		"echo 'echo lies' >/tmp/lib.c; export LD_PRELOAD=/tmp/lib.so; true",
		"head -c 600000000 /dev/zero >/tmp/full 2>/dev/null; head -c 300000000 /dev/zero >/var/tmp/full 2>/dev/null; df --output=avail /tmp /var/tmp | tail -n 2",
		"kill -9 -1", "pkill -9 -u pn", "pkill -9 -f dockerbox",
	} {
		run(t, env, contract.Request{Command: command})
		r := run(t, env, contract.Request{Command: "unset LD_PRELOAD; echo $KEPT"})
		if !strings.HasSuffix(string(r.Output), "state\n") || r.Recreated {
			t.Errorf("after %s: %q, recreated %v", command, r.Output, r.Recreated)
		}
	}
	second, err := p.Attach(t.Context(), env.Info().Name)
	if err != nil {
		t.Fatal(err)
	}
	if got := sh(t, second, "echo $KEPT; rm -f /tmp/full /var/tmp/full"); got != "state\n" {
		t.Errorf("a second connection: %q", got)
	}
	if err := second.Cleanup(context.Background(), false); err != nil {
		t.Error(err)
	}
	if now := docker(t, "inspect", "-f", "{{.State.StartedAt}}", id); now != began {
		t.Errorf("it was started at %s, again at %s", began, now)
	}
	// Trees die with their time-out, and orphans are collected.
	killed := run(t, env, contract.Request{Command: `setsid bash -c 'trap "" TERM; sleep 7102; sleep 7102' & (setsid sleep 7102 &); sleep 7102`, Timeout: time.Second})
	if killed.ExitCode != contract.ExitTimedOut {
		t.Errorf("status %d", killed.ExitCode)
	}
	docker(t, "exec", id, "bash", "-c", "for i in 1 2 3; do setsid bash -c 'setsid true & exit' & done; wait")
	deadline := time.Now().Add(10 * time.Second)
	for docker(t, "exec", id, "bash", "-c", "pgrep -fx 'sleep 7102'; ps -eo stat= | grep ^Z || :") != "" {
		if time.Now().After(deadline) {
			t.Fatal(docker(t, "exec", id, "ps", "-ef"))
		}
	}
}

// Each account has an agent and a state of its own. Those of other accounts than the sandbox's can be ended by that account, which is said.
func TestHardenedAccountsAreApart(t *testing.T) {
	t.Parallel()
	p, env := hardenedSandbox(t, nil)
	as := func(user, command string) contract.Result {
		t.Helper()
		return run(t, env, contract.Request{Command: command, User: user})
	}
	for user, who := range map[string]string{"0": "0 /root\n", "root": "0 /root\n", "pn": "1000 /home/pn\n", "1000": "1000 /home/pn\n", "1000:1000": "1000 /home/pn\n", "4242": "4242 /tmp/home-4242\n"} {
		if r := as(user, "echo $UID $HOME"); string(r.Output) != who || r.ExitCode != 0 {
			t.Errorf("%s: status %d, %q", user, r.ExitCode, r.Output)
		}
	}
	as("pn", "export OF=pn")
	as("4242", "export OF=4242")
	if got := string(as("1000", "echo $OF").Output) + string(as("4242", "echo $OF").Output) + string(as("0", "echo [$OF]").Output); got != "pn\n4242\n[]\n" {
		t.Errorf("%q", got)
	}
	// What others have going counts as what lives there, and their agents do not.
	lives := func(want string) {
		t.Helper()
		d, err := p.Inspect(t.Context(), env.Info().Name)
		if err != nil || d.Use == nil || fmt.Sprintf("%d %s", d.Use.Jobs, d.Use.Example) != want {
			t.Errorf("lives: %+v, %v, want %s", d.Use, err, want)
		}
	}
	lives("0 ")
	as("4242", "nohup sleep 7103 >/dev/null 2>&1 &")
	lives("1 sleep")
	as("4242", "pkill -fx 'sleep 7103'")
	for _, command := range []string{"pkill -9 -u 4242 -f resident", "pkill -9 -u 0"} {
		if r := run(t, env, contract.Request{Command: command, User: "pn"}); r.ExitCode == 0 {
			t.Errorf("pn: %s works", command)
		}
	}
	_, err := env.Execute(t.Context(), contract.Request{Command: "pkill -9 -f 'dockerbox-agent resident'; sleep 60", User: "4242"})
	var b *contract.BackendError
	if !errors.As(err, &b) || !strings.Contains(b.Reason, "was lost") || b.Hint == "" {
		t.Errorf("%v", err)
	}
	if r := as("4242", "echo [$OF]"); string(r.Output) != "[]\n" || !r.Recreated {
		t.Errorf("%q, recreated %v", r.Output, r.Recreated)
	}
	if r := as("pn", "echo $OF"); string(r.Output) != "pn\n" || r.Recreated {
		t.Errorf("%q, recreated %v", r.Output, r.Recreated)
	}
	if _, err := env.Execute(t.Context(), contract.Request{Command: "id", User: "65531"}); err == nil || !strings.Contains(err.Error(), "that of its connections") {
		t.Errorf("%v", err)
	}
	argv, err := env.ExecPrefix(t.Context(), "4242", false)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), argv[0], append(argv[1:], "bash", "-c", "id -u; echo 'a  b'")...).Output()
	if string(out) != "4242\na  b\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

// Every kind of account and home can be had, and what is in memory is empty after a stop.
func TestHardenedHomesCanBeWrittenTo(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*contract.Config){
		"a number that the image does not know": func(c *contract.Config) { c.User = "4242:100" },
		"root":                                  func(c *contract.Config) { c.User = "root" },
		"no home that is kept":                  func(c *contract.Config) { c.Persistent = false },
		"a number without one":                  func(c *contract.Config) { c.User, c.Persistent = "4242", false },
		"a mount below": func(c *contract.Config) {
			c.Mounts = []contract.Mount{{Source: t.TempDir(), Target: "/home/pn/.config/tool/cache"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, env := hardenedSandbox(t, change)
			if got := sh(t, env, "cd && [[ -O . ]] && mkdir -p ~/.config && echo kept >~/file && echo gone >/tmp/file && [[ $PWD == \"$HOME\" ]] && kill -9 -1 2>/dev/null; :"); got != "" {
				t.Errorf("%q", got)
			}
			if !env.Info().Created || name == "no home that is kept" || name == "a number without one" {
				return
			}
			if err := p.Restart(t.Context(), env.Info().Name, time.Second); err != nil {
				t.Fatal(err)
			}
			r := run(t, env, contract.Request{Command: "cat ~/file; cat /tmp/file; echo again >/tmp/file"})
			if string(r.Output) != "kept\ncat: /tmp/file: No such file or directory\n" || !r.Recreated {
				t.Errorf("%q, recreated %v", r.Output, r.Recreated)
			}
		})
	}
}

// What would undo it is refused, and a standard sandbox becomes a hardened one only by being made anew; its home stays.
func TestHardeningIsSaidAndKeepsTheHome(t *testing.T) {
	t.Parallel()
	p, env := newSandbox(t)
	sh(t, env, "echo kept >~/file")
	cfg := contract.Defaults()
	cfg.Name, cfg.Security, cfg.Given = env.Info().Name, contract.SecurityHardened, []string{"security"}
	if _, err := p.CreateEnvironment(t.Context(), cfg, ""); err == nil || !strings.Contains(err.Error(), "security is standard, wanted hardened; network is bridge, wanted none") {
		t.Errorf("%v", err)
	}
	cfg.Recreate = true
	hardened := create(t, p, cfg)
	if got := sh(t, hardened, "cat ~/file; grep NoNewPrivs /proc/self/status"); got != "kept\nNoNewPrivs:\t1\n" {
		t.Errorf("%q", got)
	}
	cfg.Recreate, cfg.Given = false, []string{}
	if again := create(t, p, cfg); again.Info().ContainerID != hardened.Info().ContainerID {
		t.Error("a second one was made")
	}
}

// The screen works as in a standard sandbox, and Chromium is sandboxed by itself.
func TestHardenedScreen(t *testing.T) {
	t.Parallel()
	_, env := hardenedSandbox(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := func() {
		t.Helper()
		if status, err := desktop.Start(ctx, env, desktop.Options{}); err != nil || !status.Running {
			t.Fatalf("%+v, %v", status, err)
		}
	}
	start()
	run(t, env, contract.Request{Command: "kill -9 -1"}) // it dies without a chance to clean up
	start()
	if picture, err := desktop.Screenshot(ctx, env); err != nil || picture.Bounds().Dx() != 1440 {
		t.Errorf("%v", err)
	}
	out := sh(t, env, "set -a; . /tmp/hermes-bot-desktop/default/env; agent-browser open chrome://sandbox >/dev/null && agent-browser eval document.body.innerText")
	if !strings.Contains(out, "You are adequately sandboxed.") {
		t.Errorf("%s", out)
	}
}

// The whole contract holds in hardened sandboxes. Rows of cases have a sandbox each and run side by side, for most of a case is waiting.
func TestHardenedSandboxesHoldTheContract(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	subject := conformance.Subject{
		Provider: p,
		Config: func() contract.Config {
			cfg := contract.Defaults()
			cfg.Name, cfg.Security = uniqueName(t, p), contract.SecurityHardened
			return cfg
		},
		Discard: func(ctx context.Context, cfg contract.Config) error {
			return p.Remove(ctx, cfg.Name, provider.RemoveOptions{Force: true})
		},
		Vanish: func(ctx context.Context, env contract.Environment) error {
			return p.Remove(ctx, env.Info().Name, provider.RemoveOptions{Force: true, KeepHome: true})
		},
	}
	const rows = 5
	outcomes := make(chan conformance.Outcome)
	var running sync.WaitGroup
	for row := range rows {
		var cases []conformance.Case
		for i, c := range conformance.Cases() {
			if i%rows == row {
				cases = append(cases, c)
			}
		}
		s := subject
		s.Shared = conformance.Share(s.Config())
		running.Go(func() {
			conformance.Run(t.Context(), s, cases, func(o conformance.Outcome) { outcomes <- o })
			if err := s.Shared.Close(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
	}
	go func() { running.Wait(); close(outcomes) }()
	total := 0
	for o := range outcomes {
		total++
		report(t, o)
		if o.Status != conformance.Pass {
			t.Errorf("%s: %s", o.Name, o.Status)
		}
	}
	if want := len(conformance.Cases()); total != want {
		t.Errorf("%d outcomes of %d cases", total, want)
	}
}

// As fast as a standard one, within what a busy machine makes of it.
func TestHardenedCommandsAreAsFast(t *testing.T) {
	_, standard := newSandbox(t)
	_, hardened := hardenedSandbox(t, nil)
	const commands = 50
	took := map[string]time.Duration{}
	for range commands { // in turn: what else the machine does is the same for both
		for name, env := range map[string]contract.Environment{"standard": standard, "hardened": hardened} {
			took[name] += run(t, env, contract.Request{Command: "true"}).Duration
		}
	}
	t.Log(fmt.Sprint(took))
	if took["hardened"] > 3*took["standard"] {
		t.Errorf("%v", took)
	}
}
