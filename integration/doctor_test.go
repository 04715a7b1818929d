//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// doctorLimit is what a doctor may take at most, the ones that get no answer included, with room for a machine under load.
const doctorLimit = 20 * time.Second

// doctor runs `dockerbox doctor --json` and returns its rows by name. change prepares the command, nil for not at all.
func doctor(t *testing.T, change func(*exec.Cmd)) (rows map[string]contract.Check, status int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, dockerboxBinary(t), "doctor", "--json")
	command.Env = append(os.Environ(), "HERMES_HOME="+filepath.Join(t.TempDir(), "none"))
	if change != nil {
		change(command)
	}
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	began := time.Now()
	err := command.Run()
	if d := time.Since(began); d > doctorLimit {
		t.Errorf("it took %s", d)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var answer struct {
		Schema int
		Checks []contract.Check
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || answer.Schema != 1 {
		t.Fatalf("%v, of %q; stderr %q", err, out.Bytes(), errs.Bytes())
	}
	rows = map[string]contract.Check{}
	for _, c := range answer.Checks {
		if c.Detail == "" || (c.Remedy == "") != (c.Status == contract.CheckOK) {
			t.Errorf("%+v: want a detail, and a remedy unless it is ok", c)
		}
		rows[c.Name] = c
	}
	return rows, command.ProcessState.ExitCode(), errs.String()
}

// probes lists the containers that doctors made and that are still there, of those the ones that filters of docker ps leave.
func probes(t *testing.T, filters ...string) []string {
	t.Helper()
	words := []string{"ps", "--all", "--format", "{{.Names}}", "--filter", "name=dockerbox-probe-"}
	for _, f := range filters {
		words = append(words, "--filter", f)
	}
	out, err := exec.Command("docker", words...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// noProbes waits until no probe container is left: the daemon removes that of a doctor that was killed, and another may be at work at this
// moment.
func noProbes(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for left := probes(t); len(left) > 0; left = probes(t) {
		if time.Now().After(deadline) {
			t.Fatalf("probe containers remain: %q", left)
		}
	}
}

// Where all of these tests run, a doctor finds nothing that keeps commands from running, and says of each limit what is so.
func TestDoctorOnThisMachine(t *testing.T) {
	rows, status, stderr := doctor(t, nil)
	if status != 0 || stderr != "" {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	for _, name := range []string{
		"daemon", "API version", "engine", "disk limit", "seccomp", "image", "agent", "container", "memory limit", "CPU limit", "process limit",
		"user namespaces", "sandboxes", "plugin", "Hermes", "docker CLI",
	} {
		if c, ok := rows[name]; !ok || c.Status == contract.CheckFail {
			t.Errorf("row %q is %+v, %v", name, c, ok)
		}
	}
	noProbes(t)
}

// A quota that is asked for and cannot be had is said, never assumed (a case from the field: container_disk=1000 on ext4).
func TestDoctorSaysWhetherTheDiskLimitHolds(t *testing.T) {
	rows, _, _ := doctor(t, nil)
	driver, err := exec.Command("docker", "info", "--format", "{{.Driver}} {{.DriverStatus}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := rows["disk limit"]
	if strings.HasPrefix(string(driver), "overlay2") && !strings.Contains(string(driver), "xfs") {
		if got.Status != contract.CheckWarn || !strings.Contains(got.Detail, "not enforced") || !strings.Contains(got.Remedy, "pquota") {
			t.Errorf("on %s the row is %+v", driver, got)
		}
		return
	}
	// Elsewhere the daemon itself tells: it makes a container with a quota, or it does not.
	name := freshName("quota")
	made := exec.Command("docker", "create", "--name", name, "--storage-opt", "size=1g", "dockerbox/desktop:latest").Run() == nil
	if out, err := exec.Command("docker", "rm", "-f", name).CombinedOutput(); made && err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if made != (got.Status == contract.CheckOK) {
		t.Errorf("docker made a container with a quota: %v; the row is %+v", made, got)
	}
}

// Whoever may not use the daemon, has none, or has one that is silent reads why and what to do, and soon.
func TestDoctorOfADaemonThatIsOfNoUse(t *testing.T) {
	dir, err := os.MkdirTemp("", "doctor") //nolint:usetesting // t.TempDir is for its owner alone, and another account is to reach this
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	listen := func(name string, mode os.FileMode, serve func(net.Conn)) string {
		path := filepath.Join(dir, name)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go serve(c)
			}
		}()
		return "unix://" + path
	}
	silent := listen("silent.sock", 0o666, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	closed := listen("closed.sock", 0o600, func(c net.Conn) { _ = c.Close() })
	// The built executable may stand where only its owner can go.
	self, err := os.ReadFile(dockerboxBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	reachable := filepath.Join(dir, "dockerbox")
	if err := os.WriteFile(reachable, self, 0o755); err != nil {
		t.Fatal(err)
	}
	asNobody := func(c *exec.Cmd) {
		needRoot(t)
		const nobody = 65534
		c.Path, c.Dir = reachable, "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	for name, tc := range map[string]struct {
		host   string
		change func(*exec.Cmd)
		detail []string
		remedy string
	}{
		"no socket":       {"unix://" + filepath.Join(dir, "none.sock"), nil, []string{"none.sock", "does not answer"}, "start it"},
		"no permission":   {closed, asNobody, []string{"no permission", "closed.sock"}, "docker group"},
		"a silent daemon": {silent, nil, []string{"silent.sock", "has not answered within 3s"}, "docker ps"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, status, stderr := doctor(t, func(c *exec.Cmd) {
				c.Env = append(slices.DeleteFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, "DOCKER_") }), "DOCKER_HOST="+tc.host)
				if tc.change != nil {
					tc.change(c)
				}
			})
			got := rows["daemon"]
			if status != 125 || got.Status != contract.CheckFail || !strings.Contains(got.Remedy, tc.remedy) {
				t.Errorf("status %d, %+v", status, got)
			}
			for _, part := range tc.detail {
				if !strings.Contains(got.Detail, part) {
					t.Errorf("%q says nothing of %q", got.Detail, part)
				}
			}
			if len(rows) != 4 || !strings.HasPrefix(stderr, "dockerbox: error: 1 of 4 checks failed: daemon\ndockerbox: hint: "+got.Remedy+"\n") {
				t.Errorf("%d rows, stderr %q", len(rows), stderr)
			}
		})
	}
}

// A doctor that is interrupted, or killed, while its container runs leaves none behind. (One that never ran does not end by itself: a later
// doctor sweeps it, which a unit test holds.)
func TestDoctorGivenUpLeavesNothing(t *testing.T) {
	for name, sig := range map[string]os.Signal{"interrupted": syscall.SIGINT, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			noProbes(t)
			const tries = 50 // the container runs for a moment only, and has to be seen in it
			for range tries {
				if giveUp(t, sig) {
					noProbes(t)
					return
				}
			}
			t.Fatalf("in %d runs of doctor its container was never seen running", tries)
		})
	}
}

// giveUp starts a doctor and sends it a signal once its container runs. It is false when the doctor was over before that was seen.
func giveUp(t *testing.T, sig os.Signal) (sent bool) {
	t.Helper()
	command := exec.Command(dockerboxBinary(t), "doctor")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }() // how it ends is not what this is about
	for len(probes(t, "status=running")) == 0 {
		select {
		case <-ended:
			return false
		default:
		}
	}
	err := command.Process.Signal(sig)
	<-ended
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	return err == nil
}

// Real Hermes shows the rows: as a whole in `hermes status`, and what keeps commands from running as an issue of `hermes doctor`.
func TestHermesShowsTheDoctorsRows(t *testing.T) {
	home := newHermesHome(t, "")
	home.run(time.Minute, home.hermesCLI(), "config", "set", "terminal.backend", "dockerbox")
	report := home.run(time.Minute, home.hermesCLI(), "status", "--full")
	for _, part := range []string{
		"dockerbox executable: ✓ (" + home.dockerbox, "dockerbox versions: ✓ (plugin ", "dockerbox daemon: ✓ (version ", "dockerbox disk limit: ✓ (",
		"dockerbox memory limit: ✓ (", "dockerbox sandboxes: ✓ (", "dockerbox on this Hermes: ✓ (warning: ",
	} {
		if !strings.Contains(report, part) {
			t.Errorf("the report lacks %q:\n%s", part, report)
		}
	}
	noProbes(t)
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	issues := home.run(time.Minute, home.python, "-c", "import os; os.environ['TERMINAL_ENV'] = 'dockerbox'\n"+
		"from hermes_cli.doctor_tools import _check_plugin_backend\nissues = []\n_check_plugin_backend('dockerbox', issues)\nprint('issues:', *issues, sep='\\n')")
	for _, part := range []string{"✗ dockerbox daemon (the docker daemon at unix:///nonexistent/docker.sock does not answer", "issues:\nthe docker daemon at unix:///nonexistent/docker.sock"} {
		if !strings.Contains(issues, part) {
			t.Errorf("the report lacks %q:\n%s", part, issues)
		}
	}
	const lines = `
from hermes_cli.plugins import discover_plugins
discover_plugins()
from agent.terminal_env_registry import get_provider
provider = get_provider("dockerbox")
print(*provider.setup_instructions(), sep="\n")
print(*provider.probe(), sep=" | ")
`
	said := home.run(time.Minute, home.python, "-c", lines)
	for _, part := range []string{"dockerbox cannot run yet: the docker daemon at unix:///nonexistent/docker.sock", "1. Next step: start it", "unavailable | the docker daemon at"} {
		if !strings.Contains(said, part) {
			t.Errorf("without a daemon Hermes says %q; want %q", said, part)
		}
	}
}
