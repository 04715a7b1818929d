package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func asFault(err error, f **Fault) bool { return errors.As(err, f) }

// made is an archive of the headers, each regular one with its name as content.
func made(t testing.TB, headers ...*tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if h.Typeflag == tar.TypeReg && h.Size == 0 {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func dirOf(name string) *tar.Header  { return &tar.Header{Typeflag: tar.TypeDir, Name: name + "/"} }
func fileOf(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeReg, Name: name} }
func linkOf(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}
func secondOf(name, to string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

// hostile are archives that try to write where they must not. What each leaves outside the destination is nothing.
func hostile(t testing.TB, outside string) map[string]*bytes.Buffer {
	t.Helper()
	huge := strings.Repeat("x/", 300_000)
	all := map[string]*bytes.Buffer{
		"absolute name":            made(t, dirOf("."), fileOf(outside+"/bad")),
		"name with dots":           made(t, dirOf("."), fileOf("../bad")),
		"dots further in":          made(t, dirOf("."), dirOf("a"), fileOf("a/../../bad")),
		"nothing but dots":         made(t, dirOf("."), fileOf("..")),
		"directory with dots":      made(t, dirOf("."), dirOf("../bad")),
		"through an absolute link": made(t, dirOf("."), linkOf("l", outside), fileOf("l/bad")),
		"through a relative link":  made(t, dirOf("."), linkOf("l", ".."), fileOf("l/bad")),
		"directory through a link": made(t, dirOf("."), linkOf("l", outside), dirOf("l/bad")),
		"directory onto a link":    made(t, dirOf("."), linkOf("l", outside), dirOf("l"), fileOf("l/bad")),
		"directory becomes a link": made(t, dirOf("."), dirOf("d"), fileOf("d/a"), linkOf("d", outside), fileOf("d/bad")),
		"link in a link":           made(t, dirOf("."), linkOf("a", "b"), linkOf("b", outside), fileOf("a/bad")),
		"hard link out":            made(t, dirOf("."), secondOf("h", outside+"/secret"), fileOf("h")),
		"hard link up":             made(t, dirOf("."), secondOf("h", "../outside/secret"), fileOf("h")),
		"hard link through a link": made(t, dirOf("."), linkOf("l", outside), secondOf("h", "l/secret"), fileOf("h")),
		"hard link to a link out":  made(t, dirOf("."), linkOf("l", outside+"/secret"), secondOf("h", "l"), fileOf("h")),
		"file onto a link out":     made(t, dirOf("."), linkOf("l", outside+"/secret"), fileOf("l")),
		"a link for the root":      made(t, linkOf(".", outside), fileOf("bad")),
		"a file and more":          made(t, fileOf("."), fileOf("bad")),
		"the root twice":           made(t, dirOf("."), fileOf(".")),
		"no root":                  made(t, fileOf("bad")),
		"device":                   made(t, dirOf("."), &tar.Header{Typeflag: tar.TypeBlock, Name: "disk", Devmajor: 8}),
		"long name":                made(t, dirOf("."), &tar.Header{Typeflag: tar.TypeReg, Name: huge + "x", Format: tar.FormatPAX}),
		"empty":                    {},
		"not an archive":           bytes.NewBufferString(strings.Repeat("hello", 1000)),
	}
	endless := made(t, dirOf("."), fileOf("cut"))
	endless.Truncate(endless.Len() - 1024 - 512)
	all["cut in a file"] = endless
	holes := func(list string, size int64) *bytes.Buffer {
		return made(t, dirOf("."), &tar.Header{Typeflag: tar.TypeReg, Name: "hole", Size: size, Format: tar.FormatPAX, PAXRecords: map[string]string{holesRecord: list}})
	}
	all["holes before the file"] = holes("10,-4,4", 4)
	all["holes behind the file"] = holes("10,8,4", 4)
	all["holes that overlap"] = holes("10,0,3,2,1", 4)
	all["holes beyond all files"] = holes("9223372036854775807,9223372036854775800,4", 4)
	all["holes and other content"] = holes("10,0,2", 4)
	return all
}

func TestNothingIsWrittenOutside(t *testing.T) {
	for name := range hostile(t, "/nowhere") {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Mkdir(dir+"/outside", 0o755))
			must(t, os.WriteFile(dir+"/outside/secret", []byte("secret"), 0o600))
			must(t, os.Mkdir(dir+"/to", 0o755))
			before := without(describe(t, dir), "to")
			archive := hostile(t, dir+"/outside")[name]
			_, err := Unpack(t.Context(), archive, dir+"/to/x", UnpackOptions{Name: "x"})
			var fault *Fault
			if err != nil && (!asFault(err, &fault) || fault.Problem == "") {
				t.Errorf("got %v", err)
			}
			if name != "device" && name != "file onto a link out" && name != "hard link to a link out" && err == nil {
				t.Error("it was taken")
			}
			var after []string
			for _, line := range describe(t, dir) {
				if !strings.HasPrefix(line, `"to`) {
					after = append(after, line)
				}
				if strings.Contains(line, DraftPrefix) {
					t.Errorf("left behind: %s", line)
				}
			}
			if strings.Join(before, "\n") != strings.Join(after, "\n") {
				t.Errorf("outside there was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
		})
	}
}

func TestDevicesAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	var said []string
	archive := made(t, dirOf("."), &tar.Header{Typeflag: tar.TypeBlock, Name: "disk", Devmajor: 8}, fileOf("file"))
	totals, err := Unpack(t.Context(), archive, dir+"/x", UnpackOptions{Warn: func(text string) { said = append(said, text) }})
	must(t, err)
	if len(said) != 1 || said[0] != dir+"/x/disk is a device, left out" || totals.Files != 1 {
		t.Errorf("%q, %v", said, totals)
	}
}

// Of two files of one name the later wins, although several write at once.
func TestTheLaterOfTwoWins(t *testing.T) {
	var headers []*tar.Header
	headers = append(headers, dirOf("."))
	for range 200 {
		headers = append(headers, fileOf("a"), fileOf("./a"), fileOf("././a"))
	}
	dir := t.TempDir()
	_, err := Unpack(t.Context(), made(t, headers...), dir+"/x", UnpackOptions{})
	must(t, err)
	if got, err := os.ReadFile(dir + "/x/a"); err != nil || string(got) != "././a" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestADirectoryNeverTakesTheNameOfAFile(t *testing.T) {
	for name, archive := range map[string]*bytes.Buffer{
		"file, then directory": made(t, dirOf("."), fileOf("a"), dirOf("a")),
		"directory, then file": made(t, dirOf("."), dirOf("a"), fileOf("a")),
		"directory, then link": made(t, dirOf("."), dirOf("a"), linkOf("a", "b")),
	} {
		dir := t.TempDir()
		_, err := Unpack(t.Context(), archive, dir+"/x", UnpackOptions{})
		var fault *Fault
		if !asFault(err, &fault) || fault.Kind != Mismatch || fault.Path != dir+"/x/a" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A second name of a file leaves no draft: to rename one name of a file to another does nothing.
func TestASecondNameTwice(t *testing.T) {
	dir := t.TempDir()
	_, err := Unpack(t.Context(), made(t, dirOf("."), fileOf("a"), secondOf("b", "a"), secondOf("b", "a"), secondOf("a", "b")), dir+"/x", UnpackOptions{})
	must(t, err)
	if got := describe(t, dir+"/x"); len(got) != 2 {
		t.Errorf("there are %q", got)
	}
}

// stuck gives what it has and then waits until it is let go.
type stuck struct {
	io.Reader

	at, release chan struct{}
}

func (s *stuck) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		close(s.at)
		<-s.release
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestWhatIsHalfWrittenGoesAtOnce(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/large", []byte("old"), 0o600))
	archive := made(t, &tar.Header{Typeflag: tar.TypeReg, Name: ".", Size: 1})
	archive.Reset()
	w := tar.NewWriter(archive)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: ".", Size: 10 << 20, Mode: 0o600}))
	_, err := w.Write(make([]byte, 5<<20))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s := &stuck{archive, make(chan struct{}), make(chan struct{})}
	clean, done := make(chan struct{}), make(chan error)
	go func() {
		_, err := Unpack(ctx, s, dir+"/large", UnpackOptions{Ended: func() { close(clean) }})
		done <- err
	}()
	<-s.at
	if drafts, err := filepath.Glob(dir + "/" + DraftPrefix + "*"); len(drafts) != 1 || err != nil {
		t.Errorf("under way: %q, %v", drafts, err)
	}
	cancel()
	<-clean
	if got := describe(t, dir); len(got) != 1 || !strings.Contains(got[0], " 3 bytes") {
		t.Errorf("there is %q", got)
	}
	close(s.release)
	if err := <-done; err == nil {
		t.Error("a copy that was ended succeeded")
	}
}

func FuzzUnpack(f *testing.F) {
	for _, archive := range hostile(f, "/nowhere") {
		f.Add(archive.Bytes(), false)
		f.Add(archive.Bytes(), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, plain bool) {
		dir := t.TempDir()
		must(t, os.MkdirAll(dir+"/outside", 0o755))
		must(t, os.WriteFile(dir+"/outside/secret", []byte("secret"), 0o600))
		must(t, os.Mkdir(dir+"/to", 0o755))
		must(t, os.Symlink("../outside", dir+"/to/link"))
		var fault *Fault
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := Unpack(ctx, io.LimitReader(bytes.NewReader(data), 1<<20), dir+"/to", UnpackOptions{Plain: plain, Name: "x", Special: true}); err != nil && !asFault(err, &fault) {
			t.Errorf("got %v", err)
		}
		entries, err := os.ReadDir(dir)
		must(t, err)
		secret, err := os.ReadFile(dir + "/outside/secret")
		must(t, err)
		inside, err := os.ReadDir(dir + "/outside")
		must(t, err)
		if len(entries) != 2 || string(secret) != "secret" || len(inside) != 1 {
			t.Fatalf("outside: %v, %v, %q", entries, inside, secret)
		}
		_ = filepath.WalkDir(dir+"/to", func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasPrefix(d.Name(), DraftPrefix) {
				t.Errorf("left behind: %s", path)
			}
			if err == nil && d.IsDir() {
				return os.Chmod(path, 0o700) // so that the test can clean up
			}
			return err
		})
	})
}

func FuzzPieces(f *testing.F) {
	f.Add("10,0,2,4,2", int64(4))
	f.Add("", int64(0))
	f.Fuzz(func(t *testing.T, text string, content int64) {
		size, data, err := decodePieces(text, content)
		if err != nil {
			return
		}
		var end, sum int64
		for _, p := range data {
			if p.at < end || p.size < 0 || p.at+p.size > size {
				t.Fatalf("%q: %v of %d", text, data, size)
			}
			end, sum = p.at+p.size, sum+p.size
		}
		if sum != content {
			t.Fatalf("%q: %d of %d", text, sum, content)
		}
		if size2, again, err := decodePieces(encodePieces(size, data), content); err != nil || size2 != size || len(again) != len(data) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
