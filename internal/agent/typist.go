//go:build linux

package agent

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel echoes what is typed as fast as it is written, and drops the echo of what finds no room on its way out: 8 KiB and a page. So
// nobody types faster than the terminal shows.
const (
	// typeAhead is how many bytes may be typed whose echo was not seen, in pieces of typePiece. A program that repeats what it reads, as cat
	// does, is taken for half of the echo.
	typeAhead = 2 << 10
	typePiece = 1 << 10
	// typeLimit is how long nothing may be shown before the next piece is typed all the same: not everything has an echo.
	typeLimit = 200 * time.Millisecond
)

// typist types on a terminal.
type typist struct {
	f   *os.File
	out *output
	// seen is how much the terminal will have shown when all that was typed has been echoed.
	seen int64
}

// Write types p. Without echo, as in raw mode, it is a plain write.
func (t *typist) Write(p []byte) (int, error) {
	typed := 0
	for typed < len(p) {
		piece := p[typed:]
		if echoes(t.f) {
			piece = piece[:min(len(piece), typePiece)]
			t.pace(int64(len(piece)))
		}
		n, err := t.f.Write(piece)
		typed += n
		if err != nil {
			return typed, err
		}
	}
	return typed, nil
}

// pace waits until the echo of n more bytes has room.
func (t *typist) pace(n int64) {
	shown := t.out.awaitShown(t.seen+n-typeAhead, typeLimit)
	if shown < t.seen+n-typeAhead || shown > t.seen {
		t.seen = shown // the echo does not come, or it was something else that was shown
	}
	t.seen += n
}

// Close ends a Write under way.
func (t *typist) Close() error { return t.f.Close() }

// echoes reports whether the kernel shows what is typed. A master answers for its other side.
func echoes(f *os.File) (echo bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { // fails for a closed file, which takes nothing either
		modes, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		echo = err == nil && modes.Lflag&unix.ECHO != 0
	})
	return echo
}

// awaitShown waits until least bytes were read, at most for limit, and returns how many were. It ends early when nothing more is read.
func (o *output) awaitShown(least int64, limit time.Duration) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waitUntil(func() bool { return o.shown >= least }, limit)
	return o.shown
}
