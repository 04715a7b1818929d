package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// update rewrites the golden files in the scripts: go test ./cmd/dockerbox -update.
var update = flag.Bool("update", false, "rewrite golden files in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"dockerbox": main})
}

// The scripts need no daemon. None is reachable from them, whatever the machine has.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DOCKER_HOST", "unix:///nonexistent.sock")
			e.Setenv("HOME", e.WorkDir+"/home")
			return os.Mkdir(e.WorkDir+"/home", 0o700)
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
