//go:build linux

package main

import (
	"math"
	"slices"
	"time"
)

// samples are measured values of one unit.
type samples []float64

// milliseconds turns durations into samples.
func milliseconds(durations []time.Duration) samples {
	s := make(samples, len(durations))
	for i, d := range durations {
		s[i] = float64(d) / float64(time.Millisecond)
	}
	return s
}

// each is a sample per value, by f.
func (s samples) each(f func(float64) float64) samples {
	out := make(samples, len(s))
	for i, v := range s {
		out[i] = f(v)
	}
	return out
}

// median is the middle value, or the mean of the middle two; NaN of nothing.
func (s samples) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	ordered := slices.Sorted(slices.Values(s))
	middle := len(ordered) / 2
	if len(ordered)%2 == 1 {
		return ordered[middle]
	}
	return (ordered[middle-1] + ordered[middle]) / 2
}

// p95 is the smallest value that at least 95 % of all do not exceed (nearest rank); NaN of nothing. Where more is better the bad end is the
// other one: see row.
func (s samples) p95() float64 { return s.rank(0.95) }

// p5 is the value that at least 5 % do not exceed.
func (s samples) p5() float64 { return s.rank(0.05) }

func (s samples) rank(share float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	ordered := slices.Sorted(slices.Values(s))
	return ordered[max(0, int(math.Ceil(share*float64(len(ordered))))-1)]
}
