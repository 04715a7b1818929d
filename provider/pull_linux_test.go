package provider_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// slowRegistry is one whose pulls do what a test says next.
type slowRegistry struct {
	say     chan jsonmessage.JSONMessage // said, when somebody pulls
	end     chan error                   // of the pull
	started chan string                  // the image of each pull
}

func newSlowRegistry(e *enginetest.Engine) *slowRegistry {
	r := &slowRegistry{say: make(chan jsonmessage.JSONMessage), end: make(chan error), started: make(chan string, 10)}
	e.Serve(func(ctx context.Context, ref string, report func(jsonmessage.JSONMessage)) error {
		r.started <- ref
		for {
			select {
			case m := <-r.say:
				report(m)
			case err := <-r.end:
				return err
			case <-ctx.Done():
				return &contract.BackendError{Reason: "given up", Hint: "again", Err: ctx.Err()}
			}
		}
	})
	return r
}

// tell has the daemon say something, and returns when who pulls has heard it: the message after it is taken only then.
func (r *slowRegistry) tell(messages ...jsonmessage.JSONMessage) {
	for _, m := range append(messages, jsonmessage.JSONMessage{Status: "and so on"}) {
		r.say <- m
	}
}

// never is a patience that no test waits for; at once one that it does not notice.
const (
	never  = time.Hour
	atOnce = time.Nanosecond
)

// newServed is a provider as the Hermes plugin has one. It is closed with the test.
func newServed(t *testing.T, e *enginetest.Engine, patience time.Duration, options ...provider.Option) *provider.Provider {
	t.Helper()
	options = append([]provider.Option{provider.WithEngine(e), provider.WithLogf(t.Logf), provider.WithBackgroundPull(patience)}, options...)
	p, err := provider.New(provider.Endpoint{}, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// missing is a configuration whose image has to be pulled.
func missing(e *enginetest.Engine) contract.Config {
	cfg := fresh(e)()
	e.RemoveImage(cfg.Image)
	return cfg
}

// refused asks for a sandbox that there cannot be yet.
func refused(t *testing.T, p *provider.Provider, cfg contract.Config, parts ...string) {
	t.Helper()
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, parts...)
	if !errors.Is(err, provider.ErrPulling) {
		t.Errorf("%v is not ErrPulling", err)
	}
}

func TestAMissingImageIsPulledInTheBackground(t *testing.T) {
	e := newEngine(t)
	r := newSlowRegistry(e)
	p, cfg := newServed(t, e, atOnce), missing(e)
	refused(t, p, cfg, "the image "+cfg.Image+" is being pulled: 0 %", "try again in a moment; the pull goes on meanwhile", "docker pull "+cfg.Image)
	r.tell(enginetest.Layer("a", "Downloading", 150e6, 404e6))
	refused(t, p, cfg, "is being pulled: 37 % (150 of 404 MB)")
	r.tell(enginetest.Layer("a", "Retrying in 5 seconds", 0, 0))
	refused(t, p, cfg, "37 % (150 of 404 MB); the connection to its registry was cut and is made again")
	r.tell(enginetest.Layer("a", "Download complete", 0, 0), enginetest.Layer("a", "Extracting", 101e6, 404e6))
	refused(t, p, cfg, "is being unpacked: 25 % (101 of 404 MB)")
	nothingIsLeft(t, e)
	r.end <- nil
	eventually(t, func() bool { return p.Probe(t.Context()).Status != contract.Ready }) // it is not on its way any more
	prints(t, open(t, p, cfg), "echo on", "on\n")
	if n := e.Calls(enginetest.OpPull); n != 1 {
		t.Errorf("%d pulls", n)
	}
}

// eventually waits for what another goroutine does.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	limit, again := time.NewTimer(time.Minute), time.NewTicker(time.Millisecond)
	defer limit.Stop()
	defer again.Stop()
	for !done() {
		select {
		case <-limit.C:
			t.Fatal("it does not happen")
		case <-again.C:
		}
	}
}

// An image that comes soon is waited for by all who ask for it.
func TestASmallImageJustWorks(t *testing.T) {
	e := newEngine(t)
	r := newSlowRegistry(e)
	p, cfg := newServed(t, e, never), missing(e)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			env, err := p.CreateEnvironment(t.Context(), cfg, "")
			if err != nil {
				t.Error(err)
				return
			}
			if err := env.Cleanup(context.Background(), false); err != nil {
				t.Error(err)
			}
		})
	}
	<-r.started
	eventually(t, func() bool { return e.Calls(enginetest.OpImage) >= 5 })
	r.tell(enginetest.Layer("a", "Downloading", 1, 2))
	r.end <- nil
	all.Wait()
	if n := e.Calls(enginetest.OpPull); n != 1 {
		t.Errorf("%d pulls", n)
	}
}

func TestAFailedPullIsToldOnceAndTriedAgain(t *testing.T) {
	e := newEngine(t)
	r := newSlowRegistry(e)
	p, cfg := newServed(t, e, atOnce), missing(e)
	refused(t, p, cfg, "is being pulled")
	<-r.started
	r.end <- errBad
	eventually(t, func() bool { return !strings.Contains(p.Probe(t.Context()).Detail, "is being pulled") })
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	if !errors.Is(err, errBad) {
		t.Fatalf("got %v, want why it failed", err)
	}
	nothingIsLeft(t, e)
	refused(t, p, cfg, "is being pulled: 0 %")
	<-r.started
	r.end <- nil
	eventually(t, func() bool { return !strings.Contains(p.Probe(t.Context()).Detail, "is being pulled") })
	prints(t, open(t, p, cfg), "echo on", "on\n")
}

// Who waits when a pull fails is told at once, and the next one does not hear it again.
func TestAFailedPullIsToldToWhoWaits(t *testing.T) {
	e := newEngine(t)
	r := newSlowRegistry(e)
	p, cfg := newServed(t, e, never), missing(e)
	for range 2 {
		go func() { <-r.started; r.end <- errBad }()
		if _, err := p.CreateEnvironment(t.Context(), cfg, ""); !errors.Is(err, errBad) {
			t.Fatal(err)
		}
	}
	if n := e.Calls(enginetest.OpPull); n != 2 {
		t.Errorf("%d pulls", n)
	}
}

// An image that somebody else brings in the meantime is taken, whatever became of the pull.
func TestAnImageThatComesAnotherWay(t *testing.T) {
	e := newEngine(t)
	r := newSlowRegistry(e)
	p, cfg := newServed(t, e, atOnce), missing(e)
	refused(t, p, cfg)
	<-r.started
	e.AddImage(cfg.Image)
	prints(t, open(t, p, cfg), "echo on", "on\n")
	r.end <- errBad
}

func TestAnAskerWhoGivesUpEndsNoPull(t *testing.T) {
	e := newEngine(t)
	r := newSlowRegistry(e)
	p, cfg := newServed(t, e, never), missing(e)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-r.started; cancel() }()
	_, err := p.CreateEnvironment(ctx, cfg, "")
	backendError(t, err, cfg.Image, "the pull goes on")
	go func() { r.end <- nil }()
	prints(t, open(t, p, cfg), "echo on", "on\n")
	if n := e.Calls(enginetest.OpPull); n != 1 {
		t.Errorf("%d pulls", n)
	}
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	e := newEngine(t)
	r := newSlowRegistry(e)
	p, cfg := newServed(t, e, atOnce), missing(e)
	refused(t, p, cfg)
	<-r.started
	if err := p.Close(); err != nil { // it returns: the registry has seen the end of the pull
		t.Fatal(err)
	}
	if _, err := e.Image(t.Context(), cfg.Image); err == nil {
		t.Error("the image is there although its pull was ended")
	}
	cfg.Image += "-2"
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "about to end")
}

// A backend whose image is on its way is ready: Hermes takes the tools away from an agent whose backend is not.
func TestHealthWhileAnImageIsPulled(t *testing.T) {
	e := newEngine(t)
	r := newSlowRegistry(e)
	p, cfg := newServed(t, e, atOnce), missing(e)
	if h := p.Probe(t.Context()); h.Status != contract.NeedsSetup {
		t.Fatalf("before: %+v", h)
	}
	refused(t, p, cfg)
	r.tell(enginetest.Layer("a", "Downloading", 150e6, 404e6))
	want := "the image " + cfg.Image + " is being pulled: 37 % (150 of 404 MB)"
	if h := p.Probe(t.Context()); h.Status != contract.Ready || h.Detail != "the daemon answers; "+want {
		t.Errorf("%+v", h)
	}
	if row := pullRow(p.Doctor(t.Context())); row == nil || row.Status != contract.CheckWarn || row.Detail != want {
		t.Errorf("%+v", row)
	}
	r.end <- nil
	eventually(t, func() bool { return p.Probe(t.Context()).Status == contract.NeedsSetup })
	if row := pullRow(p.Doctor(t.Context())); row != nil {
		t.Errorf("afterwards: %+v", row)
	}
}

func pullRow(checks []contract.Check) *contract.Check {
	for _, c := range checks {
		if c.Name == "pull" {
			return &c
		}
	}
	return nil
}

// Steps of pulls side by side are told one at a time, and the end of each is told.
func TestProgressOfManyPulls(t *testing.T) {
	e := newEngine(t)
	e.Serve(func(_ context.Context, _ string, report func(jsonmessage.JSONMessage)) error {
		for i := range int64(100) {
			report(enginetest.Layer("a", "Downloading", i, 100))
		}
		return nil
	})
	var (
		busy sync.Mutex
		ends = map[string]int{}
		last = map[string]int{}
	)
	p := newServed(t, e, never, provider.WithProgress(func(step provider.Progress) {
		if !busy.TryLock() {
			t.Error("two steps at a time")
			return
		}
		defer busy.Unlock()
		if step.Whole.Percent < last[step.Image] {
			t.Errorf("%s went back to %d %%", step.Image, step.Whole.Percent)
		}
		last[step.Image] = step.Whole.Percent
		if step.Whole.Done {
			ends[step.Image]++
		}
	}))
	configs := fresh(e)
	var all sync.WaitGroup
	for range 3 {
		cfg := configs()
		e.RemoveImage(cfg.Image)
		all.Go(func() {
			env, err := p.CreateEnvironment(t.Context(), cfg, "")
			if err != nil {
				t.Error(err)
				return
			}
			if err := env.Cleanup(context.Background(), true); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(ends) != 3 {
		t.Errorf("ends of %v, want three", ends)
	}
}
