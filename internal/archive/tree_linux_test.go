package archive

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// long is the longest name a file can have.
var long = strings.Repeat("n", 255)

// deep is a path that no system call takes at once.
const levels = 60

// oddTree makes a tree of everything that a copy has to keep, and returns what a copy has to say about it.
func oddTree(t *testing.T, dir string) {
	t.Helper()
	at := time.Date(2001, 2, 3, 4, 5, 6, 123456789, time.UTC)
	file := func(name, data string, mode fs.FileMode) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
		must(t, os.Chmod(filepath.Join(dir, name), mode))
		must(t, os.Chtimes(filepath.Join(dir, name), at, at))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "sub/empty"), 0o755))
	file("plain", "some\x00bytes\xff\n", 0o640)
	file("empty", "", 0o400)
	file("program", "#!/bin/true\n", 0o4755)
	file("big", strings.Repeat("0123456789abcdef", 40_000), 0o644)
	for _, odd := range []string{"a\nline", "not utf-8 \xff\xfe", "-rf", " ", long, "\\", "*", "ü", "a:b", "tab\t"} {
		file(odd, odd, 0o644)
	}
	for link, to := range map[string]string{"link": "plain", "dangling": "nothing/at/all", "absolute": "/etc/passwd", "up": "../../..", "sub/long": strings.Repeat("l/", 1500)} {
		must(t, os.Symlink(to, filepath.Join(dir, link)))
		must(t, unix.Lutimes(filepath.Join(dir, link), []unix.Timeval{{Sec: 1e9}, {Sec: 1e9}}))
	}
	must(t, os.Link(filepath.Join(dir, "plain"), filepath.Join(dir, "sub/second")))
	must(t, os.Link(filepath.Join(dir, "plain"), filepath.Join(dir, "sub/third")))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o620))
	sparse(t, filepath.Join(dir, "holes"), 100<<20, 0, 5<<20, 60<<20)
	sparse(t, filepath.Join(dir, "only-a-hole"), 1<<40)
	sparse(t, filepath.Join(dir, "hole-behind"), 10<<20, 0)
	if err := unix.Setxattr(filepath.Join(dir, "plain"), "user.colour", []byte("blue\x00\xff"), 0); err != nil {
		t.Fatalf("this file system has no extended attributes, which these tests need: %v", err)
	}
	must(t, unix.Setxattr(filepath.Join(dir, "sub"), "user.colour", []byte("red"), 0))
	deeper, err := os.OpenRoot(dir)
	must(t, err)
	for range levels {
		must(t, deeper.Mkdir(strings.Repeat("d", 200), 0o755))
		next, err := deeper.OpenRoot(strings.Repeat("d", 200))
		must(t, err)
		must(t, deeper.Close())
		deeper = next
	}
	must(t, deeper.WriteFile("bottom", []byte("deep"), 0o644))
	must(t, deeper.Close())
	must(t, os.Mkdir(filepath.Join(dir, "closed"), 0o755))
	file("closed/in", "x", 0o444)
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0o555))
	must(t, os.Chmod(filepath.Join(dir, "sub"), fs.ModeSticky|0o1777))
	must(t, os.Chtimes(filepath.Join(dir, "sub"), at, at))
}

// sparse makes a file of size bytes with a few bytes of data at some places.
func sparse(t *testing.T, name string, size int64, at ...int64) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	must(t, f.Truncate(size))
	for _, where := range at {
		_, err := f.WriteAt(bytes.Repeat([]byte("data"), 5000), where)
		must(t, err)
	}
	must(t, f.Close())
}

// describe is one line for everything in a tree, however deep.
func describe(t *testing.T, dir string) []string {
	t.Helper()
	top, err := os.OpenRoot(dir)
	must(t, err)
	all, err := newFolders(top)
	must(t, err)
	defer all.close()
	var lines []string
	first := map[fileID]string{}
	waiting := []string{root}
	for len(waiting) > 0 {
		name := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		f, err := all.get(name)
		must(t, err)
		names, err := f.names()
		must(t, err)
		slices.Sort(names)
		for _, base := range names {
			rel := strings.TrimPrefix(name+"/"+base, "./")
			info, err := f.Lstat(base)
			must(t, err)
			line := fmt.Sprintf("%.300q %s %s", rel, info.Mode(), info.ModTime().UTC().Format(time.RFC3339Nano))
			switch info.Mode().Type() {
			case fs.ModeDir:
				waiting = append(waiting, rel)
			case fs.ModeSymlink:
				to, err := f.Readlink(base)
				must(t, err)
				line += " " + to
			case 0:
				line += content(t, f, base, info)
				if id, several := identity(info); several {
					if first[id] == "" {
						first[id] = rel
					}
					line += " is " + first[id]
				}
			}
			lines = append(lines, line)
		}
		all.release(f)
	}
	slices.Sort(lines)
	return lines
}

func content(t *testing.T, f *folder, base string, info fs.FileInfo) string {
	t.Helper()
	file, err := f.Open(base)
	must(t, err)
	defer file.Close()
	line := fmt.Sprintf(" %d bytes", info.Size())
	const most = 1 << 30
	if info.Size() < most {
		sum := sha256.New()
		_, err = io.Copy(sum, file)
		must(t, err)
		line += fmt.Sprintf(" %x", sum.Sum(nil)[:6])
	}
	data, holes, err := pieces(file, info)
	must(t, err)
	if holes {
		line += fmt.Sprint(" holes ", data)
	}
	for key, value := range attributes(file) {
		line += fmt.Sprintf(" %s=%q", key, value)
	}
	return line
}
