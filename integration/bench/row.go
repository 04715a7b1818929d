//go:build linux

package main

import (
	"fmt"
	"math"
)

// The units of rows.
const (
	inMS          = "ms"
	inSeconds     = "s"
	inMB          = "MB"
	inMBPerSecond = "MB/s"
	inPerSecond   = "commands/s"
	inPieces      = ""
)

// row is what was measured of one subject in one case.
type row struct {
	Part string `json:"part"`
	// Case is what was done, Who did it.
	Case string `json:"case"`
	Who  string `json:"who"`
	Unit string `json:"unit"`
	// N is how many values there were.
	N      int     `json:"n"`
	Median float64 `json:"median"`
	// P95 is what 95 % of all kept to: the 95th percentile, and for what is better when there is more of it the 5th. nil of a single value.
	P95 *float64 `json:"p95,omitempty"`
	// Checks hold the median against others, and against the targets.
	Checks []check `json:"checks,omitempty"`
}

// check is one comparison.
type check struct {
	// What is compared, such as "× as fast as built-in docker".
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Want is "≥" or "≤" with Limit, empty where the comparison is no target.
	Want  string  `json:"want,omitempty"`
	Limit float64 `json:"limit,omitempty"`
	Held  string  `json:"held,omitempty"` // met or missed, empty as Want
}

const (
	met    = "met"
	missed = "missed"
)

// itself is the What of a target that the median itself is held against.
const itself = "the median"

// measured makes a row of samples.
func measured(part, what, who, unit string, s samples) row {
	r := row{Part: part, Case: what, Who: who, Unit: unit, N: len(s), Median: s.median()}
	if len(s) > 1 {
		bad := s.p95()
		if unit == inMBPerSecond || unit == inPerSecond {
			bad = s.p5()
		}
		r.P95 = &bad
	}
	return r
}

// fact makes a row of one value.
func fact(part, what, who, unit string, value float64) row {
	return measured(part, what, who, unit, samples{value})
}

// note adds a comparison that is no target.
func (r row) note(what string, value float64, unit string) row {
	return r.with(check{What: what, Value: value, Unit: unit})
}

// atLeast adds a target from below, which is a ratio.
func (r row) atLeast(what string, value, limit float64) row {
	return r.with(check{What: what, Value: value, Unit: "×", Want: "≥", Limit: limit, Held: verdict(value >= limit)})
}

// atMost adds a target from above.
func (r row) atMost(what string, value float64, unit string, limit float64) row {
	return r.with(check{What: what, Value: value, Unit: unit, Want: "≤", Limit: limit, Held: verdict(value <= limit)})
}

func (r row) with(c check) row {
	r.Checks = append(r.Checks[:len(r.Checks):len(r.Checks)], c)
	return r
}

// verdict is missed for NaN too: what was not measured did not hold.
func verdict(held bool) string {
	if held {
		return met
	}
	return missed
}

// faster is how many times faster than another a row is: by time, or by what gets through.
func (r row) faster(other row) float64 {
	if r.Unit == inMBPerSecond || r.Unit == inPerSecond {
		return r.Median / other.Median
	}
	return other.Median / r.Median
}

// as words such a comparison.
func as(other row) string { return "× as fast as " + other.Who }

// invalid says what is wrong with rows that claim to be measurements.
func invalid(rows []row) error {
	for _, r := range rows {
		if r.N == 0 || math.IsNaN(r.Median) || math.IsInf(r.Median, 0) {
			return fmt.Errorf("%s, %s: nothing was measured", r.Case, r.Who)
		}
		for _, c := range r.Checks {
			if math.IsNaN(c.Value) || math.IsInf(c.Value, 0) {
				return fmt.Errorf("%s, %s: there is no %s", r.Case, r.Who, c.What)
			}
		}
	}
	return nil
}
