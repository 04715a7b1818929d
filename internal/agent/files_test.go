//go:build linux

package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// program runs the binary's own Main.
func program(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = Main(append([]string{"agent"}, args...), &out, &err)
	return status, out.String(), err.String()
}

func TestFetch(t *testing.T) {
	dir := t.TempDir()
	data := "some\x00bytes\xff\n"
	must(t, os.WriteFile(dir+"/file", []byte(data), 0o600))
	must(t, os.WriteFile(dir+"/empty", nil, 0o600))
	must(t, os.Symlink("file", dir+"/link"))
	must(t, os.Symlink("nothing", dir+"/dangling"))
	must(t, os.Symlink("loop", dir+"/loop"))
	must(t, unix.Mkfifo(dir+"/pipe", 0o600))
	for _, tc := range []struct {
		name, max      string
		status         int
		stdout, stderr string
	}{
		{"file", "0", 0, data, ""},
		{"file", "12", 0, data, ""},
		{"file", "1000000000000", 0, data, ""},
		{"file", "11", exitTooLarge, "", "too large\n"},
		{"link", "0", 0, data, ""},
		{"empty", "1", 0, "", ""},
		{"nothing", "0", exitMissing, "", "no such file or directory\n"},
		{"dangling", "0", exitMissing, "", "no such file or directory\n"},
		{"file/x", "0", exitMissing, "", "not a directory\n"},
		{".", "0", exitNotRegular, "", "is a directory\n"},
		{"pipe", "0", exitNotRegular, "", "is not a regular file\n"},
		{"loop", "0", exitUnreadable, "", "too many levels of symbolic links\n"},
	} {
		status, stdout, stderr := program("fetch", dir+"/"+tc.name, tc.max)
		if status != tc.status || stdout != tc.stdout || stderr != tc.stderr {
			t.Errorf("%s %s: %d, %q, %q", tc.name, tc.max, status, stdout, stderr)
		}
	}
	if status, stdout, _ := program("fetch", "/dev/null", "0"); status != exitNotRegular || stdout != "" {
		t.Errorf("a device: %d, %q", status, stdout)
	}
	// Its size is said to be 0, its content is not.
	if status, stdout, _ := program("fetch", "/proc/self/status", "10"); status != exitTooLarge || len(stdout) != 10 {
		t.Errorf("a file that is larger than it says: %d, %q", status, stdout)
	}
	if status, stdout, _ := program("fetch", "/proc/self/status", "0"); status != 0 || !strings.Contains(stdout, "Pid:") {
		t.Errorf("a file of size 0 with content: %d, %q", status, stdout)
	}
	for _, args := range [][]string{{"fetch"}, {"fetch", "x"}, {"fetch", "x", "-1"}, {"fetch", "x", "y"}, {"fetch", "x", "1", "2"}} {
		if status, stdout, stderr := program(args...); status != exitUsage || stdout != "" || stderr == "" {
			t.Errorf("%q: %d, %q, %q", args, status, stdout, stderr)
		}
	}
}

func TestFetchAsTheAccount(t *testing.T) {
	w := newWorld(t)
	must(t, os.WriteFile(w.path("secret"), []byte("x"), 0))
	if os.Geteuid() == 0 {
		must(t, os.Chown(w.path("secret"), 0, 0))
	}
	must(t, os.WriteFile(w.path("shared"), []byte("shared"), 0o644))
	must(t, os.Mkdir(w.path("bin"), 0o755))
	self, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(w.path("bin/agent"), self, 0o755))
	w.agent.env[asAgent] = "1"
	c := w.connect(t)
	c.argv(w.path("bin/agent"), "fetch", w.path("shared"), "0").want("shared", 0)
	c.argv(w.path("bin/agent"), "fetch", w.path("secret"), "0").want("permission denied\n", exitUnreadable)
	c.argv(w.path("bin/agent"), "realpath", "..").want(w.dir, 0)
}

// The rules are those of readlink -f.
func TestRealpath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	t.Chdir(dir)
	must(t, os.MkdirAll("a/b", 0o755))
	must(t, os.WriteFile("a/file", nil, 0o644))
	odd := "odd \xff\n"
	must(t, os.Mkdir(odd, 0o755))
	for link, target := range map[string]string{
		"l": "a/b", "abs": dir + "/a", "up": "a/../a/b/..", "dangling": "a/none", "deep": "no/such", "loop": "loop", "chain": "l", "rel": "../" + filepath.Base(dir) + "/a",
		"root": "/", "tofile": "a/file", "slash": "a/b/",
	} {
		must(t, os.Symlink(target, link))
	}
	for path, want := range map[string]string{
		".": dir, "": "", "/": "/", "//": "/", "/..": "/", "a": dir + "/a", "a/": dir + "/a", "a//b/.": dir + "/a/b", "a/b/..": dir + "/a",
		"l": dir + "/a/b", "l/..": dir + "/a", "abs/b": dir + "/a/b", "up": dir + "/a", "chain": dir + "/a/b", "rel/file": dir + "/a/file",
		"dangling": dir + "/a/none", "missing": dir + "/missing", "a/missing": dir + "/a/missing", "missing/x": "", "deep": "", "loop": "",
		"a/file": dir + "/a/file", "a/file/x": "", "a/file/": "", "tofile": dir + "/a/file", "root": "/", "root/proc": "/proc", "slash": dir + "/a/b",
		odd: dir + "/" + odd, odd + "/x": dir + "/" + odd + "/x", dir + "/./a/../l": dir + "/a/b",
	} {
		got, err := realpath(path)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: got %q, %v; want %q", path, got, err, want)
		}
	}
	if status, stdout, stderr := program("realpath", odd); status != 0 || stdout != dir+"/"+odd || stderr != "" {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	if status, stdout, stderr := program("realpath", "missing/x"); status != exitMissing || stdout != "" || stderr != "no such file or directory\n" {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	if status, _, stderr := program("realpath", "loop"); status != exitUnreadable || stderr == "" {
		t.Errorf("%d, %q", status, stderr)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"nonsense"}, {"attach", "x"}, {"attach", "--nonsense"}, {"resident", "x"}, {"version", "x"}, {"realpath"}} {
		if status, stdout, stderr := program(args...); status != exitUsage || stdout != "" || !strings.Contains(stderr, "attach") {
			t.Errorf("%q: %d, %q, %q", args, status, stdout, stderr)
		}
	}
	if status, stdout, _ := program("version"); status != 0 || stdout != Version+"\n" {
		t.Errorf("version: %d, %q", status, stdout)
	}
}
