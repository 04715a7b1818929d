package environment

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// answering plays an agent that answers one question of the kind op.
func answering(t *testing.T, op string, limit int64, answer wire.Answer) *testBox {
	t.Helper()
	return &testBox{play: func(_ int, a *far) {
		a.send(wire.Encode(wire.TypeHello, 0, wire.Hello{Name: wire.AgentName, Protocol: wire.Protocol, Boot: "b"}))
		f, ok := a.next(wire.TypeQuery)
		q, err := wire.Decode[wire.Query](f)
		if !ok || err != nil || q.Op != op || q.LimitMS != limit {
			t.Errorf("asked %+v, %v; want %s and %d ms", q, err, op, limit)
		}
		a.send(wire.Encode(wire.TypeAnswer, f.ID, answer))
		a.drain()
	}}
}

func TestLookForJobs(t *testing.T) {
	b := answering(t, wire.OpJobs, 0, wire.Answer{Jobs: 3, Screen: 2, Example: "train\x1b[31m\nnext", Use: &wire.Use{IdleMS: 1500, Clients: 1}})
	got, err := LookForJobs(t.Context(), b, "1")
	b.playing.Wait()
	if want := (Jobs{Count: 3, Screen: 2, Example: "train [31m next", Told: true, Idle: 1500 * time.Millisecond, Clients: 1}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// An older agent tells nothing of the use.
func TestRetire(t *testing.T) {
	b := answering(t, wire.OpRetire, 3_600_000, wire.Answer{Retired: true, Jobs: 1, Screen: 9})
	got, retired, err := Retire(t.Context(), b, "1", time.Hour)
	b.playing.Wait()
	if err != nil || !retired || got.Told || got.Screen != 1 {
		t.Errorf("%+v, %v, %v", got, retired, err)
	}
}

// What an agent says of its use is believed no further than it can be.
func TestUseIsNeverNegative(t *testing.T) {
	for said, want := range map[int64]time.Duration{-5: 0, math.MaxInt64: math.MaxInt64 / time.Millisecond * time.Millisecond} {
		b := answering(t, wire.OpJobs, 0, wire.Answer{Use: &wire.Use{IdleMS: said, Clients: -1}, Screen: -1})
		got, err := LookForJobs(t.Context(), b, "1")
		b.playing.Wait()
		if err != nil || got.Idle != want || got.Clients != 0 || got.Screen != 0 {
			t.Errorf("%d ms: %+v, %v", said, got, err)
		}
	}
}

func TestAskToEnd(t *testing.T) {
	b := answering(t, wire.OpEnd, 1500, wire.Answer{})
	got, err := AskToEnd(t.Context(), b, "1", 1500*time.Millisecond)
	b.playing.Wait()
	if err != nil || got.Count != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// An agent that does not know the question is not one without jobs.
func TestAnOlderAgentCannotTellOfJobs(t *testing.T) {
	b := answering(t, wire.OpJobs, 0, wire.Answer{Error: `unknown question "jobs"`})
	_, err := LookForJobs(t.Context(), b, "1")
	b.playing.Wait()
	if e := backend(t, err); !strings.Contains(e.Reason, "cannot tell") || !strings.Contains(e.Hint, "--recreate") || !errors.Is(err, ErrCannotTell) {
		t.Errorf("%q, %q", e.Reason, e.Hint)
	}
}

// Whatever an agent counts, there are not fewer than none.
func TestJobsAreNeverNegative(t *testing.T) {
	b := answering(t, wire.OpJobs, 0, wire.Answer{Jobs: -5})
	got, err := LookForJobs(t.Context(), b, "1")
	b.playing.Wait()
	if err != nil || got.Count != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGauge(t *testing.T) {
	want := wire.Usage{CPUNanos: 1, Memory: 2}
	for _, tc := range []struct {
		answer wire.Answer
		want   *wire.Usage
	}{{wire.Answer{Usage: &want}, &want}, {wire.Answer{Error: `unknown question "usage"`}, nil}} {
		b := answering(t, wire.OpUsage, 0, tc.answer)
		g, err := OpenGauge(t.Context(), b, "1")
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.Read(t.Context())
		g.Close()
		b.playing.Wait()
		if tc.want == nil {
			if e := backend(t, err); !errors.Is(err, ErrCannotTell) || !strings.Contains(e.Reason, "unknown question") {
				t.Errorf("%v", err)
			}
		} else if err != nil || got != *tc.want {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
