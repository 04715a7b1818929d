package main

import (
	"bytes"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/transfer"
)

// Which words of cp name a sandbox.
func TestSplit(t *testing.T) {
	for word, want := range map[string][2]string{
		"box:/etc/hosts": {"box", "/etc/hosts"}, "box:~": {"box", "~"}, "box:~/x": {"box", "~/x"}, "box:x": {"box", "x"}, "box:": {"box", ""},
		"a:b:/x": {"a:b", "/x"}, "a:b:~": {"a:b", "~"}, "a:b:x": {"a", "b:x"}, "work/box:/x": {"work/box", "/x"}, "work/box:~/x": {"work/box", "~/x"},
		"box:/a:/b": {"box", "/a:/b"}, "box:~/a:/b": {"box", "~/a:/b"},
		"-": {"", "-"}, "": {"", ""}, "file": {"", "file"}, "/a:/b": {"", "/a:/b"}, "./a:b": {"", "./a:b"}, "../a:/b": {"", "../a:/b"},
		"dir/a:b": {"", "dir/a:b"}, ":/x": {"", ":/x"},
	} {
		if name, path := split(word); name != want[0] || path != want[1] {
			t.Errorf("%q: %q, %q", word, name, path)
		}
	}
}

func TestCopyProgress(t *testing.T) {
	var b bytes.Buffer
	line := &copyProgress{w: &b, redraw: true}
	line.report(transfer.Totals{Files: 1, Bytes: 2000})
	line.report(transfer.Totals{Files: 2, Bytes: 3_000_000})
	line.warn("a \x1b[2J name is a socket, left out")
	line.done()
	want := "\r\x1b[Kcopying: 1 file, 2kB\r\x1b[Kcopying: 2 files, 3MB\r\x1b[Kdockerbox: warning: a  [2J name is a socket, left out\n"
	if got := b.String(); got != want {
		t.Errorf("%q", got)
	}
	b.Reset()
	quiet := newCopyProgress(&b)
	quiet.report(transfer.Totals{Files: 1})
	quiet.done()
	if b.Len() > 0 {
		t.Errorf("away from a terminal it says %q", b.String())
	}
}
