//go:build integration

package integration

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// cp runs `dockerbox cp` and fails the test if that does.
func cp(t *testing.T, words ...string) said {
	t.Helper()
	got := cli(t, append([]string{"cp"}, words...)...)
	if got.status != 0 {
		t.Fatalf("cp %q: %+v", words, got)
	}
	return got
}

// inside runs a shell command in a sandbox, which has to succeed, as its account.
func inside(t *testing.T, box, command string) string {
	t.Helper()
	got := cli(t, "exec", box, "bash", "-c", command)
	if got.status != 0 {
		t.Fatalf("%s: %+v", command, got)
	}
	return strings.TrimSpace(got.stdout)
}

// A sandbox of either profile takes and gives files, also in /tmp, which the hardened one has in memory.
func TestCopiesInBothProfiles(t *testing.T) {
	for _, profile := range []string{"standard", "hardened"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			box, dir := freshName("cp"), t.TempDir()
			t.Cleanup(func() { removeSandboxes(t, box) })
			if got := cli(t, "up", "--profile", profile, box); got.status != 0 {
				t.Fatalf("%+v", got)
			}
			tree := filepath.Join(dir, "tree")
			if err := os.MkdirAll(filepath.Join(tree, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, data := range map[string]string{"a": "a", "sub/b\nc": "bc", "-rf": "dash"} {
				if err := os.WriteFile(filepath.Join(tree, name), []byte(data), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("a", filepath.Join(tree, "link")); err != nil {
				t.Fatal(err)
			}
			for _, dest := range []string{"/tmp/tree", "~/tree"} {
				cp(t, "-r", tree, box+":"+dest)
				if got := inside(t, box, "cd "+dest+" && stat -c '%U %a' a && cat a sub/* ./-rf && readlink link"); got != "pn 640\nabcdasha" {
					t.Errorf("%s: %q", dest, got)
				}
				back := filepath.Join(dir, "back"+strings.ReplaceAll(dest, "/", "-"))
				var answer struct{ Schema, Files, Bytes int }
				if err := json.Unmarshal([]byte(cp(t, "-r", "--json", box+":"+dest, back).stdout), &answer); err != nil || answer.Schema != 1 || answer.Files != 4 || answer.Bytes != 7 {
					t.Errorf("%+v, %v", answer, err)
				}
				if out, err := exec.CommandContext(t.Context(), "diff", "-r", "--no-dereference", tree, back).CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			}
			if got := cp(t, box+":/tmp/tree/a", filepath.Join(dir, "one")); got.stdout != "" || got.stderr != "dockerbox: copied 1 file, 1B\n" {
				t.Errorf("%+v", got)
			}
			got := cli(t, "cp", filepath.Join(tree, "a"), box+":/usr/a")
			if got.status != 125 || !strings.HasPrefix(got.stderr, "dockerbox: error: /usr/a in the sandbox: ") {
				t.Errorf("%+v", got)
			}
			copyArchives(t, box, dir)
		})
	}
}

// copyArchives sends a tree through a tar stream in both directions.
func copyArchives(t *testing.T, box, dir string) {
	t.Helper()
	var archive, stderr bytes.Buffer
	out := exec.CommandContext(t.Context(), dockerboxBinary(t), "cp", box+":/tmp/tree", "-")
	out.Stdout, out.Stderr = &archive, &stderr
	if err := out.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	to := filepath.Join(dir, "untarred")
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	untar := exec.CommandContext(t.Context(), "tar", "-x", "-C", to)
	untar.Stdin = bytes.NewReader(archive.Bytes())
	if said, err := untar.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if said, err := exec.CommandContext(t.Context(), "diff", "-r", "--no-dereference", filepath.Join(dir, "tree"), filepath.Join(to, "tree")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	inside(t, box, "mkdir /tmp/in")
	in := exec.CommandContext(t.Context(), dockerboxBinary(t), "cp", "-", box+":/tmp/in")
	in.Stdin = &archive
	if said, err := in.CombinedOutput(); err != nil || string(said) != "dockerbox: copied 4 files, 7B\n" {
		t.Errorf("%v, %s", err, said)
	}
	if got := inside(t, box, "diff -r --no-dereference /tmp/tree /tmp/in/tree && echo same"); got != "same" {
		t.Errorf("%q", got)
	}
}

// Whatever ends a copy, there is no half file: on neither side, whether dockerbox is asked to end, is killed, or the agent is.
func TestACopyThatIsEndedLeavesNoHalfFile(t *testing.T) {
	box, dir := freshName("cp"), t.TempDir()
	t.Cleanup(func() { removeSandboxes(t, box) })
	if got := cli(t, "up", box); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	inside(t, box, "mkdir /tmp/to && echo old >/tmp/to/large && head -c 268435456 /dev/zero >/tmp/source")
	to := filepath.Join(dir, "to")
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	here := func() string {
		list, err := exec.CommandContext(t.Context(), "ls", "-A", to).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(list))
	}
	there := func() string { return inside(t, box, "ls -A /tmp/to; cat /tmp/to/large") }
	for name, end := range map[string]func(*exec.Cmd){
		"Ctrl-C":       func(c *exec.Cmd) { signalTo(t, c, os.Interrupt) },
		"TERM":         func(c *exec.Cmd) { signalTo(t, c, syscall.SIGTERM) },
		"killed":       func(c *exec.Cmd) { signalTo(t, c, os.Kill) },
		"agent killed": func(*exec.Cmd) { killAgents(t, box) },
	} {
		t.Run(name+", in", func(t *testing.T) {
			c, input := startArchive(t, box+":/tmp/to")
			waitFor(t, func() bool { return strings.Contains(there(), ".dockerbox-") })
			end(c)
			if err := c.Wait(); err == nil {
				t.Error("the copy succeeded")
			}
			if err := input.Close(); err != nil {
				t.Error(err)
			}
			if name == "agent killed" { // nobody is there to remove what is not whole, but it has another name
				inside(t, box, "rm -f /tmp/to/.dockerbox-*")
			}
			waitFor(t, func() bool { return there() == "large\nold" })
		})
		t.Run(name+", out", func(t *testing.T) {
			c := startCopy(t, box+":/tmp/source", filepath.Join(to, "x"))
			waitFor(t, func() bool { return here() != "" })
			end(c)
			if err := c.Wait(); err == nil {
				t.Error("the copy succeeded")
			}
			left := here()
			if name == "killed" { // nobody is there to remove what is not whole, but it is not called x
				if !strings.HasPrefix(left, ".dockerbox-") || strings.Contains(left, "\n") {
					t.Errorf("there is %q", left)
				}
				if err := os.Remove(filepath.Join(to, left)); err != nil {
					t.Error(err)
				}
			} else if left != "" {
				t.Errorf("there is %q", left)
			}
		})
	}
}

func startCopy(t *testing.T, from, to string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), dockerboxBinary(t), "cp", from, to)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// startArchive begins to copy an archive in that stops in the middle of its one file.
func startArchive(t *testing.T, to string) (*exec.Cmd, io.Closer) {
	t.Helper()
	const size = 10 << 20
	var begin bytes.Buffer
	w := tar.NewWriter(&begin)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "large", Size: size, Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, size/2)); err != nil {
		t.Fatal(err)
	}
	r, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), dockerboxBinary(t), "cp", "-", to)
	c.Stdin = r
	if err := errors.Join(c.Start(), r.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := input.Write(begin.Bytes()); err != nil {
		t.Fatal(err)
	}
	return c, input
}

func signalTo(t *testing.T, c *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// killAgents kills the programs that copy, and the resident agent with them.
func killAgents(t *testing.T, box string) {
	t.Helper()
	// The client that asks is cut off by what it does.
	cli(t, "exec", "-u", "0", box, "bash", "-c", "pkill -9 -f '^/.dockerbox/agent (un)?pack'; pkill -9 -f '^/.dockerbox/agent'; true")
}

func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !what() {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to that")
		}
	}
}

// On a terminal a copy shows how far it is, and an archive is refused.
func TestACopyOnATerminal(t *testing.T) {
	box, dir := freshName("cp"), t.TempDir()
	t.Cleanup(func() { removeSandboxes(t, box) })
	if got := cli(t, "up", box); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	for _, c := range []struct {
		words  []string
		status int
		shows  []string
	}{
		{[]string{box + ":/etc/hosts", filepath.Join(dir, "x")}, 0, []string{"copying: 1 file, ", "dockerbox: copied 1 file, "}},
		{[]string{box + ":/etc/skel", "-"}, 2, []string{"dockerbox: error: an archive is nothing for a terminal"}},
	} {
		command := exec.CommandContext(t.Context(), dockerboxBinary(t), append([]string{"cp"}, c.words...)...)
		terminal, err := pty.Start(command)
		if err != nil {
			t.Fatal(err)
		}
		shown, _ := io.ReadAll(terminal) // a terminal whose program ended is an error
		_ = command.Wait()               // its status is looked at below
		if command.ProcessState.ExitCode() != c.status {
			t.Errorf("%q: %v", c.words, command.ProcessState)
		}
		for _, part := range c.shows {
			if !strings.Contains(string(shown), part) {
				t.Errorf("%q: %q lacks %q", c.words, shown, part)
			}
		}
		if err := terminal.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Holes stay holes on the whole way, and large files have their bytes.
func TestCopiesOfLargeAndSparseFiles(t *testing.T) {
	box, dir := freshName("cp"), t.TempDir()
	t.Cleanup(func() { removeSandboxes(t, box) })
	if got := cli(t, "up", box); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	name := filepath.Join(dir, "sparse")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	const size = 100 << 30
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("in the middle"), size/2); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, words := range [][]string{{name, box + ":~/sparse"}, {box + ":~/sparse", name + "2"}} {
		if out, err := exec.CommandContext(ctx, dockerboxBinary(t), append([]string{"cp"}, words...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if got := inside(t, box, "stat -c %s ~/sparse; [ $(stat -c %b ~/sparse) -lt 100 ] && tail -c +53687091201 ~/sparse | head -c 13"); got != fmt.Sprintf("%d\nin the middle", size) {
		t.Errorf("inside there is %q", got)
	}
	info, err := os.Stat(name + "2")
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || info.Size() != size || st.Blocks > 100 {
		t.Errorf("it came back with %d bytes: %+v", info.Size(), st)
	}

	inside(t, box, "head -c 67108864 /dev/urandom >~/random")
	want, _, _ := strings.Cut(inside(t, box, "sha256sum ~/random"), " ")
	cp(t, box+":~/random", dir)
	data, err := os.ReadFile(filepath.Join(dir, "random"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != want {
		t.Errorf("%s came, %s was sent", got, want)
	}
}
