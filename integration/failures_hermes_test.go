//go:build integration

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// installing is `plugin install` in a mount namespace where mount has prepared {dir}/hermes.
func installing(mount string) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string {
		t.Helper()
		needRoot(t)
		target := filepath.Join(f.dir, "hermes")
		if err := os.Mkdir(target, 0o755); err != nil {
			t.Fatal(err)
		}
		unshare, err := exec.LookPath("unshare")
		if err != nil {
			t.Fatal(err)
		}
		f.edit = func(c *exec.Cmd) {
			script := strings.ReplaceAll(mount, "DIR", target) + ` && exec "$0" "$@"`
			c.Args = append([]string{"unshare", "--mount", "sh", "-euc", script, c.Path}, c.Args[1:]...)
			c.Path = unshare
		}
		return nil
	}
}

const (
	cannotInstall = "the plugin could not be installed into {dir}/hermes/plugins/dockerbox: "
	writable      = "make the directory writable for you, or choose another Hermes home with --home DIR"
)

func pluginRows() []badInput {
	install, home := []string{"plugin", "install"}, []string{"HERMES_HOME={dir}/hermes"}
	return []badInput{
		{
			name: "a Hermes home that is read-only", args: install, environ: home, prepare: installing("mount -t tmpfs -o ro tmpfs DIR"),
			status: 125, err: cannotInstall + "read-only file system", hint: writable,
		},
		{
			name: "a Hermes home without room", args: install, environ: home, prepare: installing("mount -t tmpfs -o size=16k tmpfs DIR"),
			status: 125, err: cannotInstall + "no space left on device", hint: "make room there, or choose another Hermes home with --home DIR",
		},
		{
			name: "a Hermes home that is a file", args: install, environ: home,
			prepare: func(t *testing.T, f *failure) []string { f.write(t, "hermes", "", 0o600); return nil },
			status:  125, err: cannotInstall + "not a directory", hint: writable,
		},
		{
			name: "a home of plugins that is a file", args: []string{"plugin", "install", "--home", "{dir}/hermes"},
			prepare: func(t *testing.T, f *failure) []string { f.write(t, "hermes/plugins", "", 0o600); return nil },
			status:  125, err: cannotInstall + "not a directory", hint: writable,
		},
		{
			name: "a Hermes home that is somebody else's", args: install, environ: home, prepare: notWritable,
			status: 125, err: cannotInstall + "permission denied", hint: writable,
		},
		{
			name: "no home at all", args: install, environ: []string{"HOME=", "HERMES_HOME="},
			status: 125, err: "the home directory is not known", hint: "name the Hermes home with --home DIR",
		},
	}
}

// notWritable makes a Hermes home that the row's user, one without privileges, may only read.
func notWritable(t *testing.T, f *failure) []string {
	t.Helper()
	needRoot(t)
	if err := os.MkdirAll(filepath.Join(f.dir, "hermes", "plugins"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.edit = f.asNobody(t)
	return nil
}

func TestFailuresOfThePlugin(t *testing.T) { runFailures(t, pluginRows()) }

// What is wrong around a sandbox of Hermes's, through its own factory.
func TestFailuresInHermes(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("pytests/failures")
	if err != nil {
		t.Fatal(err)
	}
	runModule(t, newHermesHome(t, ""), dir, "test_sandbox", "PYTHONPATH="+dir)
}

// asNobody lets the row's command be run by a user without privileges, and returns what makes it that user's. The row's directory is opened
// for reading, and has an executable that this user may run, for the clone may be anybody's own.
func (f *failure) asNobody(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	for _, dir := range []string{f.dir, filepath.Join(f.dir, "tmp"), filepath.Join(f.dir, "home")} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(dockerboxBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	path := f.write(t, "dockerbox", string(program), 0o755)
	return func(c *exec.Cmd) {
		const nobody = 65534
		c.Path, c.Args[0], c.Dir = path, path, f.dir
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}
