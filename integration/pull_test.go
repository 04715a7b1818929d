//go:build integration

package integration

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

const mb = 1 << 20

// pullBox is the name of a sandbox that goes with the test.
func pullBox(t *testing.T) string {
	t.Helper()
	box := freshName("pull")
	t.Cleanup(func() { removeSandboxes(t, box) })
	return box
}

// pullUp makes a sandbox of an image, away from any terminal.
func pullUp(t *testing.T, image testImage) (box string, got said) {
	t.Helper()
	box = pullBox(t)
	return box, withEnv(t, nil, "up", "--image", image.ref, box)
}

// fetchedOnce wants each of the image's layers to have come once and whole, but for what was under way when a line was cut.
func (r *testRegistry) fetchedOnce(image testImage) {
	r.t.Helper()
	var all int64
	for _, layer := range image.layers {
		bytes, _ := r.sent(layer)
		all += bytes
	}
	const lost = 1 * mb
	if all < image.size || all > image.size+lost {
		r.t.Errorf("%d bytes of layers went out, want %d", all, image.size)
	}
}

// Images come from a real registry; each test has one. What is shown, what is fetched again and what is left are the subjects.
func TestPulls(t *testing.T) {
	r := newTestRegistry(t)
	r.base() // once
	for name, test := range map[string]func(*testing.T, *testRegistry){
		"in a file": pullInAFile, "on a terminal": pullOnATerminal, "on a narrow terminal": pullOnANarrowTerminal, "interrupted": pullInterrupted,
		"cut": pullCut, "two at once": pullsAtOnce, "failed and again": pullAgain,
	} {
		t.Run(name, func(t *testing.T) { test(t, r.on(t)) })
	}
}

// on is the registry for a subtest, with a line of its own.
func (r *testRegistry) on(t *testing.T) *testRegistry {
	t.Helper()
	fresh := newTestRegistry(t)
	fresh.back = r.back
	return fresh
}

// figure is a percentage in a line of progress.
var figure = regexp.MustCompile(`^dockerbox: (pulling|unpacking) \S+: (\d+) % \(\d+ of (?:about )?\d+ MB\)$`)

func pullInAFile(t *testing.T, r *testRegistry) {
	image := r.image(5, 8*mb)
	r.slow(4 * mb) // of three connections at a time: some 5 s
	box, got := pullUp(t, image)
	if got.status != 0 || strings.ContainsAny(got.stderr, "\x1b\r\b") {
		t.Fatalf("%+v", got)
	}
	lines := strings.Split(strings.TrimSuffix(got.stderr, "\n"), "\n")
	if first, last := lines[0], lines[len(lines)-1]; first != "dockerbox: pulling "+image.ref || !regexp.MustCompile(`^dockerbox: pulled \S+: 4\d\.\d+MB in \d+ s$`).MatchString(last) {
		t.Errorf("first %q, last %q", first, last)
	}
	var percents []int
	for _, line := range lines[1 : len(lines)-1] {
		match := figure.FindStringSubmatch(line)
		if match == nil {
			t.Errorf("a line %q", line)
			continue
		}
		if match[1] == "pulling" {
			n, err := strconv.Atoi(match[2])
			if err != nil {
				t.Error(err)
			}
			percents = append(percents, n)
		}
	}
	if len(percents) < 2 || len(percents) > 10 || !slices.IsSorted(percents) || len(slices.Compact(percents)) != len(percents) {
		t.Errorf("percentages %v in %q", percents, got.stderr)
	}
	r.fetchedOnce(image)
	if got := withEnv(t, nil, "run", box, "echo on"); got.stdout != "on\n" {
		t.Errorf("%+v", got)
	}
}

func pullOnATerminal(t *testing.T, r *testRegistry) {
	image := r.image(3, 2*mb)
	r.slow(mb)
	box := pullBox(t)
	shown := at(t, nil, "up", "--image", image.ref, box).end(0)
	for _, layer := range image.layers {
		id := strings.TrimPrefix(layer, "sha256:")[:12]
		if !strings.Contains(shown, id+": Downloading [") || !strings.Contains(shown, id+": Pull complete") {
			t.Errorf("nothing of layer %s in %q", id, shown)
		}
	}
	if !strings.HasPrefix(shown, "dockerbox: pulling "+image.ref+"\r\n") || !strings.Contains(shown, "name   "+box) {
		t.Errorf("%q", shown)
	}
}

func pullOnANarrowTerminal(t *testing.T, r *testRegistry) {
	image := r.image(1, 2*mb)
	r.slow(mb)
	box := pullBox(t)
	o := narrow(t, "up", "--image", image.ref, box)
	shown, _, _ := strings.Cut(o.end(0), "name   ")
	for _, line := range strings.Split(shown, "\r\x1b[K") {
		if len([]rune(line)) >= 40 || strings.Contains(line, "\n") {
			t.Errorf("a line of 40 columns has %q", line)
		}
	}
	if !regexp.MustCompile(`pulling [1-9]\d* % \(\d\.\d of 2\.1 MB\)`).MatchString(shown) {
		t.Errorf("%q", shown)
	}
}

// narrow starts dockerbox at a terminal of 40 columns.
func narrow(t *testing.T, args ...string) *outer {
	t.Helper()
	o := atWith(t, func(c *exec.Cmd) {
		device, ok := c.Stdin.(*os.File)
		if !ok {
			t.Fatal("standard input is no terminal")
		}
		if err := pty.Setsize(device, &pty.Winsize{Rows: 24, Cols: 40}); err != nil {
			t.Fatal(err)
		}
	}, nil, args...)
	o.before = o.stty() // the size is part of it
	return o
}

// Ctrl-C ends the pull in the daemon, too, and nothing is half there.
func pullInterrupted(t *testing.T, r *testRegistry) {
	image := r.image(3, 4*mb)
	r.slow(mb / 4)
	box := pullBox(t)
	o := at(t, nil, "up", "--image", image.ref, box)
	o.await("Downloading")
	o.signal(syscall.SIGINT)
	if shown := o.end(130); !strings.HasSuffix(shown, "dockerbox: interrupted\r\n") {
		t.Errorf("%q", shown)
	}
	r.quiet()
	if onDaemon(image.ref) {
		t.Error("the image is there")
	}
	if got := withEnv(t, nil, "inspect", box); got.status == 0 {
		t.Error("the sandbox is there")
	}
}

// A line that is cut is made again by the daemon, which goes on where it was: nothing comes twice.
func pullCut(t *testing.T, r *testRegistry) {
	image := r.image(2, 4*mb)
	r.cuts[image.layers[1]] = []int64{3 * mb}
	_, got := pullUp(t, image)
	if got.status != 0 || !regexp.MustCompile(`\ndockerbox: pulling \S+: the connection to its registry was cut at \d+ % \(.*\) and is made again\n`).MatchString(got.stderr) {
		t.Fatalf("%+v", got)
	}
	if _, ranges := r.sent(image.layers[1]); len(ranges) != 2 || !strings.HasPrefix(ranges[1], "bytes=") || ranges[1] == "bytes=0-" {
		t.Errorf("it was asked for with %q", ranges)
	}
	r.fetchedOnce(image)
}

// What one pull fetches, another of the same image at the same time does not.
func pullsAtOnce(t *testing.T, r *testRegistry) {
	image := r.image(2, 4*mb)
	r.slow(2 * mb)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, got := pullUp(t, image); got.status != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
	all.Wait()
	r.fetchedOnce(image)
}

// After a pull that failed the next one works.
func pullAgain(t *testing.T, r *testRegistry) {
	image := r.image(3, mb)
	r.spoil[image.layers[2]] = 1
	box, got := pullUp(t, image)
	want := "dockerbox: error: the image " + image.ref + " is not on this daemon and cannot be pulled: its registry sent something else than was asked for\ndockerbox: hint: try again; "
	if got.status != 125 || !strings.Contains(got.stderr, want) || onDaemon(image.ref) {
		t.Fatalf("%+v", got)
	}
	if got := withEnv(t, nil, "up", "--image", image.ref, box); got.status != 0 {
		t.Fatalf("%+v", got)
	}
}
