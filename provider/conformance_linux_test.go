package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hermes-dockerbox/dockerbox/conformance"
	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/internal/rpc"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// newEngine is an engine in memory, and the docker command that reaches it.
func newEngine(t *testing.T) *enginetest.Engine {
	t.Helper()
	e, err := enginetest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("PATH", e.CLIDir()+string(os.PathListSeparator)+os.Getenv("PATH"))
	return e
}

// newProvider is the provider under test on an engine in memory.
func newProvider(t *testing.T, e *enginetest.Engine) *provider.Provider {
	t.Helper()
	p, err := provider.New(provider.Endpoint{}, provider.WithEngine(e), provider.WithLogf(t.Logf))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fresh returns configurations of sandboxes that do not exist, each with an image of its own: see package enginetest.
func fresh(e *enginetest.Engine) func() contract.Config {
	var n atomic.Int64
	return func() contract.Config {
		cfg := contract.Defaults()
		cfg.Name = fmt.Sprintf("conformance-%d", n.Add(1))
		cfg.Image = cfg.Name
		e.AddImage(cfg.Image)
		return cfg
	}
}

// subject holds tested, which works on e, to the contract.
func subject(e *enginetest.Engine, p *provider.Provider, tested contract.Provider) conformance.Subject {
	return conformance.Subject{
		Provider: tested,
		Config:   fresh(e),
		Discard: func(ctx context.Context, cfg contract.Config) error {
			return p.Remove(ctx, cfg.Name, provider.RemoveOptions{Force: true})
		},
		Vanish: func(_ context.Context, env contract.Environment) error { return e.Vanish(env.Info().ContainerID) },
	}
}

// workers is how many rows of cases run side by side: most of a case is waiting.
const workers = 8

// hold turns each case into a subtest. share gives the cases of a row one sandbox, one after another. A declared case is logged with its
// reason.
func hold(t *testing.T, s conformance.Subject, share bool) {
	t.Helper()
	began := time.Now()
	outcomes := make(chan conformance.Outcome)
	var rows sync.WaitGroup
	for i := range workers {
		s := s
		var mine []conformance.Case
		for j, c := range conformance.Cases() {
			if j%workers == i {
				mine = append(mine, c)
			}
		}
		if share {
			s.Shared = conformance.Share(s.Config())
		}
		rows.Go(func() {
			conformance.Run(t.Context(), s, mine, func(o conformance.Outcome) { outcomes <- o })
			if share {
				if err := s.Shared.Close(t.Context(), s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { rows.Wait(); close(outcomes) }()
	declared, total := 0, 0
	for o := range outcomes {
		total++
		t.Run(o.Name, func(t *testing.T) {
			switch o.Status {
			case conformance.Pass:
			case conformance.Declared:
				declared++
				t.Logf("declared: %s", o.Detail)
			default:
				t.Errorf("%s (%s)", o.Detail, o.Rule)
			}
		})
	}
	if n := len(conformance.Cases()); total < n {
		t.Errorf("%d outcomes of %d cases", total, n)
	}
	t.Logf("%d cases, %d of them declared, in %s", total, declared, time.Since(began).Round(time.Millisecond))
}

// nothingIsLeft wants an engine on which only what is kept for later sandboxes remains.
func nothingIsLeft(t *testing.T, e *enginetest.Engine) {
	t.Helper()
	if c := e.Containers(); len(c) > 0 {
		t.Errorf("containers remain: %q", c)
	}
	if v := e.Volumes(); len(v) > 1 {
		t.Errorf("volumes remain: %q, want only the agent's", v)
	}
}

func TestProviderHoldsTheContract(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	hold(t, subject(e, p, p), false)
	nothingIsLeft(t, e)
}

// Cases on one sandbox after another, as on a daemon where each new sandbox takes a second.
func TestProviderHoldsTheContractOnASharedSandbox(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	hold(t, subject(e, p, p), true)
	nothingIsLeft(t, e)
}

// What crosses the protocol is the provider still.
func TestServedProviderHoldsTheContract(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	s := subject(e, p, serve(t, p))
	const terminals = "the protocol carries no terminals: hosts have no word for one"
	s.Declared = map[string]string{
		"output/apart": "the protocol carries one output stream",

		"terminal/size-at-first-look":        terminals,
		"terminal/resize":                    terminals,
		"terminal/controls-the-session":      terminals,
		"terminal/kind":                      terminals,
		"terminal/status":                    terminals,
		"terminal/keys":                      terminals,
		"terminal/raw-bytes":                 terminals,
		"terminal/end-of-input":              terminals,
		"terminal/background-does-not-delay": terminals,
		"terminal/whole-tree":                terminals,
	}
	for _, c := range conformance.Cases() {
		if strings.HasPrefix(c.Name, "dial/") {
			s.Declared[c.Name] = "the protocol has no connections to ports; the command line makes them by itself"
		}
	}
	hold(t, s, true)
	nothingIsLeft(t, e)
}

// serve joins a client to a server of p in this process.
func serve(t *testing.T, p contract.Provider) *rpc.Client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := (&rpc.Server{Provider: p, Version: "1.2.3"}).Serve(context.Background(), inR, outW)
		served <- errors.Join(err, outW.Close())
	}()
	c, err := rpc.Connect(t.Context(), outR, inW, "test", "0", func(text string) { t.Logf("warning: %s", text) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), <-served); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return c
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
