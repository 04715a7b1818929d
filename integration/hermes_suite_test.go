//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// suiteLimit bounds one module of Python tests.
const suiteLimit = 5 * time.Minute

// TestHermes runs the Python tests below pytests/hermes inside real Hermes, one process and one sandbox for each module.
func TestHermes(t *testing.T) {
	dir, err := filepath.Abs("pytests/hermes")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob(filepath.Join(dir, "test_*.py"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("no test module in %s (%v)", dir, err)
	}
	for _, path := range modules {
		module := strings.TrimSuffix(filepath.Base(path), ".py")
		t.Run(strings.TrimPrefix(module, "test_"), func(t *testing.T) { runModule(t, newHermesHome(t, ""), dir, module) })
	}
}

// pythonResult is a line of pytests/hermes/run.py. A vector's also says which rule it is about and which host has that.
type pythonResult struct {
	Test, Status, Detail string
	Rule                 int
	HeldBy               string `json:"held_by"`
}

// runModule runs a module of Python tests in a Hermes of that home; environ holds further variables for it, NAME=VALUE.
func runModule(t *testing.T, home *hermesHome, dir, module string, environ ...string) {
	t.Helper()
	runPython(t, home, dir, environ, "../hermes/run.py", module)
}

// runPython turns each line that a program reports into a subtest. One that ends early, or reports no test at all, fails.
func runPython(t *testing.T, home *hermesHome, dir string, environ []string, program ...string) []pythonResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	defer cancel()
	command := home.command(ctx, home.python, append([]string{"-u"}, program...)...)
	command.Dir = dir
	command.Env = append(command.Env, environ...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var results []pythonResult
	failed := 0
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var result pythonResult
		if err := json.Unmarshal(lines.Bytes(), &result); err != nil {
			t.Errorf("%s wrote what is no result: %s", program[0], lines.Text())
			continue
		}
		results = append(results, result)
		t.Run(strings.TrimPrefix(result.Test, program[len(program)-1]+"."), func(t *testing.T) {
			if result.Status != "pass" {
				failed++
				t.Error(result.Detail)
			}
		})
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	err = command.Wait()
	if ctx.Err() != nil {
		t.Fatalf("%v did not end within %v, after %d results\n%s", program, suiteLimit, len(results), tail(stderr.Bytes()))
	}
	if len(results) == 0 || err != nil && failed == 0 {
		t.Fatalf("%v ended with %v after %d results\n%s", program, err, len(results), tail(stderr.Bytes()))
	}
	return results
}

// tail is the end of a log, short enough for a test's output.
func tail(log []byte) []byte {
	const most = 4000
	return log[max(0, len(log)-most):]
}
