package provider_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

func TestPauseAndUnpause(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	env := open(t, p, cfg)
	id := env.Info().ContainerID
	prints(t, env, "export A=1", "")
	for range 2 { // the second time it is done
		if err := p.Pause(t.Context(), cfg.Name); err != nil || state(t, p, cfg.Name) != "paused" {
			t.Fatalf("%v, it is %s", err, state(t, p, cfg.Name))
		}
	}
	_, err := p.Attach(t.Context(), cfg.Name)
	backendError(t, err, `sandbox "`+cfg.Name+`" is paused`, "dockerbox unpause "+cfg.Name)
	for range 2 {
		if err := p.Unpause(t.Context(), cfg.Name); err != nil || state(t, p, cfg.Name) != "running" {
			t.Fatalf("%v, it is %s", err, state(t, p, cfg.Name))
		}
	}
	prints(t, env, "echo $A", "1\n")

	// Somebody else is faster, in each direction, or ends it.
	e.Before(enginetest.OpFreeze, func() { _ = e.Pause(id, true) })
	if err := p.Pause(t.Context(), cfg.Name); err != nil {
		t.Errorf("paused by somebody else meanwhile: %v", err)
	}
	e.Before(enginetest.OpThaw, func() { _ = e.Pause(id, false) })
	if err := p.Unpause(t.Context(), cfg.Name); err != nil {
		t.Errorf("unpaused by somebody else meanwhile: %v", err)
	}
	e.Fail(enginetest.OpFreeze, errBad)
	if err := p.Pause(t.Context(), cfg.Name); !errors.Is(err, errBad) {
		t.Errorf("%v", err)
	}
	e.Before(enginetest.OpFreeze, func() { _ = e.Stop(id) })
	backendError(t, p.Pause(t.Context(), cfg.Name), "does not run", "dockerbox start "+cfg.Name)
	backendError(t, p.Pause(t.Context(), cfg.Name), "does not run")
	if err := p.Unpause(t.Context(), cfg.Name); err != nil {
		t.Errorf("a stopped one is not paused: %v", err)
	}
	if err := p.Start(t.Context(), cfg.Name); err != nil {
		t.Fatal(err)
	}
	e.Before(enginetest.OpFreeze, func() { _ = e.Vanish(id) })
	backendError(t, p.Pause(t.Context(), cfg.Name), "there is no sandbox")
	for _, err := range []error{p.Pause(t.Context(), "nosuch"), p.Unpause(t.Context(), "nosuch")} {
		backendError(t, err, `there is no sandbox "nosuch"`, "dockerbox ps")
	}
}

func TestLogs(t *testing.T) {
	e := newEngine(t)
	p, cfg := newProvider(t, e), fresh(e)()
	env := open(t, p, cfg)
	id := env.Info().ContainerID
	logs := func(o provider.LogOptions) string {
		t.Helper()
		var text strings.Builder
		if err := p.Logs(t.Context(), cfg.Name, o, &text); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	var ready string
	for ready == "" { // what is said reaches a log a moment later, as with a daemon
		time.Sleep(time.Millisecond)
		ready = logs(provider.LogOptions{Tail: -1})
	}
	if stamp, rest, _ := strings.Cut(ready, " "); !strings.HasPrefix(rest, "dockerbox-agent: version ") || !strings.HasSuffix(rest, " is ready\n") {
		t.Errorf("%q", ready)
	} else if at, err := time.Parse(time.RFC3339Nano, stamp); err != nil || time.Since(at) > time.Hour {
		t.Errorf("%q: %v", stamp, err)
	}
	if got := logs(provider.LogOptions{Tail: 0}) + logs(provider.LogOptions{Tail: -1, Since: time.Now().Add(time.Hour)}); got != "" {
		t.Errorf("no lines, and those of the next hour: %q", got)
	}
	// Followed, it goes on until the sandbox ends.
	var text strings.Builder
	followed := make(chan error, 1)
	go func() { followed <- p.Logs(t.Context(), cfg.Name, provider.LogOptions{Follow: true, Tail: 0}, &text) }()
	for e.Calls(enginetest.OpLogs) < 4 {
		time.Sleep(time.Millisecond)
	}
	if err := p.Stop(t.Context(), cfg.Name, grace); err != nil {
		t.Fatal(err)
	}
	if err := <-followed; err != nil {
		t.Error(err)
	}
	if state(t, p, cfg.Name) != "exited" || !strings.Contains(text.String()+logs(provider.LogOptions{Tail: -1}), "everything is asked to end") {
		t.Errorf("%q, it is %s", text.String(), state(t, p, cfg.Name))
	}
	// A writer that takes nothing is the caller's own trouble, a daemon that keeps no log is told.
	if err := p.Logs(t.Context(), cfg.Name, provider.LogOptions{Tail: -1}, full{}); !errors.Is(err, errFull) || strings.Contains(fmt.Sprint(err), "log driver") {
		t.Errorf("%v", err)
	}
	e.Fail(enginetest.OpLogs, errBad)
	backendError(t, p.Logs(t.Context(), cfg.Name, provider.LogOptions{}, &text), errBad.Reason, "--log-driver")
	e.Before(enginetest.OpLogs, func() { _ = e.Vanish(id) })
	backendError(t, p.Logs(t.Context(), cfg.Name, provider.LogOptions{}, &text), "there is no sandbox")
	backendError(t, p.Logs(t.Context(), "nosuch", provider.LogOptions{}, &text), "there is no sandbox")
}

var errFull = &contract.BackendError{Reason: "full", Hint: "empty it"}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestMeter(t *testing.T) {
	w := newTown(t)
	id := w.stay("busy", "true", func(c *contract.Config) { c.CPUs, c.MemoryMB = 2, 256 }).Info().ContainerID
	w.settle("ended", "true", nil)
	if err := w.p.Stop(t.Context(), "ended", 0); err != nil {
		t.Fatal(err)
	}
	var looks int
	w.engine.Uses(func(string) container.StatsResponse {
		looks++
		return container.StatsResponse{
			Read:        time.Unix(int64(looks), 0),
			CPUStats:    container.CPUStats{CPUUsage: container.CPUUsage{TotalUsage: uint64(looks) * 1_500_000_000}},
			PidsStats:   container.PidsStats{Current: 7, Limit: 2048},
			MemoryStats: container.MemoryStats{Usage: 100, Stats: map[string]uint64{"inactive_file": 40}},
			Networks:    map[string]container.NetworkStats{"eth0": {RxBytes: 1, TxBytes: 2}, "eth1": {RxBytes: 10, TxBytes: 20}},
			BlkioStats:  container.BlkioStats{IoServiceBytesRecursive: []container.BlkioStatEntry{{Op: "Read", Value: 5}, {Op: "write", Value: 6}, {Op: "Total", Value: 11}}},
		}
	})
	m := w.p.Meter(true)
	defer m.Close()
	for _, want := range []int{2, 3} { // looks: the first reading takes two
		list, err := m.Read(t.Context())
		if err != nil || len(list) != 1 || looks != want {
			t.Fatalf("%+v, %v after %d looks, want %d", list, err, looks, want)
		}
		u := list[0]
		if u.ID != id || !u.Measured || u.Cores != 1.5 || u.CPULimit != 2 || u.Memory != 60 || u.MemoryLimit != 256<<20 || u.PIDs != 7 || u.PIDsLimit != 2048 ||
			u.Received != 11 || u.Sent != 22 || u.Read != 5 || u.Written != 6 || u.Up <= 0 || u.Up > time.Hour {
			t.Errorf("%+v", u)
		}
		if u.More == nil || u.More.Disk <= 0 || u.More.Idle == nil || *u.More.Idle > time.Minute {
			t.Errorf("%+v", u.More)
		}
	}
	w.engine.Uses(nil)
	for name, tc := range map[string]struct {
		fault func()
		fails bool
	}{
		"ends meanwhile":    {func() { w.engine.Before(enginetest.OpStats, func() { _ = w.engine.Stop(id) }) }, false},
		"daemon fails":      {func() { w.engine.Fail(enginetest.OpStats, errBad) }, true},
		"fails on a second": {func() { w.engine.Fail(enginetest.OpInspect, errBad) }, true},
	} {
		if err := w.p.Start(t.Context(), "busy"); err != nil {
			t.Fatal(err)
		}
		tc.fault()
		list, err := w.p.Meter(false).Read(t.Context())
		if errors.Is(err, errBad) != tc.fails || err == nil && len(list) > 0 {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	if list, err := w.p.Meter(false, "ended").Read(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("of a stopped one: %+v, %v", list, err)
	}
	_, err := w.p.Meter(false, "ended", "nosuch").Read(t.Context())
	backendError(t, err, `there is no sandbox "nosuch"`)
	if err := errors.Join(w.p.Start(t.Context(), "busy"), w.p.Pause(t.Context(), "busy")); err != nil {
		t.Fatal(err)
	}
	list, err := w.p.Meter(true, "busy").Read(t.Context())
	if err != nil || len(list) != 1 || list[0].State != "paused" || !list[0].Measured || list[0].More.Idle != nil {
		t.Errorf("of a paused one: %+v, %v", list, err)
	}
	// A daemon that sees nothing: the agents are asked, over one connection each, and a paused one does not answer.
	w.engine.Uses(func(string) container.StatsResponse { return container.StatsResponse{} })
	w.stay("another", "true", nil)
	m = w.p.Meter(false)
	defer m.Close()
	stats, execs := w.engine.Calls(enginetest.OpStats), w.engine.Calls(enginetest.OpExec)
	for range 2 {
		list, err := m.Read(t.Context())
		if err != nil || len(list) != 2 || !list[0].Measured || list[1].Measured || list[1].Up <= 0 {
			t.Errorf("%+v, %v", list, err)
		}
	}
	if w.engine.Calls(enginetest.OpStats) != stats+1 || w.engine.Calls(enginetest.OpExec) != execs+1 {
		t.Errorf("the daemon was asked %d times, the agent connected to %d times; want each once", w.engine.Calls(enginetest.OpStats)-stats, w.engine.Calls(enginetest.OpExec)-execs)
	}
	w.engine.HangUp(list[0].ID)
	for _, s := range []string{"another", "busy"} { // whose connections break, and come back
		if d, err := w.p.Inspect(t.Context(), s); err == nil {
			w.engine.HangUp(d.ID)
		}
	}
	for _, want := range []bool{false, true} {
		if list, err := m.Read(t.Context()); err != nil || len(list) != 2 || list[0].Measured != want {
			t.Errorf("%+v, %v; want it measured: %v", list, err, want)
		}
	}
	w.engine.Uses(nil)
	ctx, cancel := context.WithCancel(t.Context())
	w.engine.Before(enginetest.OpStats, cancel)
	if _, err := w.p.Meter(false).Read(ctx); err == nil {
		t.Error("a caller who gave up is told nothing")
	}
}

// Many sandboxes are measured side by side: one after another would take the sum of all waits.
func TestMeterOfMany(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	const many = 200
	e.AddImage("x")
	for i := range many {
		labels := map[string]string{"dev.dockerbox.name": fmt.Sprintf("b-%03d", i), "dev.dockerbox.profile": "", "dev.dockerbox.config": "{}"}
		if err := e.AddForeign(t.Context(), fmt.Sprintf("c-%03d", i), "x", labels); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context(), fmt.Sprintf("c-%03d", i)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	list, err := p.Meter(false).Read(t.Context())
	if err != nil || len(list) != many || !slices.IsSortedFunc(list, func(a, b provider.Usage) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d, %v", len(list), err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// What is seen of a sandbox is not changed by looking at it.
func TestInspectSaysWhoUsesIt(t *testing.T) {
	w := newTown(t)
	env := w.stay("box", "nohup sleep 8911 >/dev/null 2>&1 & while [[ $(cat /proc/$!/comm) != sleep ]]; do :; done; echo 12345 >~/f", nil)
	id := env.Info().ContainerID
	d, err := w.p.Inspect(t.Context(), "box")
	if err != nil || d.Use == nil || !d.Use.Told || d.Use.Clients != 1 || d.Use.Jobs != 1 || d.Use.Example != "sleep" || d.Use.Screen || d.Use.Idle > time.Minute ||
		!strings.HasPrefix(d.HomeVolume, "dockerbox-home-box-") || time.Since(d.Started) > time.Hour || d.DiskBytes != nil {
		t.Fatalf("%+v %+v, %v", d, d.Use, err)
	}
	w.engine.HangUp(id)
	for deadline := time.Now().Add(grace); d.Use.Clients > 0; {
		if d, err = w.p.Inspect(t.Context(), "box"); err != nil || time.Now().After(deadline) {
			t.Fatalf("%+v, %v", d.Use, err)
		}
	}
	before := d.Use.Idle
	if d, err = w.p.Inspect(t.Context(), "box"); err != nil || d.Use.Idle < before {
		t.Errorf("a look counts as a use: %s, then %s, %v", before, d.Use.Idle, err)
	}
	if err := w.p.Measure(t.Context(), &d); err != nil || d.DiskBytes == nil || *d.DiskBytes <= 0 || d.HomeBytes == nil {
		t.Errorf("%+v, %v", d, err)
	}
	for _, op := range []enginetest.Op{enginetest.OpWrittenSize, enginetest.OpVolumeSizes} {
		w.engine.Fail(op, errBad)
		if err := w.p.Measure(t.Context(), &d); !errors.Is(err, errBad) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if err := w.p.Pause(t.Context(), "box"); err != nil {
		t.Fatal(err)
	}
	if d, err = w.p.Inspect(t.Context(), "box"); err != nil || d.Use != nil || d.State != "paused" {
		t.Errorf("of a paused one: %+v, %v", d.Use, err)
	}
}

func TestSelf(t *testing.T) {
	e := newEngine(t)
	words, err := newProvider(t, e).Self()
	if err != nil || !filepath.IsAbs(words[0]) || !slices.Equal(words[1:], []string{"--host", e.Address()}) {
		t.Errorf("%q, %v", words, err)
	}
	if _, err := os.Stat(words[0]); err != nil {
		t.Error(err)
	}
	p, err := provider.New(provider.Endpoint{Context: "there"}, provider.WithEngine(e))
	if err != nil {
		t.Fatal(err)
	}
	if words, err = p.Self(); err != nil || !slices.Equal(words[1:], []string{"--context", "there"}) {
		t.Errorf("%q, %v", words, err)
	}
}
