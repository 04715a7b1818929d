//go:build integration

package integration

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hermesPython is the interpreter of the venv with Hermes 0.22.2; HERMES_PYTHON names another one.
func hermesPython(t *testing.T) string {
	t.Helper()
	return present(t, "HERMES_PYTHON", "../build/hermes/bin/python", "run `make hermes-venv`")
}

// dockerboxBinary is what `make build` makes; DOCKERBOX names another one.
func dockerboxBinary(t *testing.T) string {
	t.Helper()
	return present(t, "DOCKERBOX", "../bin/dockerbox", "run `make build`")
}

// present is a file that a variable or, without it, a path below the repository names. A missing one is a failure with its remedy.
func present(t *testing.T, variable, path, remedy string) string {
	t.Helper()
	if named := os.Getenv(variable); named != "" {
		path = named
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(absolute); err != nil {
		t.Fatalf("%v: %s", err, remedy)
	}
	return absolute
}

// hermesHome is a user's home with a Hermes configuration in it and a sandbox that no other test uses.
type hermesHome struct {
	t         *testing.T
	python    string
	dockerbox string
	dir       string // HOME
	sandbox   string
}

// newHermesHome makes the home and installs the plugin with the built executable, as a user would. more is added to config.yaml.
func newHermesHome(t *testing.T, more string) *hermesHome {
	t.Helper()
	var unique [4]byte
	if _, err := rand.Read(unique[:]); err != nil {
		t.Fatal(err)
	}
	h := &hermesHome{
		t: t, python: hermesPython(t), dockerbox: dockerboxBinary(t), dir: t.TempDir(),
		sandbox: "t-hermes-" + hex.EncodeToString(unique[:]),
	}
	config := fmt.Sprintf("terminal:\n  backend: dockerbox\n  backends:\n    dockerbox:\n      sandbox: %s\nplugins:\n  enabled: [dockerbox]\n", h.sandbox)
	if err := os.MkdirAll(h.hermes(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.hermes(), "config.yaml"), []byte(config+more), 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(time.Minute, h.dockerbox, "plugin", "install", "--home", h.hermes())
	t.Cleanup(func() {
		// Its own context: the test's is over by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if out, err := exec.CommandContext(ctx, h.dockerbox, "rm", "-f", h.sandbox).CombinedOutput(); err != nil {
			t.Errorf("remove the tests' sandbox: %v\n%s", err, out)
		}
	})
	return h
}

func (h *hermesHome) hermes() string { return filepath.Join(h.dir, ".hermes") }

// command prepares a program that sees this home and nothing of the person who runs the tests: no keys, no proxies, no other Hermes.
func (h *hermesHome) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = h.dir
	command.Env = []string{
		"HOME=" + h.dir, "HERMES_HOME=" + h.hermes(), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb",
		"PYTHONDONTWRITEBYTECODE=1", "DOCKERBOX=" + h.dockerbox, "DOCKERBOX_SANDBOX=" + h.sandbox,
		// Whatever tries to leave the machine fails at once instead of waiting for an answer.
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost",
	}
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"} {
		if value, ok := os.LookupEnv(name); ok {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	command.WaitDelay = 5 * time.Second
	return command
}

// run runs a program that has to succeed within limit and returns what it said.
func (h *hermesHome) run(limit time.Duration, name string, args ...string) string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	command := h.command(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		h.t.Fatalf("%s %s: %v\n%s\n%s", filepath.Base(name), strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

// hermesCLI is the `hermes` command of the venv.
func (h *hermesHome) hermesCLI() string { return filepath.Join(filepath.Dir(h.python), "hermes") }
