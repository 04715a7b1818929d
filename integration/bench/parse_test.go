//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestChosenParts(t *testing.T) {
	all := []part{{name: "a"}, {name: "b"}, {name: "c"}}
	names := func(parts []part) (joined string) {
		for _, p := range parts {
			joined += p.name
		}
		return joined
	}
	for list, want := range map[string]string{"": "abc", "b": "b", "c, a": "ac"} {
		got, err := chosen(all, list)
		if err != nil || names(got) != want {
			t.Errorf("%q: %s, %v; want %s", list, names(got), err, want)
		}
	}
	for _, list := range []string{"d", "a,", "a,,b"} {
		if got, err := chosen(all, list); err == nil || !strings.Contains(err.Error(), "a, b, c") {
			t.Errorf("%q: %s, %v; want an error that names the parts", list, names(got), err)
		}
	}
}

func TestPartsAreTold(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range parts {
		if p.name == "" || p.what == "" || p.run == nil || seen[p.name] {
			t.Errorf("%+v", p)
		}
		seen[p.name] = true
	}
}

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args string
		want int
		said string
	}{
		{"--help", 0, "parts:"},
		{"--only nothing", 2, `no part "nothing"`},
		{"--write --quick", 2, "whole runs"},
		{"--write --only true", 2, "whole runs"},
		{"more", 2, `"more" is no flag`},
		{"--runs 3", 2, "not defined"},
	} {
		var out, log strings.Builder
		if got := start(strings.Fields(test.args), &out, &log); got != test.want || !strings.Contains(log.String(), test.said) || out.Len() > 0 {
			t.Errorf("%s: status %d, %q, %q; want %d and %q", test.args, got, out.String(), log.String(), test.want, test.said)
		}
	}
}

func TestParseBusy(t *testing.T) {
	got, err := parseBusy("cpu  100 20 30 9999 888 4 5 6 70 80\ncpu0 1 2 3 4 5 6 7 8\n")
	if want := 1590 * time.Millisecond; err != nil || got != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for _, stat := range []string{"", "cpu  1 2 3\n", "intr 1 2 3 4 5 6 7 8\n", "cpu a b c d e f g h\n"} {
		if got, err := parseBusy(stat); err == nil {
			t.Errorf("%q gave %v", stat, got)
		}
	}
}

func TestParseMemory(t *testing.T) {
	const status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n"
	if got, err := parseMemory(status, "VmRSS"); err != nil || got != 1<<20 {
		t.Errorf("%d, %v; want 1 MiB", got, err)
	}
	if got, err := parseMemory(status, "VmSwap"); err == nil {
		t.Errorf("what is not there gave %d", got)
	}
	if got, err := parseMemory("VmRSS:\tmuch kB\n", "VmRSS"); err == nil {
		t.Errorf("what is no number gave %d", got)
	}
}

func TestParseGauges(t *testing.T) {
	if got, err := parseGauge("3296 15 4 812 1"); err != nil || got != (facts{3296 << 10, 15, 4, 812}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, out := range []string{"", "1 2 3 4", "a b c d e", "3296 15 4 812 0", "0 15 4 812 1"} {
		if got, err := parseGauge(out); err == nil {
			t.Errorf("%q gave %+v", out, got)
		}
	}
	bytes, share, err := parseDesk("1048576\n500000000\n700000000", 2)
	if err != nil || bytes != 1048576 || share != 10 {
		t.Errorf("%v, %v, %v; want 1048576 and 10 %%", bytes, share, err)
	}
	for _, out := range []string{"", "1 2", "1 2 x", "1 2 3 4"} {
		if _, _, err := parseDesk(out, 1); err == nil {
			t.Errorf("%q was taken", out)
		}
	}
}

func TestParseModel(t *testing.T) {
	if got := parseModel("processor\t: 0\nmodel name\t: Some: CPU\nmodel name\t: other\n", "amd64"); got != "Some: CPU" {
		t.Errorf("%q", got)
	}
	if got := parseModel("processor\t: 0\n", "arm64"); got != "arm64" {
		t.Errorf("%q", got)
	}
}

func TestParseReply(t *testing.T) {
	r := parseReply([]byte(`{"ns": [1, 2], "whole_ns": 5}`))
	if r.err != nil || len(r.NS) != 2 || r.WholeNS != 5 {
		t.Errorf("%+v", r)
	}
	if r := parseReply([]byte(`{"error": "RuntimeError: it broke"}`)); r.err == nil || r.err.Error() != "RuntimeError: it broke" {
		t.Errorf("%+v", r)
	}
	if r := parseReply([]byte("Warning: something")); r.err == nil || !strings.Contains(r.err.Error(), "Warning: something") {
		t.Errorf("%+v", r)
	}
}

func TestJobsNameTheirOwnDirectory(t *testing.T) {
	j := job{Command: "cat {dir}/a {dir}/b", Flood: "{dir}", Began: "x{dir}", Stop: "none"}
	got := j.in("/tmp")
	if got.Command != "cat /tmp/a /tmp/b" || got.Flood != "/tmp" || got.Began != "x/tmp" || got.Stop != "none" || j.Flood != "{dir}" {
		t.Errorf("%+v of %+v", got, j)
	}
}

// The three places that write the log of the bulk cases write the same one.
func TestTheLogIsOne(t *testing.T) {
	dir := t.TempDir()
	made := exec.Command("bash", "-c", strings.ReplaceAll(bulkMake, "{dir}", dir))
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.ReadFile(filepath.Join(dir, "t-bench-bulk"))
	if err != nil {
		t.Fatal(err)
	}
	size := len(logPiece())
	if len(file) != bulkSize || !bytes.Equal(file[:size], logPiece()) || !bytes.Equal(file[len(file)-size:], logPiece()) {
		t.Errorf("the file has %d bytes, or other ones: %.200q", len(file), file)
	}
	script := "import sys; sys.path.insert(0, '.'); import worker; sys.stdout.write(worker.Backend._payload({'stdin': " + strconv.Itoa(size+9) + "}))"
	payload, err := exec.Command("python3", "-B", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := append(bytes.Clone(logPiece()), logPiece()[:9]...); !bytes.Equal(payload, want) {
		t.Errorf("the worker has %.200q", payload)
	}
}
