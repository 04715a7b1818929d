package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// box is the sandbox a case works on.
type box struct {
	contract.Environment
	subject Subject
	config  contract.Config
}

// Shared is a sandbox that cases use one after another. Safe for concurrent use.
type Shared struct {
	mu     sync.Mutex
	config contract.Config
	env    contract.Environment
}

// Share returns a Shared for cfg. Nothing is created before the first case asks for it.
func Share(cfg contract.Config) *Shared { return &Shared{config: cfg} }

// open returns the sandbox, creating it when there is none.
func (h *Shared) open(ctx context.Context, p contract.Provider) (contract.Environment, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.env != nil {
		return h.env, nil
	}
	env, err := p.CreateEnvironment(ctx, h.config, "")
	if err == nil {
		h.env = env
	}
	return env, err
}

// Close removes the sandbox with its home, if a case has made it.
func (h *Shared) Close(ctx context.Context, s Subject) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.env == nil {
		return nil
	}
	env := h.env
	h.env = nil
	return s.discard(ctx, h.config, env)
}

// discardLimit bounds the removal of a case's sandbox, for which the case's own context may be over.
const discardLimit = time.Minute

// discard removes a sandbox and all it kept.
func (s Subject) discard(ctx context.Context, cfg contract.Config, env contract.Environment) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardLimit)
	defer cancel()
	var err error
	if env != nil {
		err = wrap("clean up with remove", env.Cleanup(ctx, true))
	}
	if s.Discard != nil {
		err = errors.Join(err, wrap("remove what is left", s.Discard(ctx, cfg)))
	}
	return err
}

type run = func(context.Context, Subject) error

// onAny makes a case of what can be tried on a sandbox that others have used.
func onAny(try func(context.Context, *box) error) run {
	return func(ctx context.Context, s Subject) error {
		if s.Shared == nil {
			return onNew(try)(ctx, s)
		}
		env, err := s.Shared.open(ctx, s.Provider)
		if err != nil {
			return wrap("create the shared sandbox", err)
		}
		return try(ctx, &box{env, s, s.Shared.config})
	}
}

// onNew makes a case of what needs a sandbox that is new and its own.
func onNew(try func(context.Context, *box) error) run { return onNewWith(nil, try) }

// onNewWith is onNew with a configuration that change, if not nil, has altered.
func onNewWith(change func(*contract.Config), try func(context.Context, *box) error) run {
	return func(ctx context.Context, s Subject) (err error) {
		cfg := s.Config()
		if change != nil {
			change(&cfg)
		}
		env, err := s.Provider.CreateEnvironment(ctx, cfg, "")
		if err != nil {
			return wrap("create a sandbox", err)
		}
		if env == nil {
			return errors.New("CreateEnvironment gave neither an environment nor an error")
		}
		defer func() { err = errors.Join(err, s.discard(ctx, cfg, env)) }()
		return try(ctx, &box{env, s, cfg})
	}
}

// again opens another handle on the box's sandbox, started in cwd, and closes it after try.
func (b *box) again(ctx context.Context, cwd string, try func(*box) error) (err error) {
	env, err := b.subject.Provider.CreateEnvironment(ctx, b.config, cwd)
	if err != nil {
		return wrap("open a second handle", err)
	}
	defer func() {
		err = errors.Join(err, wrap("close the second handle", env.Cleanup(context.WithoutCancel(ctx), false)))
	}()
	return try(&box{env, b.subject, b.config})
}

// step is one command and what must come of it.
type step struct {
	sh  string // shell text
	dir string // where, "" for the lasting directory
	out string // exact output; {home} stands for the home
	// code is the wanted status.
	code int
}

// script makes a case of commands run one after another.
func script(steps ...step) run {
	return onAny(func(ctx context.Context, b *box) error { return b.steps(ctx, steps...) })
}

func (b *box) steps(ctx context.Context, steps ...step) error {
	for _, s := range steps {
		r, err := b.Execute(ctx, contract.Request{Command: s.sh, Dir: s.dir})
		if err != nil {
			return wrap(fmt.Sprintf("%q", clip(s.sh)), err)
		}
		if want := b.fill(s.out); r.ExitCode != s.code || string(r.Output) != want {
			return fmt.Errorf("%q in %q: status %d and %q, want %d and %q", clip(s.sh), s.dir, r.ExitCode, clip(string(r.Output)), s.code, clip(want))
		}
	}
	return nil
}

// do runs shell text that must succeed and returns its output.
func (b *box) do(ctx context.Context, text string) (string, error) {
	r, err := b.Execute(ctx, contract.Request{Command: text})
	if err != nil {
		return "", wrap(fmt.Sprintf("%q", clip(text)), err)
	}
	if r.ExitCode != 0 {
		return "", fmt.Errorf("%q: status %d and %q, want 0", clip(text), r.ExitCode, clip(string(r.Output)))
	}
	return string(r.Output), nil
}
