//go:build linux

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// player writes down when it had its turn.
type player struct {
	label string
	log   *[]string
	fail  error
}

func (p player) name() string { return p.label }

func (p player) do(_ context.Context, j job) (timing, error) {
	if p.fail != nil {
		return timing{}, p.fail
	}
	if j.Warm != warmUp {
		return timing{}, errors.New("a block without its warm-up")
	}
	*p.log = append(*p.log, p.label)
	return timing{each: slices.Repeat([]time.Duration{time.Millisecond}, j.Count)}, nil
}

func TestTurnsMoveOnEachRound(t *testing.T) {
	var log []string
	taken, err := turns(t.Context(), job{}, 25, player{"a", &log, nil}, player{"b", &log, nil}, player{"c", &log, nil})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(log, ""); got != "abc"+"bca"+"cab" {
		t.Errorf("turns %s", got)
	}
	for _, who := range []string{"a", "b", "c"} {
		if len(taken[who]) != 25 {
			t.Errorf("%s has %d values, want 25", who, len(taken[who]))
		}
	}
	broken := errors.New("broken")
	if _, err := turns(t.Context(), job{}, 10, player{"a", &log, nil}, player{"b", &log, broken}); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "b: ") {
		t.Errorf("%v, want whose failure it is", err)
	}
}

func TestRoundsLeaveOutTheFirst(t *testing.T) {
	calls := 0
	taken, err := rounds(t.Context(), 2, []string{"a", "b"}, func(_ context.Context, _ string) (time.Duration, error) {
		calls++
		return time.Duration(calls) * time.Millisecond, nil
	})
	// a1 b2, then b3 a4, then a5 b6.
	if err != nil || calls != 6 || !slices.Equal(taken["a"], samples{4, 5}) || !slices.Equal(taken["b"], samples{3, 6}) {
		t.Errorf("%v, %v after %d calls", taken, err, calls)
	}
}

func TestSeries(t *testing.T) {
	var calls atomic.Int64
	got, err := series(t.Context(), job{Count: 5, Warm: 2, Threads: 3}, func(context.Context) error {
		calls.Add(1)
		return nil
	})
	if err != nil || len(got.each) != 15 || calls.Load() != 17 {
		t.Errorf("%d values, %d calls, %v; want 15 and 17", len(got.each), calls.Load(), err)
	}
	broken := errors.New("broken")
	if _, err := series(t.Context(), job{Command: "that", Count: 5}, func(context.Context) error { return broken }); !errors.Is(err, broken) || !strings.Contains(err.Error(), "that") {
		t.Errorf("%v, want the failure and of which command", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := series(ended, job{Count: 5}, func(context.Context) error { t.Error("it went on"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after the end", err)
	}
}

func TestSpread(t *testing.T) {
	var calls, now, most atomic.Int64
	err := spread(t.Context(), 40, func(_ context.Context, i int) error {
		for at := now.Add(1); ; {
			seen := most.Load()
			if at <= seen || most.CompareAndSwap(seen, at) {
				break
			}
		}
		calls.Add(1)
		now.Add(-1)
		if i == 7 {
			return errors.New("the seventh")
		}
		return nil
	})
	if err == nil || err.Error() != "the seventh" || calls.Load() != 40 || most.Load() > helpers {
		t.Errorf("%v after %d calls, %d at a time", err, calls.Load(), most.Load())
	}
	ended, end := context.WithCancel(t.Context())
	if err := spread(ended, 40, func(context.Context, int) error { end(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after the end", err)
	}
}

func TestProgramsAreHeldToTheirOutput(t *testing.T) {
	want := command("printf x", 1)
	want.Output = 1
	if _, err := (bareBash{}).do(t.Context(), want); err != nil {
		t.Error(err)
	}
	want.Output = 2
	if _, err := (bareBash{}).do(t.Context(), want); err == nil || !strings.Contains(err.Error(), "1 bytes, not 2") {
		t.Errorf("one byte for two: %v", err)
	}
	if _, err := (bareBash{}).do(t.Context(), command("echo no >&2; exit 3", 1)); err == nil || !strings.Contains(err.Error(), "exit status 3: no") {
		t.Errorf("status 3: %v", err)
	}
	in := command(`[ "$(wc -c)" = 100000 ]`, 1)
	in.Stdin = 100000
	if _, err := (bareBash{}).do(t.Context(), in); err != nil {
		t.Error(err)
	}
}
