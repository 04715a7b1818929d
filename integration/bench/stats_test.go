//go:build linux

package main

import (
	"math"
	"testing"
	"time"
)

func TestMedianAndRanks(t *testing.T) {
	hundred := make(samples, 100) // 100 down to 1: order must not matter
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, test := range []struct {
		name            string
		s               samples
		median, p95, p5 float64
	}{
		{"one", samples{3}, 3, 3, 3},
		{"two", samples{4, 1}, 2.5, 4, 1},
		{"three", samples{9, 1, 2}, 2, 9, 1},
		{"twenty", samples{20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, 10.5, 19, 1},
		{"hundred", hundred, 50.5, 95, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			if m, hi, lo := test.s.median(), test.s.p95(), test.s.p5(); m != test.median || hi != test.p95 || lo != test.p5 {
				t.Errorf("median %v, p95 %v, p5 %v; want %v, %v, %v", m, hi, lo, test.median, test.p95, test.p5)
			}
		})
	}
	if hundred[0] != 100 {
		t.Error("the samples themselves were put in order")
	}
	if m := (samples{}).median(); !math.IsNaN(m) {
		t.Errorf("the median of nothing is %v", m)
	}
	if p := (samples{}).p95(); !math.IsNaN(p) {
		t.Errorf("the p95 of nothing is %v", p)
	}
}

func TestMilliseconds(t *testing.T) {
	got := milliseconds([]time.Duration{1500 * time.Microsecond, 2 * time.Second})
	if len(got) != 2 || got[0] != 1.5 || got[1] != 2000 {
		t.Errorf("%v", got)
	}
	if doubled := got.each(func(v float64) float64 { return 2 * v }); doubled[0] != 3 || got[0] != 1.5 {
		t.Errorf("each gave %v of %v", doubled, got)
	}
}
