package transfer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestFilesGoBothWays(t *testing.T) {
	b, here := newBox(t), t.TempDir()
	must(t, os.WriteFile(here+"/a", []byte("hello"), 0o640))
	var seen Totals
	o := Options{User: "pn", Progress: func(n Totals) { seen = n }, Warn: func(text string) { t.Error(text) }}
	totals, err := In(t.Context(), b, here+"/a", "~", o)
	if err != nil || totals != (Totals{Files: 1, Bytes: 5}) || seen != totals || read(t, b.home+"/a") != "hello" {
		t.Fatalf("in: %v, %v, %v", totals, seen, err)
	}
	if user := b.asks[0].User; user != "pn" {
		t.Errorf("as %q", user)
	}
	totals, err = Out(t.Context(), b, "~/a", here+"/b", o)
	if err != nil || totals != (Totals{Files: 1, Bytes: 5}) || read(t, here+"/b") != "hello" {
		t.Fatalf("out: %v, %v", totals, err)
	}
	info, err := os.Stat(here + "/b")
	must(t, err)
	if info.Mode() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	totals, err = In(t.Context(), b, here+"/a", b.home+"/new/deep/x", Options{Parents: true})
	if err != nil || totals.Files != 1 || read(t, b.home+"/new/deep/x") != "hello" {
		t.Errorf("with parents: %v, %v", totals, err)
	}
}

func TestTreesAndArchives(t *testing.T) {
	b, here := newBox(t), t.TempDir()
	must(t, os.MkdirAll(here+"/tree/sub", 0o755))
	must(t, os.WriteFile(here+"/tree/sub/x", []byte("x"), 0o600))
	if _, err := In(t.Context(), b, here+"/tree", "~/t", Options{}); err == nil {
		t.Error("a tree went without being asked for")
	} else {
		refused(t, err, here+"/tree on this machine: is a directory")
	}
	if totals, err := In(t.Context(), b, here+"/tree", "~/t", Options{Tree: true}); err != nil || totals != (Totals{Files: 1, Bytes: 1}) {
		t.Fatalf("%v, %v", totals, err)
	}
	_, err := Out(t.Context(), b, "~/t", here+"/t", Options{})
	refused(t, err, b.home+"/t in the sandbox: is a directory")
	if totals, err := Out(t.Context(), b, "~/t", here+"/t", Options{Tree: true}); err != nil || totals != (Totals{Files: 1, Bytes: 1}) || read(t, here+"/t/sub/x") != "x" {
		t.Fatalf("%v, %v", totals, err)
	}
	var archive bytes.Buffer
	totals, err := OutArchive(t.Context(), b, "~/t", &archive, Options{})
	if err != nil || totals != (Totals{Files: 1, Bytes: 1}) {
		t.Fatalf("%v, %v", totals, err)
	}
	var names []string
	for r := tar.NewReader(bytes.NewReader(archive.Bytes())); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		names = append(names, h.Name)
	}
	if strings.Join(names, " ") != "t/ t/sub/ t/sub/x" {
		t.Errorf("the archive has %q", names)
	}
	must(t, os.Mkdir(b.home+"/other", 0o755))
	if totals, err := InArchive(t.Context(), b, &archive, "~/other", Options{}); err != nil || totals != (Totals{Files: 1, Bytes: 1}) || read(t, b.home+"/other/t/sub/x") != "x" {
		t.Errorf("%v, %v", totals, err)
	}
	_, err = OutArchive(t.Context(), b, "~/t", failing{}, Options{})
	refused(t, err, "the archive could not be written: full")
	_, err = InArchive(t.Context(), b, io.MultiReader(bytes.NewReader(make([]byte, 10)), failing{}), "~/other", Options{})
	refused(t, err, "full")
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }
func (failing) Read([]byte) (int, error)  { return 0, errors.New("full") }

func TestDeliver(t *testing.T) {
	b, here := newBox(t), t.TempDir()
	must(t, os.WriteFile(here+"/a", []byte("hello"), 0o640))
	must(t, os.WriteFile(here+"/large", []byte("hello world"), 0o640))
	files := []File{{Source: here + "/a", Name: "cache/images/a"}, {Source: here + "/large", Name: "cache/large"}}
	totals, err := Deliver(t.Context(), b, files, "~/.hermes", 0, Options{})
	if err != nil || totals != (Totals{Files: 2, Bytes: 16}) || read(t, b.home+"/.hermes/cache/images/a") != "hello" {
		t.Fatalf("%v, %v", totals, err)
	}
	must(t, os.WriteFile(here+"/a", []byte("newer"), 0o640))
	totals, err = Deliver(t.Context(), b, files, "~/.hermes", 10, Options{})
	refused(t, err, here+"/large on this machine: has 11 bytes, and the most that is delivered is 10, left out")
	if totals != (Totals{Files: 1, Bytes: 5}) || read(t, b.home+"/.hermes/cache/images/a") != "newer" {
		t.Errorf("%v", totals)
	}
	if !IsPartial(err) {
		t.Errorf("%v is not partial", err)
	}
	n, err := Remove(t.Context(), b, "~/.hermes", []string{"cache/images/a", "cache/none", "cache/large"}, Options{})
	if err != nil || n != 2 || names(t, b.home+"/.hermes/cache") != "images" || names(t, b.home+"/.hermes/cache/images") != "" {
		t.Errorf("removed %d, %v", n, err)
	}
	if n, err := Remove(t.Context(), b, "~/none", []string{"a"}, Options{}); n != 0 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	must(t, os.WriteFile(b.home+"/kept", nil, 0o600))
	_, err = Remove(t.Context(), b, "~/.hermes", []string{"../kept"}, Options{})
	refused(t, err, "../kept in the sandbox: the archive has a name that leads out of the destination")
	if read(t, b.home+"/kept") != "" {
		t.Error("it is gone")
	}
}

func TestFailuresSayWhereAndWhat(t *testing.T) {
	b, here := newBox(t), t.TempDir()
	must(t, os.WriteFile(here+"/a", []byte("hello"), 0o640))
	for _, c := range []struct {
		name, reason string
		err          error
	}{
		{"no source", "/none/such in the sandbox: no such file or directory", second(Out(t.Context(), b, "none/such", here, Options{}))},
		{"no source here", here + "/none on this machine: no such file or directory", second(In(t.Context(), b, here+"/none", "~", Options{}))},
		{"no directory", "/none in the sandbox: no such file or directory", second(In(t.Context(), b, here+"/a", "/none/such", Options{}))},
		{"no directory here", here + "/none on this machine: no such file or directory", second(Out(t.Context(), b, here+"/a", here+"/none/x", Options{}))},
		{"a device", "/dev/null in the sandbox: is a device and cannot be copied", second(Out(t.Context(), b, "/dev/null", here+"/x", Options{}))},
		{"onto a device", "/dev/null in the sandbox: is neither a file nor a directory, and nothing can be copied onto it", second(In(t.Context(), b, here+"/a", "/dev/null", Options{}))},
		{"old agent", "the agent in the sandbox is older than this dockerbox and cannot copy files", second(Out(t.Context(), stranger{stderr: "dockerbox-agent runs inside a sandbox\n", status: 2}, "/a", here+"/x", Options{}))},
		{"no agent", "not found", second(Out(t.Context(), stranger{stderr: "not found\n", status: 127}, "/a", here+"/x", Options{}))},
		{"silent agent", "the agent in the sandbox ended with status 9", second(Out(t.Context(), stranger{status: 9}, "/a", here+"/x", Options{}))},
		{"lost", "gone", second(Out(t.Context(), stranger{err: &contract.BackendError{Reason: "gone", Hint: "h"}}, "/a", here+"/x", Options{}))},
		{"lost on the way in", "gone", second(In(t.Context(), stranger{err: &contract.BackendError{Reason: "gone", Hint: "h"}}, here+"/a", "/x", Options{}))},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.err, c.reason) })
	}
	if left := names(t, here); left != "a" {
		t.Errorf("there is %s", left)
	}
}

func second(_ Totals, err error) error { return err }

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// archiveOf is a stream with one large file that is cut after n bytes.
func archiveOf(name string, n int) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 10 << 20, Mode: 0o600}) // into memory
	_, _ = w.Write(make([]byte, n))                                                                // as above
	return b.Bytes()
}

func TestAStrangerGetsNothing(t *testing.T) {
	endless := func(begin []byte) func(context.Context, io.Writer) error {
		return func(_ context.Context, w io.Writer) error {
			for piece := begin; ; piece = bytes.Repeat([]byte{0}, 64<<10) {
				if _, err := w.Write(piece); err != nil {
					return err
				}
			}
		}
	}
	send := func(data []byte) func(context.Context, io.Writer) error {
		return func(_ context.Context, w io.Writer) error {
			_, err := w.Write(data)
			return err
		}
	}
	var whole bytes.Buffer
	w := tar.NewWriter(&whole)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: ".", Mode: 0o600}))
	must(t, w.Close())
	var other bytes.Buffer
	must(t, tar.NewWriter(&other).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "other", Mode: 0o600}))
	for _, c := range []struct {
		name, reason string
		box          stranger
	}{
		{"endless zeros", "*", stranger{stdout: endless(nil)}},
		{"endless behind the end", "there is more behind the archive's end", stranger{stdout: endless(whole.Bytes())}},
		{"cut", "the archive ends in the middle of a file", stranger{stdout: send(archiveOf(".", 5<<20))}},
		{"cut and a failure", "/a in the sandbox: input/output error", stranger{stdout: send(archiveOf(".", 5<<20)), stderr: "failure: /a\tinput/output error\n", status: 1}},
		{"noise", "the archive cannot be read: *", stranger{stdout: send(bytes.Repeat([]byte("noise"), 1000))}},
		{"nothing", "there is nothing to unpack: the other side sent no file", stranger{}},
		{"another name", "other on this machine: the archive does not begin with what was asked for", stranger{stdout: send(other.Bytes())}},
		{"terminal commands", "[2J evil", stranger{stderr: "failure: \x1b[2J\revil\n", status: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			here := t.TempDir()
			_, err := Out(t.Context(), c.box, "/a", here+"/x", Options{})
			refused(t, err, c.reason)
			if left := names(t, here); left != "" && c.name != "endless behind the end" { // of that one the file is whole
				t.Errorf("there is %s", left)
			}
		})
	}
}

func TestWarningsAreBounded(t *testing.T) {
	count, longest := 0, 0
	s := said{warn: func(text string) { count++; longest = max(longest, len(text)) }}
	for range 3000 {
		_, err := io.WriteString(&s, "warning: "+strings.Repeat("x", 100)+"\n")
		must(t, err)
	}
	_, err := io.WriteString(&s, "warning: "+strings.Repeat("x", 1<<20)+"\ntotals: 3 4\ntotals: x y\nfailure: why")
	must(t, err)
	s.end()
	if count != maxLines || longest != 100 || s.failure != "why" || cap(s.line) > 2*maxLine {
		t.Errorf("%d warnings, the longest of %d bytes, %q", count, longest, s.failure)
	}
}

// interruptible is a copy that is ended as soon as some of it is there.
func interruptible(t *testing.T) (context.Context, Options) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, Options{Progress: func(n Totals) {
		if n.Bytes > 8<<20 {
			cancel(contract.ErrInterrupted)
		}
	}}
}

// Whoever ends a copy finds nothing half on either side.
func TestAnInterruptedCopyLeavesNoHalfFile(t *testing.T) {
	b, here := newBox(t), t.TempDir()
	must(t, os.WriteFile(b.home+"/old", []byte("old"), 0o600))
	must(t, os.WriteFile(here+"/old", []byte("old"), 0o600))
	large, err := os.Create(here + "/large")
	must(t, err)
	for range 200 {
		_, err := large.Write(bytes.Repeat([]byte("x"), 1<<20))
		must(t, err)
	}
	must(t, large.Close())

	ctx, o := interruptible(t)
	_, err = In(ctx, b, here+"/large", "~/old", o)
	refused(t, err, "the copy was interrupted")
	if !errors.Is(err, contract.ErrInterrupted) {
		t.Errorf("its cause is %v", errors.Unwrap(err))
	}
	if left := names(t, b.home); left != "old" || read(t, b.home+"/old") != "old" {
		t.Errorf("inside there is %s", left)
	}

	ctx, o = interruptible(t)
	_, err = Out(ctx, b, here+"/large", here+"/old", o)
	refused(t, err, "the copy was interrupted")
	if left := names(t, here); left != "large old" || read(t, here+"/old") != "old" {
		t.Errorf("here there is %s", left)
	}
}

// Nobody waits for whoever sends an archive and stops in the middle of it.
func TestAnInterruptedCopyOfAnArchiveThatStops(t *testing.T) {
	b := newBox(t)
	must(t, os.WriteFile(b.home+"/large", []byte("old"), 0o600))
	r, w := io.Pipe()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		_, _ = w.Write(archiveOf("large", 5<<20)) // the copy says what became of it
		cancel(contract.ErrInterrupted)
	}()
	_, err := InArchive(ctx, b, r, "~", Options{})
	refused(t, err, "the copy was interrupted")
	must(t, w.Close())
	if left := names(t, b.home); left != "large" || read(t, b.home+"/large") != "old" {
		t.Errorf("inside there is %s", left)
	}
}
