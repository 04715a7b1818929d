package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// escape is what steers a terminal.
var escape = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]|\r")

// replay draws on a screen as a terminal does, with the few sequences that progress needs, and returns its lines.
func replay(t *testing.T, drawn string) []string {
	t.Helper()
	lines, row, column := []string{""}, 0, 0
	for drawn != "" {
		at := escape.FindStringIndex(drawn)
		if at == nil || at[0] > 0 {
			text := drawn
			if at != nil {
				text = drawn[:at[0]]
			}
			for i, part := range strings.Split(text, "\n") {
				if i > 0 {
					row, column = row+1, 0
				}
				for row >= len(lines) {
					lines = append(lines, "")
				}
				had, runes := []rune(lines[row]), []rune(part)
				for len(had) < column+len(runes) {
					had = append(had, ' ')
				}
				copy(had[column:], runes)
				lines[row], column = string(had), column+len(runes)
			}
			drawn = drawn[len(text):]
			continue
		}
		switch code := drawn[at[0]:at[1]]; {
		case code == "\r":
			column = 0
		case code == "\x1b[2K":
			lines[row] = ""
		case code == "\x1b[K":
			lines[row] = string([]rune(lines[row])[:min(column, len([]rune(lines[row])))])
		case strings.HasSuffix(code, "A"):
			row = max(0, row-number(code))
		case strings.HasSuffix(code, "B"):
			row += number(code)
		default:
			t.Fatalf("a terminal is told %q", code)
		}
		drawn = drawn[at[1]:]
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func number(code string) int {
	n := 0
	for _, digit := range code {
		if digit >= '0' && digit <= '9' {
			n = 10*n + int(digit-'0')
		}
	}
	return n
}

// steps are those of a pull, as the provider reports them.
func steps() []provider.Progress {
	p := func(id, status string, current, total int64, whole provider.Pulled) provider.Progress {
		return provider.Progress{Image: "i:1", ID: id, Status: status, Current: current, Total: total, Whole: whole}
	}
	far := func(percent int, bytes int64) provider.Pulled {
		return provider.Pulled{Percent: percent, Bytes: bytes, Total: 6e6}
	}
	all := []provider.Progress{
		p("", "Pulling from i", 0, 0, provider.Pulled{}),
		p("a", "Pulling fs layer", 0, 0, provider.Pulled{}), p("b", "Pulling fs layer", 0, 0, provider.Pulled{}),
		p("a", "Downloading", 1e6, 4e6, far(16, 1e6)), p("b", "Downloading", 1e6, 2e6, far(33, 2e6)),
		p("a", "Download complete", 0, 0, far(83, 5e6)), p("a", "Pull\x1b[31m complete", 0, 0, far(83, 5e6)),
		p("", "Status: Downloaded newer image for i:1", 0, 0, far(100, 6e6)),
		{Image: "i:1", Whole: provider.Pulled{Done: true, Percent: 100, Bytes: 6e6, Total: 6e6}},
	}
	all[0].First = true
	return all
}

// On a terminal a pull looks as docker's does: a line for each layer, drawn again in its place.
func TestAPullOnATerminal(t *testing.T) {
	var out bytes.Buffer
	bar := pullProgress{w: &out, view: newLayerPull(&out, screen{there: true, fd: ^uintptr(0)}, "i:1")}
	for _, s := range steps()[1:] {
		bar.report(s)
	}
	bar.done()
	want := []string{
		"dockerbox: pulling i:1", "a: Pull [31m complete", "b: Downloading [=========================>                         ]      1MB/2MB",
		"Status: Downloaded newer image for i:1", "",
	}
	if diff := cmp.Diff(want, replay(t, out.String())); diff != "" {
		t.Errorf("(-want +got):\n%s\n%q", diff, out.String())
	}
}

// More layers than a screen has lines share the last one: what has left the screen cannot be drawn again.
func TestAPullOfMoreLayersThanLines(t *testing.T) {
	var out bytes.Buffer
	view := newLayerPull(&out, screen{there: true, fd: ^uintptr(0)}, "i:1")
	view.most = 1
	for _, s := range steps()[:6] {
		view.step(s)
	}
	view.end()
	want := []string{"dockerbox: pulling i:1", "a: Download complete", "all layers: 33 % (2.0 of 6.0 MB)", ""}
	if diff := cmp.Diff(want, replay(t, out.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPullOnANarrowTerminal(t *testing.T) {
	var out bytes.Buffer
	view := &linePull{w: &out, screen: screen{there: true, fd: ^uintptr(0)}, image: strings.Repeat("long", 30)}
	for _, s := range steps()[3:5] {
		view.step(s)
	}
	if got := replay(t, out.String()); len(got) != 1 || !strings.HasPrefix(got[0], "pulling 33 % (2.0 of 6.0 MB) longlong") || len([]rune(got[0])) != 79 {
		t.Errorf("%q", got)
	}
	view.end()
	if got := replay(t, out.String()); got[0] != "" {
		t.Errorf("at the end %q", got)
	}
}

// Where nothing can be drawn twice, a pull is a few lines without anything for a terminal.
func TestAPullInAFile(t *testing.T) {
	var out bytes.Buffer
	bar := newPullProgress(&out)
	for _, s := range steps() {
		bar.report(s)
	}
	bar.done()
	if got := out.String(); got != "dockerbox: pulling i:1\ndockerbox: pulled i:1: 6MB in 0 s\n" {
		t.Errorf("got %q", got)
	}
}

// A slow pull says something at each tenth, but not twice within 2 s, and within 30 s in any case when there is news.
func TestASlowPullInAFile(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	view := &plainPull{w: &out, now: func() time.Time { return now }, image: "i:1"}
	view.begin()
	for _, s := range []struct {
		after time.Duration
		far   provider.Pulled
	}{
		{time.Second, provider.Pulled{Percent: 9}},
		{time.Second, provider.Pulled{Percent: 11, Bytes: 11e6, Total: 100e6}},
		{time.Second, provider.Pulled{Percent: 30, Bytes: 30e6, Total: 100e6}},
		{time.Second, provider.Pulled{Percent: 31, Bytes: 31e6, Total: 100e6}},
		{28 * time.Second, provider.Pulled{Percent: 32}},
		{2 * time.Second, provider.Pulled{Percent: 33, Bytes: 33e6, Total: 100e6}},
		{time.Minute, provider.Pulled{Percent: 33}},
		{time.Second, provider.Pulled{Percent: 33, Bytes: 33e6, Total: 100e6, Retrying: true}},
		{time.Second, provider.Pulled{Percent: 33, Retrying: true}},
		{time.Second, provider.Pulled{Percent: 34}},
		{time.Minute, provider.Pulled{Percent: 12, Bytes: 12e6, Total: 100e6, Unpacking: true}},
		{time.Second, provider.Pulled{Percent: 100, Bytes: 100e6, Total: 100e6, Unpacking: true}},
		{time.Second, provider.Pulled{Percent: 100, Total: 100e6, Done: true}},
	} {
		now = now.Add(s.after)
		view.step(provider.Progress{Image: "i:1", Whole: s.far})
	}
	want := `dockerbox: pulling i:1
dockerbox: pulling i:1: 11 % (11 of 100 MB)
dockerbox: pulling i:1: 31 % (31 of 100 MB)
dockerbox: pulling i:1: 33 % (33 of 100 MB)
dockerbox: pulling i:1: the connection to its registry was cut at 33 % (33 of 100 MB) and is made again
dockerbox: unpacking i:1: 12 % (12 of 100 MB)
dockerbox: pulled i:1: 100MB in 159 s
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestABuildIsToldStepByStep(t *testing.T) {
	long := "RUN export DEBIAN_FRONTEND=noninteractive && apt-get update -qq && more than a line of it can hold, which has 80"
	steps := []provider.BuildProgress{
		{Step: 1, Steps: 12, Instruction: "FROM base"}, {Step: 2, Steps: 12, Instruction: long},
		{Step: 2, Steps: 12, Instruction: long, Output: "Setting up\x1b[31m this thing " + strings.Repeat("x", 90)},
		{Step: 3, Steps: 12, Instruction: "USER pn"},
		{Step: 3, Steps: 12, Instruction: "USER pn", Output: "doing so"},
	}
	plain, drawn := new(bytes.Buffer), new(bytes.Buffer)
	bars := []*buildProgress{newBuildProgress(plain), {w: drawn, screen: screen{there: true, fd: ^uintptr(0)}}}
	for _, s := range steps {
		for _, bar := range bars {
			bar.report(s)
		}
	}
	for _, bar := range bars {
		bar.done()
		bar.done()
	}
	want := "dockerbox: step 1 of 12: FROM base\n" +
		"dockerbox: step 2 of 12: RUN export DEBIAN_FRONTEND=noninteractive && apt-get update…\n" +
		"dockerbox: step 3 of 12: USER pn\n"
	if diff := cmp.Diff(want, plain.String()); diff != "" {
		t.Errorf("plain (-want +got):\n%s", diff)
	}
	screen := []string{
		"step 1 of 12: FROM base",
		"step 2 of 12: RUN export DEBIAN_FRONTEND=noninteractive && apt-get update -qq…",
		"step 3 of 12: USER pn", "",
	}
	if diff := cmp.Diff(screen, replay(t, drawn.String())); diff != "" {
		t.Errorf("drawn (-want +got):\n%s", diff)
	}
	if !strings.Contains(drawn.String(), "step 2 of 12: Setting up [31m this thing xxx") || !strings.Contains(drawn.String(), "step 3 of 12: doing so") {
		t.Errorf("what a step prints is not shown: %q", drawn)
	}
}

func TestWhatIsWarnedOfAPull(t *testing.T) {
	var got []string
	for _, s := range steps() {
		if text, ok := pullWarning(s); ok {
			got = append(got, text)
		}
	}
	if diff := cmp.Diff([]string{"pulling image i:1", "image i:1 is there"}, got); diff != "" {
		t.Error(diff)
	}
}
