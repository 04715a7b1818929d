//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// These tests are what a sandbox may try from inside: against its own end, against the agent, and against what others see.

// Nothing the account can send to all it may signal ends the sandbox or its state.
func TestAccountCannotSignalTheSandboxAway(t *testing.T) {
	_, env := newSandbox(t)
	sh(t, env, "export KEPT=state")
	id := env.Info().ContainerID
	began := docker(t, "inspect", "-f", "{{.State.StartedAt}}", id)
	for _, command := range []string{"kill -9 -1", "pkill -9 -u pn", "pkill -u pn", "pkill -9 -f dockerbox", "kill -9 1; kill -TERM 1; kill -STOP 1", "sudo kill -9 1"} {
		run(t, env, contract.Request{Command: command})
		if r := run(t, env, contract.Request{Command: "echo $KEPT"}); string(r.Output) != "state\n" || r.Recreated {
			t.Errorf("after %s: %q, recreated %v", command, r.Output, r.Recreated)
		}
	}
	if now := docker(t, "inspect", "-f", "{{.State.StartedAt}}", id); now != began {
		t.Errorf("it was started at %s, again at %s", began, now)
	}
	// The first process collects what falls to it.
	docker(t, "exec", id, "bash", "-c", "for i in 1 2 3; do setsid bash -c 'setsid true & exit' & done; wait")
	deadline := time.Now().Add(10 * time.Second)
	for docker(t, "exec", id, "bash", "-c", "ps -eo stat= | grep -c ^Z || :") != "0" {
		if time.Now().After(deadline) {
			t.Fatal(docker(t, "exec", id, "ps", "-ef"))
		}
	}
}

// limitedSandbox has room for few processes, so that a bomb is soon at its end.
func limitedSandbox(t *testing.T, pids int64) (*provider.Provider, contract.Environment) {
	t.Helper()
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name, cfg.PIDs = uniqueName(t, p), pids
	return p, create(t, p, cfg)
}

// A fork bomb that a finished command left behind does not make the sandbox useless, for old and new connections.
func TestForkBombLeavesTheSandboxUsable(t *testing.T) {
	p, env := limitedSandbox(t, 700)
	sh(t, env, "export KEPT=state; nohup sleep 7001 >/dev/null 2>&1 &")
	run(t, env, contract.Request{Command: ":(){ :|:& };:", Timeout: 3 * time.Second})
	deadline := time.Now().Add(30 * time.Second)
	for {
		second, err := p.Attach(t.Context(), env.Info().Name)
		if err == nil {
			err = second.Cleanup(context.Background(), false)
		}
		r, late := env.Execute(t.Context(), contract.Request{Command: "[[ $(pgrep -c bash) -gt 3 ]] || echo few; echo $KEPT; pgrep -fx 'sleep 7001' >/dev/null || echo gone"})
		if err == nil && late == nil && strings.HasSuffix(string(r.Output), "\nfew\nstate\n") {
			break // after the line that says what was ended
		}
		if time.Now().After(deadline) {
			t.Fatalf("attach: %v; execute: %q, %v", err, r.Output, late)
		}
	}
}

// A tree that forks faster than it can be looked at, or fills the sandbox, dies with its time-out; the job of an earlier command does not.
func TestFastTreesDieWithTheTimeout(t *testing.T) {
	_, env := limitedSandbox(t, 700)
	sh(t, env, "export KEPT=state; nohup sleep 7002 >/dev/null 2>&1 &")
	for _, command := range []string{
		`exec -a trace perl -e '$SIG{TERM} = "IGNORE"; while (1) { exit if fork; setpgrp }' & sleep 60`,
		`exec -a trace perl -e 'use POSIX; $SIG{TERM} = "IGNORE"; while (1) { exit if fork; POSIX::setsid() }' & sleep 60`,
		`:(){ :|:& };: 2>/dev/null; sleep 60`,
	} {
		began := time.Now()
		r := run(t, env, contract.Request{Command: command, Timeout: time.Second, MaxOutput: 1 << 20})
		if r.ExitCode != 124 || !r.TimedOut {
			t.Errorf("%s: status %d, %q", command, r.ExitCode, r.Output)
		}
		if took := time.Since(began); took > 16*time.Second {
			t.Errorf("%s: took %s", command, took)
		}
		out := sh(t, env, "for i in {1..20}; do pgrep -x 'perl|trace' && echo alive; done; [[ $(pgrep -c bash) -gt 3 ]] && ps -ef; pgrep -fx 'sleep 7002' >/dev/null && echo $KEPT")
		if out != "state\n" {
			t.Errorf("after %s: %q", command, out)
		}
	}
}

// Whatever account children have become, they die with their command.
func TestSudoChildrenDieWithTheTimeout(t *testing.T) {
	_, env := newSandbox(t)
	const command = `sudo sleep 7003 & sudo setsid bash -c 'trap "" TERM; sleep 7003; sleep 7003' & sudo -u nobody sleep 7003 & echo up; exec sudo sleep 7003`
	r := run(t, env, contract.Request{Command: command, Timeout: time.Second})
	if r.ExitCode != 124 {
		t.Errorf("status %d, %q", r.ExitCode, r.Output)
	}
	if out := sh(t, env, "pgrep -f 7003 || :"); out != "" {
		t.Errorf("left: %q", out)
	}
}

// Clients that come and are killed leave nothing inside.
func TestKilledClientsLeaveNothing(t *testing.T) {
	_, env := newSandbox(t)
	before := docker(t, "exec", env.Info().ContainerID, "ps", "-e", "--no-headers", "-o", "comm=")
	for range 30 {
		c := exec.CommandContext(t.Context(), dockerboxBinary(t), "run", env.Info().Name, "echo up; sleep 7004")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 3)); err != nil {
			t.Error(err)
		}
		if err := c.Process.Kill(); err != nil {
			t.Error(err)
		}
		var status *exec.ExitError
		if err := c.Wait(); !errors.As(err, &status) || status.String() != "signal: killed" {
			t.Errorf("it ended with %v", err)
		}
	}
	deadline := time.Now().Add(15 * time.Second)
	for {
		after := docker(t, "exec", env.Info().ContainerID, "ps", "-e", "--no-headers", "-o", "comm=")
		if after == before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q became %q", before, after)
		}
	}
}

// staysSmall looks at the memory that an ended client took at most, whatever the sandbox did.
func staysSmall(t *testing.T, c *exec.Cmd) {
	t.Helper()
	const most = 200 << 10 // kilobytes
	if used, ok := c.ProcessState.SysUsage().(*syscall.Rusage); !ok || used.Maxrss > most {
		t.Errorf("it took %+v", used)
	}
}

// A flood in an answer that is held as a whole does not fill the host's memory.
func TestAnswersAreBounded(t *testing.T) {
	_, env := newSandbox(t)
	c := exec.CommandContext(t.Context(), dockerboxBinary(t), "run", "--json", env.Info().Name, "head -c 300000000 /dev/zero; exit 3")
	got := programme(t, c)
	if got.status != 3 || !strings.Contains(got.stdout[max(0, len(got.stdout)-500):], `"dropped":29`) {
		t.Errorf("status %d, %d bytes that end in %q", got.status, len(got.stdout), got.stdout[max(0, len(got.stdout)-500):])
	}
	staysSmall(t, c)
}

// Values and texts of commands stand nowhere but in the processes that were given them, which other accounts cannot look into.
func TestSecretsAreOutOfSight(t *testing.T) {
	_, env := newSandbox(t)
	const secret, mark = "s3cr3t-of-root", "text-of-root"
	done := make(chan string, 1)
	go func() {
		r, err := env.Execute(t.Context(), contract.Request{
			User: "root", Env: map[string]string{"TOKEN": secret}, Command: "touch /tmp/up; until [[ -e /tmp/go ]]; do sleep 0.1; done; : " + mark + "; echo ${#TOKEN}",
		})
		done <- fmt.Sprintf("%s%v", r.Output, err)
	}()
	id := env.Info().ContainerID
	// Written so that the text of the search itself does not match.
	search := `until [[ -e /tmp/up ]]; do sleep 0.1; done
for f in /proc/[0-9]*/{cmdline,environ} $(find /proc/[0-9]*/fd -lname '/memfd*' 2>/dev/null); do
  [[ $f == /proc/$$/* ]] || grep -lsaE 's3cr3[t]-of|tex[t]-of' "$f"
done
grep -rlsE 's3cr3[t]-of|tex[t]-of' /tmp /run /dev/shm /var /etc "$HOME"; :`
	if out := sh(t, env, search); out != "" {
		t.Errorf("the account finds it in %s", out)
	}
	if out := docker(t, "exec", "-u", "root", id, "bash", "-c", `cat /proc/[0-9]*/cmdline | grep -acE 's3cr3[t]-of|tex[t]-of' || :; grep -rlE 's3cr3[t]-of|tex[t]-of' /tmp /run /dev/shm /var /etc /root /home || :`); out != "0" {
		t.Errorf("root finds it: %s", out)
	}
	if out := docker(t, "inspect", id) + docker(t, "logs", id) + docker(t, "events", "--since", "1m", "--until", "0s", "--filter", "container="+id); strings.Contains(out, secret) || strings.Contains(out, mark) {
		t.Error("docker shows it")
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatalf("no processes on this host: %v", err)
	}
	if out, _ := exec.CommandContext(t.Context(), "grep", append([]string{"-alE", "s3cr3[t]-of|tex[t]-of"}, lines...)...).Output(); len(out) > 0 {
		t.Errorf("the host shows it in %s", out)
	}
	sh(t, env, "touch /tmp/go")
	if got, want := <-done, strconv.Itoa(len(secret))+"\n<nil>"; got != want {
		t.Errorf("the command said %q, want %q", got, want)
	}
}
