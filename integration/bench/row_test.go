//go:build linux

package main

import (
	"math"
	"strings"
	"testing"
)

func TestRowsKnowWhichEndIsBad(t *testing.T) {
	values := samples{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if r := measured("p", "c", "w", inMS, values); *r.P95 != 10 || r.N != 10 || r.Median != 5.5 {
		t.Errorf("%+v", r)
	}
	for _, unit := range []string{inMBPerSecond, inPerSecond} {
		if r := measured("p", "c", "w", unit, values); *r.P95 != 1 {
			t.Errorf("%s: p95 %v, want the low end", unit, *r.P95)
		}
	}
	if r := fact("p", "c", "w", inMB, 3); r.P95 != nil || r.Median != 3 || r.N != 1 {
		t.Errorf("a single value: %+v", r)
	}
}

func TestFaster(t *testing.T) {
	quick, slow := fact("", "", "", inMS, 2), fact("", "", "", inMS, 50)
	if f := quick.faster(slow); f != 25 {
		t.Errorf("2 ms against 50 ms: %v", f)
	}
	much, little := fact("", "", "", inMBPerSecond, 300), fact("", "", "", inMBPerSecond, 100)
	if f := much.faster(little); f != 3 {
		t.Errorf("300 MB/s against 100: %v", f)
	}
}

func TestTargets(t *testing.T) {
	r := fact("p", "c", "w", inMS, 1).
		atLeast("a", 20, 20).atLeast("a", 19.9, 20).atMost("b", 2, "×", 2).atMost("b", 2.01, "×", 2).
		atLeast("nothing", math.NaN(), 1).atMost("nothing", math.NaN(), "", 1).note("c", 5, "×")
	want := []string{met, missed, met, missed, missed, missed, ""}
	for i, c := range r.Checks {
		if c.Held != want[i] {
			t.Errorf("%d: %v %s %v is %q, want %q", i, c.Value, c.Want, c.Limit, c.Held, want[i])
		}
	}
	if held, all := (report{Rows: []row{r, r}}).held(); held != 4 || all != 12 {
		t.Errorf("%d of %d held, want 4 of 12", held, all)
	}
	// Two rows made of one must not write into each other.
	base := fact("p", "c", "w", inMS, 1).note("x", 1, "").note("y", 1, "").note("z", 1, "")
	first, second := base.note("first", 1, ""), base.note("second", 2, "")
	if first.Checks[3].What != "first" || second.Checks[3].What != "second" {
		t.Errorf("%v %v", first.Checks, second.Checks)
	}
}

func TestInvalidRows(t *testing.T) {
	good := fact("p", "case", "who", inMS, 1)
	for _, test := range []struct {
		name string
		rows []row
		want string // in the error; empty for none
	}{
		{"good", []row{good, good.note("x", 2, "")}, ""},
		{"nothing measured", []row{good, measured("p", "case", "other", inMS, nil)}, "case, other: nothing was measured"},
		{"no ratio", []row{good.note("× as fast as it", math.Inf(1), "×")}, "there is no × as fast as it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := invalid(test.rows)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func TestGrowth(t *testing.T) {
	before := facts{rss: 10e6, fds: 12, processes: 4, files: 100}
	after := facts{rss: 13e6, fds: 12, processes: 5, files: 99}
	rows := growth("row", "1000 in a row", "who", before, after)
	want := []string{missed, met, missed, met}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i, r := range rows {
		if r.Checks[0].Held != want[i] {
			t.Errorf("%s: %v is %q, want %q", r.Case, r.Median, r.Checks[0].Held, want[i])
		}
	}
	if rows := growth("", "", "", facts{rss: 1}, facts{rss: 1}); len(rows) != 3 {
		t.Errorf("where no files are counted there are %d rows, want 3", len(rows))
	}
}
