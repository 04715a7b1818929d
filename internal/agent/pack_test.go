//go:build linux

package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/internal/archive"
)

// fed runs the binary's own Main with something on its standard input.
func fed(t *testing.T, input string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	before := standardInput
	standardInput = strings.NewReader(input)
	defer func() { standardInput = before }()
	return program(args...)
}

func TestPackAndUnpack(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	must(t, os.MkdirAll(home+"/tree/sub", 0o755))
	must(t, os.WriteFile(home+"/tree/sub/a", []byte("hello"), 0o640))
	must(t, os.WriteFile(home+"/file", []byte("x"), 0o600))

	status, packed, stderr := program("pack", "-r", "--", "~/tree")
	if status != 0 || stderr != "totals: 1 5\n" {
		t.Fatalf("%d, %q", status, stderr)
	}
	if status, stdout, stderr := fed(t, packed, "unpack", "--name", "tree", "--", "~/copy"); status != 0 || stdout != "" || stderr != "totals: 1 5\n" {
		t.Fatalf("%d, %q, %q", status, stdout, stderr)
	}
	if data, err := os.ReadFile(home + "/copy/sub/a"); err != nil || string(data) != "hello" {
		t.Errorf("%q, %v", data, err)
	}
	for _, c := range []struct {
		input  string
		args   []string
		status archive.Kind
		stderr string
	}{
		{"", []string{"pack", "--", "~/tree"}, archive.Directory, "totals: 0 0\nfailure: " + home + "/tree\tis a directory\n"},
		{"", []string{"pack", "--", "none\n"}, archive.Missing, "totals: 0 0\nfailure: \"/none\\n\"\tno such file or directory\n"},
		{packed, []string{"unpack", "--name", "tree", "--", "~/file"}, archive.Mismatch, "totals: 0 0\nfailure: " + home + "/file\tis not a directory, and a directory cannot take its place\n"},
		{"", []string{"unpack", "--", "~/x"}, archive.Broken, "totals: 0 0\nfailure: \tthere is nothing to unpack: the other side sent no file\n"},
		{packed[:len(packed)-3*512], []string{"unpack", "--", "~/x"}, archive.Broken, "totals: 0 0\nfailure: \tthe archive ends in the middle of a file\n"},
		{packed, []string{"unpack", "--name", "../x", "--", "~/y"}, archive.Broken, "totals: 0 0\nfailure: ../x\tis not the name of a file\n"},
		{"file\x00none\x00", []string{"remove", "~"}, 0, "totals: 1 0\n"},
		{"../x\x00", []string{"remove", "~"}, archive.Broken, "totals: 0 0\nfailure: ../x\tthe archive has a name that leads out of the destination\n"},
	} {
		status, _, stderr := fed(t, c.input, c.args...)
		if status != int(c.status) || stderr != c.stderr {
			t.Errorf("%q: %d, %q", c.args, status, stderr)
		}
	}
	for _, args := range [][]string{{"pack"}, {"pack", "a", "b"}, {"unpack"}, {"unpack", "--none", "x"}, {"remove"}} {
		if status, stdout, stderr := fed(t, "", args...); status != exitUsage || stdout != "" || stderr == "" {
			t.Errorf("%q: %d, %q, %q", args, status, stdout, stderr)
		}
	}
	if left, err := filepath.Glob(home + "/" + archive.DraftPrefix + "*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	var b bytes.Buffer
	if status := pack([]string{"--tar", "-r", "~/tree"}, &b, &bytes.Buffer{}); status != 0 || !strings.HasPrefix(b.String(), "tree/") {
		t.Errorf("%d, %.20q", status, b.String())
	}
}

// Where a path of a copy is.
func TestPlace(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for path, want := range map[string]string{"~": "/home/me", "~/x": "/home/me/x", "~x": "/~x", "x": "/x", "/x/": "/x/", ".": "/.", "x/.": "/x/."} {
		if got := place(path); got != want {
			t.Errorf("%q: %q", path, got)
		}
	}
}
