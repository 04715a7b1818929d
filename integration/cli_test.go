//go:build integration

package integration

import (
	"crypto/rand"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var updateScripts = flag.Bool("update", false, "rewrite golden files in the scripts")

// freshName is a sandbox name nobody else has.
func freshName(hint string) string { return "t-" + hint + "-" + strings.ToLower(rand.Text()[:8]) }

// removeSandboxes takes sandboxes of a test away with their homes.
func removeSandboxes(t *testing.T, names ...string) {
	t.Helper()
	if out, err := exec.Command(dockerboxBinary(t), append([]string{"rm", "-f"}, names...)...).CombinedOutput(); err != nil {
		t.Errorf("remove %v: %v\n%s", names, err, out)
	}
}

// dockerVariables choose the daemon; a script sees those of the caller.
var dockerVariables = []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"}

// Each script has a sandbox name $BOX of its own, removed at the end, and dockerbox first on its PATH.
func TestCLIScripts(t *testing.T) {
	self := dockerboxBinary(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *updateScripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			box := freshName(strings.TrimPrefix(filepath.Base(e.WorkDir), "script-"))
			e.Setenv("BOX", box)
			e.Setenv("PATH", filepath.Dir(self)+string(os.PathListSeparator)+e.Getenv("PATH"))
			for _, name := range dockerVariables {
				e.Setenv(name, os.Getenv(name))
			}
			if config := os.Getenv("DOCKER_CONFIG"); config == "" {
				home, err := os.UserHomeDir()
				if err != nil {
					return err
				}
				e.Setenv("DOCKER_CONFIG", filepath.Join(home, ".docker"))
			}
			e.Defer(func() { removeSandboxes(t, box, box+"-2") })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits runs "exits STATUS COMMAND [ARG...]" and compares the status, which "! exec" does not.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var status *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &status):
		got = status.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s ended with %d, want %d", args[1], got, want)
	}
}
