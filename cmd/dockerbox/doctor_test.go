package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/plugin"
)

func TestCheckTable(t *testing.T) {
	checks := []contract.Check{
		{Name: "daemon", Status: contract.CheckOK, Detail: "it answers"},
		{Name: "disk limit", Status: contract.CheckWarn, Detail: "not\nenforced", Remedy: "use xfs"},
		{Name: "image", Status: contract.CheckFail, Detail: "missing", Remedy: "make image"},
		{Name: "sandboxes", Status: contract.CheckFail, Detail: "unknown", Remedy: "look"},
	}
	want := "" +
		"ok    daemon      it answers\n" +
		"warn  disk limit  not enforced\n" +
		"                  remedy: use xfs\n" +
		"fail  image       missing\n" +
		"                  remedy: make image\n" +
		"fail  sandboxes   unknown\n" +
		"                  remedy: look\n"
	if diff := cmp.Diff(want, checkTable(checks)); diff != "" {
		t.Error(diff)
	}
	var b *contract.BackendError
	if err := firstFailure(checks); !errors.As(err, &b) || b.Reason != "2 of 4 checks failed: image, sandboxes" || b.Hint != "make image" {
		t.Errorf("the failure is %v", err)
	}
	if err := firstFailure(checks[:2]); err != nil {
		t.Errorf("a warning is a failure: %v", err)
	}
}

// hermesSays puts a program named hermes on PATH, alone.
func hermesSays(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	if script != "" {
		if err := os.WriteFile(filepath.Join(dir, "hermes"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return filepath.Join(dir, "hermes")
}

func TestCheckHermes(t *testing.T) {
	for name, tc := range map[string]struct {
		script, status, detail string // <hermes> stands for the program's path
	}{
		"none":            {"", "ok", "hermes is not on PATH, so nothing of it was checked"},
		"0.22.2":          {"echo 'Hermes Agent v0.22.2.post1 (2026.9.24)'; echo 'Python: 3.11.7'", "warn", "v0.22.2.post1 at <hermes>: a cd into /home/… does not last between tool calls, and Bot Desktop is refused for plugin backends"},
		"older":           {"echo 'Hermes Agent v0.9.30'", "warn", "v0.9.30 at <hermes>: a cd into /home/… does not last between tool calls, and Bot Desktop is refused for plugin backends"},
		"the one after":   {"echo 'Hermes Agent v0.22.3 (2026.12.1)'", "ok", "v0.22.3 at <hermes>"},
		"much newer":      {"echo 'Hermes Agent 1.0.0'", "ok", "1.0.0 at <hermes>"},
		"no version":      {"echo 'usage: hermes'", "warn", `<hermes> says of its version only "usage: hermes"`},
		"nothing":         {"exit 0", "warn", `<hermes> says of its version only ""`},
		"it fails":        {"echo 'Hermes Agent v0.22.3'; exit 3", "warn", "<hermes> --version: exit status 3"},
		"it cannot start": {"#!/nonexistent\nkill -9 $$", "warn", "<hermes> --version: signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			at := hermesSays(t, tc.script)
			c := checkHermes(t.Context(), 30*time.Second)
			if want := strings.ReplaceAll(tc.detail, "<hermes>", at); c.Name != "Hermes" || string(c.Status) != tc.status || c.Detail != want {
				t.Errorf("%+v, want %s %q", c, tc.status, want)
			}
			if (c.Remedy == "") != (c.Status == contract.CheckOK) {
				t.Errorf("the remedy of %s is %q", c.Status, c.Remedy)
			}
		})
	}
}

// A Hermes that does not come back is given up.
func TestCheckHermesIsBounded(t *testing.T) {
	hermesSays(t, "exec /bin/sleep 600")
	began := time.Now()
	c := checkHermes(context.Background(), 100*time.Millisecond)
	if c.Status != contract.CheckWarn || !strings.Contains(c.Detail, "within 100ms") {
		t.Errorf("%+v", c)
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("it took %s", d)
	}
}

func TestCheckDocker(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if c := checkDocker(); c.Status != contract.CheckOK || !strings.Contains(c.Detail, "dockerbox exec") {
		t.Errorf("%+v", c)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if c := checkDocker(); c.Status != contract.CheckOK || !strings.HasSuffix(c.Detail, " through "+dir+"/docker") {
		t.Errorf("%+v", c)
	}
}

func TestCheckPlugin(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "dockerbox")
	if err := os.WriteFile(other, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		change         func(dir string) // of a plugin that is well; nil with installed false
		installed      bool
		status, detail string // DIR stands for the plugin's directory
	}{
		"well":           {func(string) {}, true, "ok", "installed at DIR, of this version, and runs this executable"},
		"no Hermes":      {nil, false, "ok", "not installed; there is no Hermes home at "},
		"a missing file": {func(d string) { must(os.Remove(filepath.Join(d, "child.py"))) }, true, "warn", "the one at DIR is not of this version: other content in child.py"},
		"two other files": {func(d string) {
			must(os.WriteFile(filepath.Join(d, "child.py"), nil, 0o600))
			must(os.WriteFile(filepath.Join(d, "version.py"), nil, 0o600))
		}, true, "warn", "other content in child.py and 1 more"},
		"runs another": {func(d string) { must(os.WriteFile(filepath.Join(d, plugin.BinaryRecord), []byte(other+"\n"), 0o600)) }, true, "warn", "it runs " + other + ", not this executable, " + self},
		"runs what is gone": {func(d string) {
			must(os.WriteFile(filepath.Join(d, plugin.BinaryRecord), []byte("/gone/dockerbox\n"), 0o600))
		}, true, "warn", "it is to run /gone/dockerbox, which is not there"},
		"no record, none on PATH": {func(d string) { must(os.Remove(filepath.Join(d, plugin.BinaryRecord))); t.Setenv("PATH", d) }, true, "warn", "there is none on PATH"},
		"no record, another on PATH": {func(d string) {
			must(os.Remove(filepath.Join(d, plugin.BinaryRecord)))
			t.Setenv("PATH", filepath.Dir(other))
		}, true, "warn", "it runs " + other},
		"a file in its place": {func(d string) { must(os.RemoveAll(d)); must(os.WriteFile(d, nil, 0o600)) }, true, "warn", "it cannot be read: "},
		"removed":             {func(d string) { must(os.RemoveAll(d)) }, true, "warn", "not installed at DIR"},
	} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "hermes")
			t.Setenv("HERMES_HOME", home)
			dir := filepath.Join(home, "plugins", "dockerbox")
			if tc.installed {
				must(installPlugin(dir, self))
				tc.change(dir)
			}
			c := checkPlugin()
			if want := strings.ReplaceAll(tc.detail, "DIR", dir); c.Name != "plugin" || string(c.Status) != tc.status || !strings.Contains(c.Detail, want) {
				t.Errorf("%+v, want %s %q", c, tc.status, want)
			}
			if (c.Remedy == "") != (c.Status == contract.CheckOK) || c.Remedy != "" && !strings.Contains(c.Remedy, "plugin install") {
				t.Errorf("the remedy of %s is %q", c.Status, c.Remedy)
			}
		})
	}
	t.Setenv("HERMES_HOME", "")
	t.Setenv("HOME", "")
	if c := checkPlugin(); c.Status != contract.CheckWarn || !strings.Contains(c.Detail, "home directory is not known") || c.Remedy == "" {
		t.Errorf("without a home: %+v", c)
	}
}
