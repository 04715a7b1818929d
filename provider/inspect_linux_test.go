package provider_test

import (
	"os"
	"path/filepath"
	"testing"
)

// Whoever is root in a sandbox may put anything in the place of bash. A look into it keeps no more of what that prints than limits take, be it
// endless, and says so when they are lost in it.
func TestInspectKeepsLittleOfWhatASandboxSays(t *testing.T) {
	const noise = `printf '%100000s\n' x; `
	for name, tc := range map[string]struct {
		script, note string
		applied      float64
	}{
		"limits":          {"echo memory 7340032", "changed by other means than dockerbox, or limited further by what is outside", 7},
		"noise":           {noise + "echo memory 7340032; " + noise, "its cgroup does not show it", -1},
		"a failure":       {"exit 3", "the container could not be asked: reading its limits ended with status 3", -1},
		"a killed reader": {"kill -9 $$", "the container could not be asked: reading its limits ended with status 137", -1},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			p, cfg := newProvider(t, e), fresh(e)()
			dir := t.TempDir()
			if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the sandbox's account is another
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "bash"), []byte("#!/bin/sh\n"+tc.script+"\n"), 0o755); err != nil { //nolint:gosec // it is to be run
				t.Fatal(err)
			}
			cfg.Env = map[string]string{"PATH": dir + ":/usr/bin:/bin"}
			env := open(t, p, cfg)
			d, err := p.Inspect(t.Context(), env.Info().Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range d.Limits {
				if l.Name == "memory" && (l.Note != tc.note || (l.Applied != nil) != (tc.applied >= 0) || l.Applied != nil && *l.Applied != tc.applied) {
					t.Errorf("%+v", l)
				}
			}
		})
	}
}
