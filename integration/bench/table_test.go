//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func exampleReport() report {
	ours := measured("true", "`true`", "ours", inMS, samples{2.5, 2.5, 3})
	theirs := measured("true", "`true`", "built-in a|b", inMS, samples{70, 71})
	ours = ours.atLeast(as(theirs), ours.faster(theirs), 20).atMost("p95 against the median", 1.2, "×", 1)
	size := fact("program", "size", "agent", inMB, 3.2278).atMost(itself, 3.2278, inMB, 4)
	return report{
		Date: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Revision: "abc", Seconds: 61.4, Rows: []row{ours, theirs, size},
		Machine: machine{Cores: 2, CPU: "Some CPU", Kernel: "6.1", MemoryMB: 1000, Load: "0.1, 0.2, 0.3", ImageID: "sha256:0123456789abcdef"},
		Limits:  limits{1, 5120, 2048},
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := writeTable(&out, exampleReport()); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(out.String(), "\n\n")
	want := strings.Join([]string{
		"case    who           n  median  p95      compared                        target  held",
		"`true`  ours          3  2.50    3    ms  28.2 × as fast as built-in a|b  ≥ 20 ×  met",
		"                                          p95 against the median: 1.20 ×  ≤ 1 ×   missed",
		"        built-in a|b  2  70.5    71   ms",
		"size    agent         1  3.23         MB                                  ≤ 4 MB  met",
		"",
		"2 of 3 targets met",
		"",
	}, "\n")
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, part := range []string{"2026-11-30 12:00 UTC", "2 cores (Some CPU), 1000 MB of memory, Linux 6.1", "0.1, 0.2, 0.3", "61 s", "1 core, 5120 MB of memory, 2048 processes"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the head lacks %q:\n%s", part, out.String())
		}
	}
}

func TestMarkdown(t *testing.T) {
	text := markdown(exampleReport())
	for _, line := range []string{
		"| `true` | ours | 3 | 2.50 | 3 | ms | 28.2 × as fast as built-in a\\|b | ≥ 20 × | met |",
		"|  |  |  |  |  |  | p95 against the median: 1.20 × | ≤ 1 × | **missed** |",
		"|  | built-in a\\|b | 2 | 70.5 | 71 | ms |  |  |  |",
		"| case | who | n | median | p95 |  | compared | target | held |",
		"|---|---|---|---|---|---|---|---|---|",
		"2 of 3 targets met.",
		"| revision | abc |",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("it lacks the line %q:\n%s", line, text)
		}
	}
	if strings.Contains(text, "%!") {
		t.Errorf("a format went wrong:\n%s", text)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3: "3", 2000: "2000", 0.129: "0.13", 1.694: "1.69", 10.35: "10.3", 99.96: "100.0", 285.4: "285", -0.5: "-0.50", 1819.2: "1819",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}
