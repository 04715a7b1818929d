//go:build integration

package integration

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

//go:embed testdata/fake_agent.py
var fakeAgent string

// resident matches the agent's process inside a sandbox.
const resident = "^dockerbox-agent resident"

// Whoever is root in a sandbox can end its agent. The command that ran is lost, the next one works and says what happened.
func TestKilledAgentIsReplacedAndSaid(t *testing.T) {
	_, env := newSandbox(t)
	sh(t, env, "export LOST=state")
	_, err := env.Execute(t.Context(), contract.Request{Command: "sudo pkill -9 -f '" + resident + "'; sleep 60"})
	var b *contract.BackendError
	if !errors.As(err, &b) || !strings.Contains(b.Reason, "was lost") || b.Hint == "" {
		t.Fatalf("%v", err)
	}
	r := run(t, env, contract.Request{Command: "echo [$LOST]"})
	if string(r.Output) != "[]\n" || !r.Recreated {
		t.Errorf("%q, recreated %v", r.Output, r.Recreated)
	}
	if r := run(t, env, contract.Request{Command: ":"}); r.Recreated {
		t.Error("it is said twice")
	}
}

// agentName is the name the agent of a sandbox listens on.
func agentName(t *testing.T, id string) string {
	t.Helper()
	name := docker(t, "exec", id, "bash", "-c", "grep -ao '@dockerbox-agent/0/.*' /proc/net/unix | head -1")
	if name == "" {
		t.Fatal("the agent does not listen")
	}
	return name
}

// takeName ends the agent and lets account listen on its name in its stead.
func takeName(t *testing.T, id, name, account, behaviour string) (giveBack func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := exec.CommandContext(ctx, "docker", "exec", "-i", "-u", "root", id, "bash", "-c",
		`pkill -9 -f "$1"; while pgrep -f "$1" >/dev/null; do :; done; exec setpriv --reuid "$2" python3 -c "$3" "$4" "$5"`,
		"bash", resident, account, fakeAgent, name, behaviour)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "listening\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return func() {
		docker(t, "exec", "-u", "root", id, "pkill", "-9", "-x", "python3")
		cancel()
		var status *exec.ExitError
		if err := c.Wait(); err != nil && !errors.As(err, &status) {
			t.Error(err)
		}
	}
}

// Anybody in the sandbox can take the name of the agent's socket while there is no agent. Nothing is told to who is not root.
func TestSquattedNameIsSaid(t *testing.T) {
	p, env := newSandbox(t)
	giveBack := takeName(t, env.Info().ContainerID, agentName(t, env.Info().ContainerID), "pn", "zeros")
	if _, err := p.Attach(t.Context(), env.Info().Name); err == nil || !strings.Contains(err.Error(), "user 1000 has taken the name") {
		t.Errorf("%v", err)
	}
	giveBack()
	sh(t, env, ":")
}

// Root in the sandbox can put another program in the agent's place. The host gets an answer or a sentence, in time, and stays small.
func TestFakeAgentIsBounded(t *testing.T) {
	_, env := newSandbox(t)
	name := agentName(t, env.Info().ContainerID)
	for behaviour, want := range map[string]string{
		"zeros": "could not be reached", "too much": "granted", "long frame": "longer than the limit", "exits": "",
		"nothing": endless, "answers": endless,
	} {
		t.Run(behaviour, func(t *testing.T) {
			giveBack := takeName(t, env.Info().ContainerID, name, "root", behaviour)
			defer giveBack()
			bounded(t, env.Info().Name, want)
		})
	}
	sh(t, env, ":")
}

// endless is a behaviour whose end is the host's patience with a kill that is not obeyed: it is measured for a while instead.
const endless = "endless"

func bounded(t *testing.T, name, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, dockerboxBinary(t), "run", "--timeout", "1s", name, "sleep 60")
	switch got := programme(t, c); {
	case want == endless && ctx.Err() == nil:
		t.Errorf("it ended with status %d, %q", got.status, got.stderr)
	case want == endless:
	case ctx.Err() != nil:
		t.Error("it does not end")
	case want == "" && got.status != 255:
		t.Errorf("status %d, %q", got.status, got.stderr)
	case want != "" && (got.status != 125 || !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 2):
		t.Errorf("status %d, %q", got.status, got.stderr)
	}
	staysSmall(t, c)
}
