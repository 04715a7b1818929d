//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/plugin"
)

// clean fails when a report of hermes has anything but good news.
func clean(t *testing.T, report string, parts ...string) {
	t.Helper()
	for _, bad := range []string{"✗", "⚠", "WARN", "ERROR", "warning", "caution"} {
		if strings.Contains(report, bad) {
			t.Errorf("the report has %q:\n%s", bad, report)
		}
	}
	for _, part := range parts {
		if !strings.Contains(report, part) {
			t.Errorf("the report lacks %q:\n%s", part, report)
		}
	}
}

func TestHermesPluginsValidate(t *testing.T) {
	home := newHermesHome(t, "")
	source, err := filepath.Abs("../plugin/hermes/dockerbox")
	if err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"source": source, "installed": filepath.Join(home.hermes(), "plugins", "dockerbox")} {
		t.Run(name, func(t *testing.T) {
			clean(t, home.run(time.Minute, home.hermesCLI(), "plugins", "validate", dir),
				"Validation passed", "✓ security scan — safe", "✓ no core override", "✓ capability probe")
		})
	}
}

func TestHermesPluginsDoctor(t *testing.T) {
	home := newHermesHome(t, "")
	clean(t, home.run(time.Minute, home.hermesCLI(), "plugins", "doctor", "dockerbox"), "OK: runtime discovery")
}

// `hermes doctor` runs the provider's own checks when dockerbox is the backend.
func TestHermesDoctorShowsTheBackend(t *testing.T) {
	home := newHermesHome(t, "")
	home.run(time.Minute, home.hermesCLI(), "config", "set", "terminal.backend", "dockerbox")
	report := home.run(2*time.Minute, home.python, "-c", "import os; os.environ['TERMINAL_ENV'] = 'dockerbox'\n"+
		"from hermes_cli.doctor_tools import _check_plugin_backend\nissues = []\n_check_plugin_backend('dockerbox', issues)\nassert not issues, issues")
	for _, part := range []string{home.dockerbox, "dockerbox plugin install", "✓ dockerbox daemon (version ", "✓ dockerbox image (dockerbox/desktop:latest", "after 0.22.2"} {
		if !strings.Contains(report, part) {
			t.Errorf("the report lacks %q:\n%s", part, report)
		}
	}
}

// The way without the executable's help: the plugin out of a Git repository's subfolder, the executable on PATH.
func TestHermesPluginsInstallFromGit(t *testing.T) {
	home := newHermesHome(t, "")
	for _, made := range []string{"plugins", "config.yaml"} {
		if err := os.RemoveAll(filepath.Join(home.hermes(), made)); err != nil {
			t.Fatal(err)
		}
	}
	python := packagedPython(t, home)
	hermes := func(args ...string) string {
		t.Helper()
		return home.run(2*time.Minute, python, append([]string{"-m", "hermes_cli.main"}, args...)...)
	}
	said := hermes("plugins", "install", "--no-enable", "file://"+bareRepository(t, home)+"#plugin/hermes/dockerbox")
	installed := filepath.Join(home.hermes(), "plugins", "dockerbox")
	if _, err := os.Stat(filepath.Join(installed, "__init__.py")); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if _, err := os.Stat(filepath.Join(installed, plugin.BinaryRecord)); err == nil {
		t.Error("the install record must come from `dockerbox plugin install` alone")
	}
	// `hermes plugins enable` builds an environment for all plugins' requirements out of downloads; this one has none.
	hermes("config", "set", "plugins.enabled", `["dockerbox"]`)
	hermes("config", "set", "terminal.backend", "dockerbox")
	clean(t, hermes("plugins", "doctor", "dockerbox"), "OK: runtime discovery")

	const program = `
from hermes_cli.plugins import discover_plugins
discover_plugins()
from agent.terminal_env_registry import get_provider
provider = get_provider("dockerbox")
print(provider.is_available(), provider.doctor_checks()[0])
`
	t.Setenv("PATH", filepath.Dir(home.dockerbox)+string(os.PathListSeparator)+os.Getenv("PATH"))
	if said := home.run(time.Minute, home.python, "-c", program); !strings.Contains(said, "True") || !strings.Contains(said, "by PATH") {
		t.Errorf("with the executable on PATH the provider says %q", said)
	}
	t.Setenv("PATH", t.TempDir())
	if said := home.run(time.Minute, home.python, "-c", program); !strings.Contains(said, "False") || !strings.Contains(said, "dockerbox plugin install") {
		t.Errorf("without an executable the provider says %q; want how to get it", said)
	}
}

// packagedPython makes an interpreter like that of Hermes's own packages. Out of PyPI, Hermes has a package manager that first
// downloads a Python for itself; a marker in the prefix, which the packages ship, tells it that it runs in that Python already.
func packagedPython(t *testing.T, home *hermesHome) string {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "hermes")
	home.run(time.Minute, home.python, "-m", "venv", "--without-pip", prefix)
	site := home.run(time.Minute, home.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'), end='')")
	own := home.run(time.Minute, filepath.Join(prefix, "bin", "python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'), end='')")
	for path, text := range map[string]string{filepath.Join(own, "hermes.pth"): site + "\n", filepath.Join(prefix, "pm-runtime.json"): "{}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(prefix, "bin", "python")
}

// bareRepository holds just what is to be installed, as it is in the work tree, committed or not.
func bareRepository(t *testing.T, home *hermesHome) string {
	t.Helper()
	work, bare := t.TempDir(), filepath.Join(t.TempDir(), "dockerbox.git")
	if err := os.CopyFS(filepath.Join(work, "plugin"), plugin.FS); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) { home.run(time.Minute, "git", append([]string{"-C", work}, args...)...) }
	git("init", "--quiet")
	git("add", "--all")
	git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "--message", "plugin")
	git("clone", "--quiet", "--bare", work, bare)
	return bare
}
