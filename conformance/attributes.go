package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// reserved are the names of Hermes's own backends; registering one of them raises there.
var reserved = []string{"local", "docker", "singularity", "modal", "managed_modal", "daytona", "vercel_sandbox", "ssh"}

func attributeCases() []Case {
	return []Case{
		{"attributes/name-is-its-own", "Hermes 1: the names of the built-in backends are reserved", nameIsItsOwn},
		{"attributes/default-cwd-is-usable", "Hermes 3.3: default_cwd is an absolute path inside the sandbox or exactly \"~\"", defaultCwdIsUsable},
		{"attributes/default-cwd-is-cheap", "Hermes 1: default_cwd is read on every command, so it does no I/O", defaultCwdIsCheap},
		{"attributes/default-cwd-is-constant", "contract.Provider.DefaultCwd: it speaks of every sandbox, whichever exist", onAny(defaultCwdIsConstant)},
		{"attributes/streams-as-declared", "contract.Provider.SupportsStreams: it tells whether environments offer ExecPrefix", onAny(streamsAsDeclared)},
		{"attributes/probe-answers", "Hermes 1: probe answers ready, needs_setup or unavailable within 2 s and never raises", probeAnswers},
		{"attributes/probe-with-no-time", "contract.Provider.Probe: it is bounded by its context", probeWithNoTime},
		{"attributes/faults-come-together", "contract.Config.Validate: every fault of a configuration at once, and nothing is made", faultsComeTogether},
	}
}

func nameIsItsOwn(_ context.Context, s Subject) error {
	name := s.Provider.Name()
	if name == "" || strings.TrimSpace(name) != name || slices.Contains(reserved, name) {
		return fmt.Errorf("the name is %q, want one that is not empty and not among %q", name, reserved)
	}
	return nil
}

func defaultCwdIsUsable(_ context.Context, s Subject) error {
	dir := s.Provider.DefaultCwd()
	if used := contract.DeclaredDefault(dir, nil); used != dir {
		return fmt.Errorf("default_cwd is %q, which a host ignores and uses %q instead", dir, used)
	}
	return nil
}

// The bound is the contract's. The best of a few rows counts, because the machine may be busy with something else during any one.
func defaultCwdIsCheap(ctx context.Context, s Subject) error {
	const reads, rows, limit = 10_000, 5, 50 * time.Millisecond
	best := time.Duration(-1)
	for range rows {
		began := time.Now()
		for range reads {
			s.Provider.DefaultCwd()
			if best >= 0 && time.Since(began) > best {
				break
			}
		}
		if took := time.Since(began); best < 0 || took < best {
			best = took
		}
		if best < limit || ctx.Err() != nil {
			break
		}
	}
	if best >= limit {
		return fmt.Errorf("%d reads of default_cwd take %s, want less than %s", reads, best, limit)
	}
	return nil
}

func defaultCwdIsConstant(_ context.Context, b *box) error {
	first := b.subject.Provider.DefaultCwd()
	if first == "" {
		return errors.New("default_cwd is empty while a sandbox lives")
	}
	return want("default_cwd, read again,", b.subject.Provider.DefaultCwd(), first)
}

func streamsAsDeclared(ctx context.Context, b *box) error {
	argv, err := b.ExecPrefix(ctx, "", true)
	if b.subject.Provider.SupportsStreams() {
		if err == nil && len(argv) == 0 {
			err = errors.New("an empty argv")
		}
		return wrap("streams are declared, but exec_prefix gives", err)
	}
	if err == nil {
		return fmt.Errorf("no streams are declared, but exec_prefix gives %q", argv)
	}
	return backendError("exec_prefix", err)
}

func probeAnswers(ctx context.Context, s Subject) error {
	const limit = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h := s.Provider.Probe(ctx)
	switch {
	case !slices.Contains([]contract.HealthStatus{contract.Ready, contract.NeedsSetup, contract.Unavailable}, h.Status):
		return fmt.Errorf("the status is %q", h.Status)
	case h.Detail == "":
		return errors.New("the detail is empty")
	case h.Status != contract.Ready && h.Hint == "":
		return fmt.Errorf("the status is %q without a hint", h.Status)
	}
	return nil
}

func probeWithNoTime(ctx context.Context, s Subject) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	answer := make(chan contract.Health, 1)
	go func() { answer <- s.Provider.Probe(ctx) }()
	const patience = 20 * time.Second
	select {
	case h := <-answer:
		if h.Status == "" || h.Detail == "" {
			return fmt.Errorf("a probe whose context is over gives %+v, want a status and a detail", h)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("a probe whose context is over has not returned after %s", patience)
	}
}

func faultsComeTogether(ctx context.Context, s Subject) error {
	cfg := s.Config()
	cfg.Network, cfg.PIDs, cfg.CPUs = "no such network", -1, -1
	env, err := s.Provider.CreateEnvironment(ctx, cfg, "")
	if err == nil {
		return errors.Join(errors.New("a configuration with three faults was accepted"), s.discard(ctx, cfg, env))
	}
	var faults contract.Faults
	if !errors.As(err, &faults) {
		return fmt.Errorf("the error is %T %q, want contract.Faults", err, said(err))
	}
	var keys []string
	for _, f := range faults {
		keys = append(keys, f.Key)
	}
	for _, key := range []string{"cpus", "network", "pids"} {
		if !slices.Contains(keys, key) {
			return fmt.Errorf("the faults are about %q, want cpus, network and pids among them", keys)
		}
	}
	return nil
}
