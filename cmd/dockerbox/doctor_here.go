package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/plugin"
)

// What doctor looks at on this machine rather than on the daemon's.

// hermesPatience is how long Hermes may take to say its version.
const hermesPatience = 10 * time.Second

const installRemedy = "dockerbox plugin install puts it there and says how Hermes takes it; restart a Hermes that runs"

// checkPlugin compares what is installed with what this executable carries.
func checkPlugin() contract.Check {
	c := contract.Check{Name: "plugin", Status: contract.CheckWarn, Remedy: installRemedy}
	dir, err := pluginPath("")
	var backend *contract.BackendError
	switch {
	case errors.As(err, &backend):
		c.Detail, c.Remedy = backend.Reason, backend.Hint
		return c
	case err != nil:
		c.Detail = err.Error()
		return c
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(filepath.Dir(dir))); errors.Is(err, fs.ErrNotExist) {
			return contract.Check{Name: c.Name, Status: contract.CheckOK, Detail: "not installed; there is no Hermes home at " + filepath.Dir(filepath.Dir(dir))}
		}
		c.Detail = fmt.Sprintf("not installed at %s", dir)
		return c
	}
	differs, err := differingFiles(dir)
	switch {
	case err != nil:
		c.Detail = fmt.Sprintf("it cannot be read: %v", err)
		return c
	case len(differs) > 0:
		c.Detail = fmt.Sprintf("the one at %s is not of this version: other content in %s", dir, differs[0])
		if more := len(differs) - 1; more > 0 {
			c.Detail += fmt.Sprintf(" and %d more", more)
		}
		return c
	}
	if problem := wrongBinary(dir); problem != "" {
		c.Detail, c.Remedy = problem, "run plugin install with the executable that Hermes is to use: dockerbox plugin install"
		return c
	}
	return contract.Check{Name: c.Name, Status: contract.CheckOK, Detail: fmt.Sprintf("installed at %s, of this version, and runs this executable", dir)}
}

// differingFiles lists the files of the embedded plugin that are missing in dir or have another content.
func differingFiles(dir string) ([]string, error) {
	files, err := fs.Sub(plugin.FS, plugin.Root)
	if err != nil {
		return nil, err
	}
	var differs []string
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil || !bytes.Equal(got, want) {
			differs = append(differs, path)
		}
		return nil
	})
	slices.Sort(differs)
	return differs, err
}

// wrongBinary says what the plugin runs if it is not this executable. The record that plugin install writes comes first, then PATH, as in
// the plugin itself.
func wrongBinary(dir string) string {
	self, err := os.Executable()
	if err != nil {
		return "" // nothing to compare with
	}
	record, err := os.ReadFile(filepath.Join(dir, plugin.BinaryRecord))
	path, _, _ := strings.Cut(string(record), "\n")
	if err == nil && path != "" {
		if _, err := os.Stat(path); err != nil {
			return fmt.Sprintf("it is to run %s, which is not there", path)
		}
	} else if path, err = exec.LookPath("dockerbox"); err != nil {
		return "it finds no dockerbox: it came without an install record, and there is none on PATH"
	}
	if !sameFile(path, self) {
		return fmt.Sprintf("it runs %s, not this executable, %s", path, self)
	}
	return ""
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

var versionPattern = regexp.MustCompile(`\bv?(\d+)\.(\d+)\.(\d+)\S*`)

// lastLimited is the newest Hermes that treats plugin backends as lesser ones.
var lastLimited = []int{0, 22, 2}

// checkHermes asks Hermes for its version, within patience.
func checkHermes(ctx context.Context, patience time.Duration) contract.Check {
	c := contract.Check{Name: "Hermes", Status: contract.CheckOK}
	path, err := exec.LookPath("hermes")
	if err != nil {
		c.Detail = "hermes is not on PATH, so nothing of it was checked"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, path, "--version")
	command.WaitDelay = time.Second // for what it started and what keeps its output open
	out, err := command.Output()
	first, _, _ := strings.Cut(string(out), "\n")
	found := versionPattern.FindStringSubmatch(first)
	switch {
	case ctx.Err() != nil:
		c.Detail = fmt.Sprintf("%s did not say its version within %s", path, patience)
	case err != nil:
		c.Detail = fmt.Sprintf("%s --version: %v", path, err)
	case found == nil:
		c.Detail = fmt.Sprintf("%s says of its version only %.60q", path, first)
	}
	if c.Detail != "" {
		c.Status, c.Remedy = contract.CheckWarn, "see what hermes --version says"
		return c
	}
	c.Detail = fmt.Sprintf("%s at %s", found[0], path)
	if slices.Compare(numbers(found[1:]), lastLimited) <= 0 {
		c.Status = contract.CheckWarn
		c.Detail += ": a cd into /home/… does not last between tool calls, and Bot Desktop is refused for plugin backends"
		c.Remedy = "the release after 0.22.2 lifts both; nothing to do until then"
	}
	return c
}

func numbers(texts []string) []int {
	all := make([]int, len(texts))
	for i, text := range texts {
		all[i], _ = strconv.Atoi(text) // digits; what is too long for a number is large all the same
	}
	return all
}

// checkDocker tells what streams into a sandbox run on.
func checkDocker() contract.Check {
	c := contract.Check{Name: "docker CLI", Status: contract.CheckOK, Detail: "not on PATH; streams into a sandbox run through dockerbox exec"}
	if path, err := exec.LookPath("docker"); err == nil {
		c.Detail = "streams into a sandbox run through " + path
	}
	return c
}
