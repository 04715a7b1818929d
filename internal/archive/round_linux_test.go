package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// packed packs a source and fails the test on any complaint but the expected.
func packed(t *testing.T, source string, o PackOptions, complaints ...string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	var said []string
	o.Warn = func(text string) { said = append(said, text) }
	if _, err := Pack(&b, source, o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(complaints, said); diff != "" {
		t.Fatal(diff)
	}
	return &b
}

func TestRoundTripKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/from", 0o750))
	oddTree(t, dir+"/from")
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", dir+"/from/socket")
	must(t, err)
	defer func() { must(t, socket.Close()) }()
	want := describe(t, dir+"/from")

	b := packed(t, dir+"/from", PackOptions{Tree: true}, dir+"/from/socket is a socket, left out")
	if b.Len() > 4<<20 {
		t.Errorf("the stream has %d bytes: holes were filled", b.Len())
	}
	totals, err := Unpack(t.Context(), b, dir+"/to", UnpackOptions{Name: "from", Special: true, Warn: func(text string) { t.Error(text) }})
	must(t, err)
	want = without(want, "socket")
	if diff := cmp.Diff(want, describe(t, dir+"/to")); diff != "" {
		t.Error(diff)
	}
	if files := len(want) - directories(want); int64(files) != totals.Files {
		t.Errorf("%d files were counted, there are %d", totals.Files, files)
	}
	info, err := os.Stat(dir + "/to")
	must(t, err)
	if info.Mode().Perm() != 0o750 {
		t.Errorf("the directory itself has mode %v", info.Mode())
	}
}

func without(lines []string, name string) (kept []string) {
	for _, line := range lines {
		if !strings.HasPrefix(line, `"`+name+`"`) {
			kept = append(kept, line)
		}
	}
	return kept
}

func directories(lines []string) (n int) {
	for _, line := range lines {
		if strings.Contains(line, `" d`) {
			n++
		}
	}
	return n
}

// A file from inside must not become a program that gives whoever runs it the rights of whoever copied it.
func TestSetuidStaysBehindUnlessAsked(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/program", []byte("x"), 0o600))
	must(t, os.Chmod(dir+"/program", fs.ModeSetuid|fs.ModeSetgid|0o755))
	for want, special := range map[fs.FileMode]bool{0o755: false, fs.ModeSetuid | fs.ModeSetgid | 0o755: true} {
		_, err := Unpack(t.Context(), packed(t, dir+"/program", PackOptions{}), dir+"/copy", UnpackOptions{Special: special})
		must(t, err)
		info, err := os.Stat(dir + "/copy")
		must(t, err)
		if info.Mode() != want {
			t.Errorf("special %v: mode %v", special, info.Mode())
		}
	}
}

// gnuTar runs GNU tar.
func gnuTar(t *testing.T, dir string, stdin *bytes.Buffer, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "tar", args...)
	command.Dir = dir
	if stdin != nil {
		command.Stdin = stdin
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("tar %q: %v\n%s", args, err, stderr.Bytes())
	}
	return out
}

func TestPlainArchiveIsForOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/from", 0o755))
	oddTree(t, dir+"/from")
	must(t, os.Remove(dir+"/from/only-a-hole")) // a terabyte for other programs
	must(t, os.RemoveAll(dir+"/from/"+strings.Repeat("d", 200)))
	b := packed(t, dir+"/from", PackOptions{Tree: true, Plain: true, Name: "top"})
	must(t, os.Mkdir(dir+"/to", 0o755))
	gnuTar(t, dir+"/to", b, "-xp", "--xattrs", "--sparse", "-f", "-")
	want, got := describe(t, dir+"/from"), describe(t, dir+"/to/top")
	for i := range want { // GNU tar finds other holes
		want[i], _, _ = strings.Cut(want[i], " holes")
	}
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], " holes")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestArchivesOfOtherPrograms(t *testing.T) {
	for _, format := range []string{"gnu", "posix", "ustar"} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.MkdirAll(dir+"/from/a/b", 0o755))
			must(t, os.WriteFile(dir+"/from/a/b/file", []byte("x"), 0o640))
			must(t, os.Link(dir+"/from/a/b/file", dir+"/from/a/second"))
			must(t, os.Symlink("b/file", dir+"/from/a/link"))
			flags := []string{"-c", "--format=" + format, "-f", "-", "."}
			if format != "ustar" {
				flags = append(flags, "--sparse")
				must(t, os.WriteFile(dir+"/from/"+long, []byte("long"), 0o600))
				sparse(t, dir+"/from/holes", 50<<20, 20<<20)
			}
			archive := gnuTar(t, dir+"/from", nil, flags...)
			must(t, os.Mkdir(dir+"/to", 0o700))
			_, err := Unpack(t.Context(), bytes.NewReader(archive), dir+"/to", UnpackOptions{Plain: true})
			must(t, err)
			want, got := describe(t, dir+"/from"), describe(t, dir+"/to")
			if format == "posix" {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			for i, line := range want { // these have whole seconds
				if words, others := strings.Fields(line), strings.Fields(got[i]); words[0] != others[0] || words[1] != others[1] || strings.Join(words[3:], " ") != strings.Join(others[3:], " ") {
					t.Errorf("got  %s\nwant %s", got[i], line)
				}
			}
		})
	}
}

func TestPlainNeedsADirectory(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/file", nil, 0o600))
	for name, want := range map[string]string{"file": "is not a directory, and an archive needs one", "none": "no such file or directory"} {
		_, err := Unpack(t.Context(), bytes.NewReader(nil), filepath.Join(dir, name), UnpackOptions{Plain: true})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var b bytes.Buffer
	must(t, tar.NewWriter(&b).Close())
	if totals, err := Unpack(t.Context(), &b, dir, UnpackOptions{Plain: true}); err != nil || totals != (Totals{}) {
		t.Errorf("an archive of nothing: %v, %v", totals, err)
	}
}

func TestWhatCannotBeReadIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/from", 0o755))
	must(t, os.WriteFile(dir+"/from/good", []byte("good"), 0o644))
	// Root reads everything but this: its content is of a process that is not there for memory.
	if err := os.Symlink("x", dir+"/from/link"); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	files := []File{{dir + "/from/good", "a/good"}, {dir + "/from/none", "a/none"}, {dir + "/from/link", "a/link"}, {dir + "/from", "a/dir"}, {dir + "/from/good", "b"}}
	totals, err := PackFiles(&b, files, 4)
	var fault *Fault
	if !asFault(err, &fault) || fault.Kind != Partial || fault.Error() != dir+"/from/none: no such file or directory, left out; so are 2 others" {
		t.Errorf("got %v", err)
	}
	if totals != (Totals{2, 8}) {
		t.Errorf("totals %v", totals)
	}
	if _, err := PackFiles(&bytes.Buffer{}, files[:1], 3); !asFault(err, &fault) || fault.Error() != dir+"/from/good: has 4 bytes, and the most that is delivered is 3, left out" {
		t.Errorf("got %v", err)
	}
	if _, err := PackFiles(&bytes.Buffer{}, []File{{dir + "/from/good", "../good"}}, 0); !asFault(err, &fault) || fault.Kind != Broken {
		t.Errorf("got %v", err)
	}
	must(t, os.Mkdir(dir+"/to", 0o755))
	if _, err := Unpack(t.Context(), &b, dir+"/to", UnpackOptions{Plain: true}); err != nil {
		t.Fatal(err)
	}
	if got := describe(t, dir+"/to"); len(got) != 3 {
		t.Errorf("there are %q", got)
	}
}

// A tree may be deeper than any name in an archive can say.
func TestPathsThatAreTooLongAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/kept", nil, 0o600))
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	must(t, err)
	for range maxName/len(long) + 1 {
		must(t, unix.Mkdirat(fd, long, 0o700))
		next, err := unix.Openat(fd, long, unix.O_PATH|unix.O_CLOEXEC, 0)
		must(t, err)
		must(t, unix.Close(fd))
		fd = next
	}
	must(t, unix.Close(fd))
	var warned []string
	totals, err := Pack(io.Discard, dir, PackOptions{Tree: true, Warn: func(text string) { warned = append(warned, text) }})
	var f *Fault
	if !errors.As(err, &f) || f.Kind != Partial || totals.Files != 1 || len(warned) != 1 || !strings.Contains(warned[0], "the path is too long, left out") {
		t.Errorf("%v, %v, %q", totals, err, warned)
	}
}
