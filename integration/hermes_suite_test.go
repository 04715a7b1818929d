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
		t.Run(strings.TrimPrefix(module, "test_"), func(t *testing.T) { runModule(t, dir, module) })
	}
}

// pythonResult is a line of pytests/hermes/run.py.
type pythonResult struct {
	Test, Status, Detail string
}

// runModule turns each test of a Python module into a subtest. A module that ends early, or reports no test at all, fails.
func runModule(t *testing.T, dir, module string) {
	home := newHermesHome(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	defer cancel()
	command := home.command(ctx, home.python, "-u", "run.py", module)
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	results, failed := 0, 0
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var result pythonResult
		if err := json.Unmarshal(lines.Bytes(), &result); err != nil {
			t.Errorf("run.py wrote what is no result: %s", lines.Text())
			continue
		}
		results++
		t.Run(strings.TrimPrefix(result.Test, module+"."), func(t *testing.T) {
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
		t.Fatalf("%s did not end within %v, after %d results\n%s", module, suiteLimit, results, tail(stderr.Bytes()))
	}
	if results == 0 || err != nil && failed == 0 {
		t.Fatalf("%s ended with %v after %d results\n%s", module, err, results, tail(stderr.Bytes()))
	}
}

// tail is the end of a log, short enough for a test's output.
func tail(log []byte) []byte {
	const most = 4000
	return log[max(0, len(log)-most):]
}
