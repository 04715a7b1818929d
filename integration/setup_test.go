//go:build integration

package integration

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scriptsDir is absolute, because some of the tests run in another directory.
func scriptsDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../scripts")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// scriptResult is what a finished program left.
type scriptResult struct {
	stdout, stderr string
	status         int
}

// runScript runs a program that is expected to start and to end by itself within a minute.
func runScript(t *testing.T, edit func(*exec.Cmd), name string, args ...string) scriptResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if edit != nil {
		edit(command)
	}
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("run %s %s: %v (%v)\n%s", name, strings.Join(args, " "), err, ctx.Err(), stderr.Bytes())
	}
	return scriptResult{stdout.String(), stderr.String(), command.ProcessState.ExitCode()}
}

func TestSetupDockerNamesTheDaemonThatAnswers(t *testing.T) {
	begin := time.Now()
	got := runScript(t, nil, filepath.Join(scriptsDir(t), "setup-docker"))
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v although a daemon answers", took)
	}
	if got.status != 0 || !strings.Contains(strings.TrimSpace(got.stdout), "://") || !strings.Contains(got.stderr, "answers at "+strings.TrimSpace(got.stdout)) {
		t.Errorf("status %d, stdout %q, stderr %q; want 0 and the endpoint on both", got.status, got.stdout, got.stderr)
	}
}

// oneSentence fails unless the program refused with exactly one line that holds all parts.
func oneSentence(t *testing.T, got scriptResult, parts ...string) {
	t.Helper()
	if got.status != 1 || got.stdout != "" {
		t.Errorf("status %d, stdout %q; want 1 and nothing", got.status, got.stdout)
	}
	if strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("stderr is not one line: %q", got.stderr)
	}
	for _, part := range parts {
		if !strings.Contains(got.stderr, part) {
			t.Errorf("stderr %q lacks %q", got.stderr, part)
		}
	}
}

func TestSetupDockerSaysWhatToDoAboutADaemonElsewhere(t *testing.T) {
	got := runScript(t, func(command *exec.Cmd) {
		command.Env = append(os.Environ(), "DOCKER_HOST=unix:///nonexistent/docker.sock")
	}, filepath.Join(scriptsDir(t), "setup-docker"))
	oneSentence(t, got, "unix:///nonexistent/docker.sock", "unset DOCKER_HOST")
}

func TestSetupDockerSaysWhatToDoAboutABrokenContext(t *testing.T) {
	got := runScript(t, func(command *exec.Cmd) {
		command.Env = append(os.Environ(), "DOCKER_HOST=", "DOCKER_CONTEXT=no-such-context")
	}, filepath.Join(scriptsDir(t), "setup-docker"))
	oneSentence(t, got, "no-such-context", "docker context use default")
}

// Somebody without root must be told what to do instead of watching an installation fail.
// The default socket is the shared one, so a mount namespace hides it.
func TestSetupDockerAsAUserSaysWhatToDo(t *testing.T) {
	needRoot(t)
	// Neither the clone nor root's own Python may be readable by the user nobody.
	scripts, err := os.MkdirTemp("", "dockerbox-scripts") //nolint:usetesting // t.TempDir stands in a directory of mode 0700
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(scripts); err != nil {
			t.Error(err)
		}
	})
	if err := os.CopyFS(scripts, os.DirFS(scriptsDir(t))); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(scripts, 0o755); err != nil {
		t.Fatal(err)
	}
	const script = `mount -t tmpfs tmpfs "$(readlink -f /var/run)" && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0/setup-docker"`
	got := runScript(t, func(command *exec.Cmd) {
		command.Dir = "/"
		command.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	}, "unshare", "--mount", "bash", "-euc", script, scripts)
	oneSentence(t, got, "unix:///var/run/docker.sock", "sudo")
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes namespaces of its own and needs root: sudo make integration")
	}
}

func TestSetupDockerStartsAnEngine(t *testing.T) {
	needRoot(t)
	if _, err := exec.LookPath("dockerd"); err != nil {
		t.Fatal("this test starts a second dockerd and must not install one: apt-get install docker.io")
	}
	script, err := filepath.Abs("testdata/no-engine.sh")
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	got := runScript(t, func(command *exec.Cmd) {
		command.Env = append(os.Environ(), "DOCKER_HOST=", "DOCKER_CONTEXT=default")
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
		"bash", script, scriptsDir(t), scratch)
	if got.status != 0 {
		t.Fatalf("no-engine.sh ended with status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	values := map[string]string{}
	for line := range strings.Lines(got.stdout) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		values[name] = value
	}
	const endpoint = "unix:///var/run/docker.sock"
	want := map[string]string{
		"mounts_before": "4", "first": endpoint, "together": endpoint, "foreign_alive": "yes", "dead_mounts": "0", "root_dir": filepath.Join(scratch, "data"),
		"second": endpoint, "same_daemon": "yes",
		"after_crash": endpoint, "new_daemon": "yes",
		"stopped": "yes", "mounts_after": "0", "stop_again": "yes", "data_root_removed": "yes",
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("(-want +got):\n%s\nstderr:\n%s", diff, got.stderr)
	}
	for _, part := range []string{"log " + filepath.Join(scratch, "dockerd.log"), "pid file /var/run/docker.pid", "is no dockerd"} {
		if !strings.Contains(got.stderr, part) {
			t.Errorf("stderr lacks %q:\n%s", part, got.stderr)
		}
	}
	if starts := strings.Count(got.stderr, "setup-docker: starting "); starts != 2 {
		t.Errorf("dockerd was started %d times, want 2: once for the two at the beginning and once after the crash:\n%s", starts, got.stderr)
	}
}

// Whoever lacks four things wants to hear of all four at once.
func TestCheckToolsNamesEverythingThatIsMissing(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	got := runScript(t, func(command *exec.Cmd) { command.Env = []string{"PATH=/nonexistent"} },
		bash, filepath.Join(scriptsDir(t), "check-tools"), "test")
	if got.status != 1 {
		t.Errorf("status %d, want 1", got.status)
	}
	for _, tool := range []string{"go", "make", "git", "python3", "gcc"} {
		prefix := "check-tools: " + tool + " is missing: "
		if strings.Count(got.stderr, prefix) != 1 {
			t.Errorf("stderr does not say %q once:\n%s", prefix, got.stderr)
		}
	}
	if lines := strings.Count(got.stderr, "\n"); lines != 5 {
		t.Errorf("%d lines, want one per missing tool:\n%s", lines, got.stderr)
	}
}

// An old Go or Python is as good as none, and has to be told apart from a missing one.
func TestCheckToolsNamesWhatIsTooOld(t *testing.T) {
	bin := t.TempDir()
	for name, text := range map[string]string{
		"go":      "#!/bin/sh\necho go1.9.7\n",
		"python3": "#!/bin/sh\ncase $2 in *platform*) echo 3.10.1;; *) exit 1;; esac\n",
		"make":    "#!/bin/sh\n", "git": "#!/bin/sh\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	got := runScript(t, func(command *exec.Cmd) { command.Env = []string{"PATH=" + bin} },
		bash, filepath.Join(scriptsDir(t), "check-tools"), "build")
	if got.status != 1 || !strings.Contains(got.stderr, "go is 1.9.7, too old") || !strings.Contains(got.stderr, "python3 is 3.10.1, too old") {
		t.Errorf("status %d, stderr %q; want both named as too old", got.status, got.stderr)
	}
}
