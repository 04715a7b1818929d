package verify

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// Account and AccountID are who the desktop's programs run as; Hermes looks for the name.
const (
	Account   = "pn"
	AccountID = "1000"
)

// Fault is one thing that is not as it should be. All fields are for people, on one line each.
type Fault struct {
	// Check is what was looked at, such as "user", "program Xvnc" or "fonts".
	Check string `json:"check"`
	// Found is what there is, Want what there should be.
	Found string `json:"found"`
	Want  string `json:"want"`
}

// Report is the outcome of a verification.
type Report struct {
	// Image is how the image was called, ID what the daemon calls it.
	Image, ID string
	// Checks counts what was looked at.
	Checks int
	// Faults are all there are, in the order of the checks; none for an image that is right.
	Faults []Fault
}

// expect counts a check and keeps its fault unless ok.
func (r *Report) expect(ok bool, check, found, want string) {
	r.Checks++
	if !ok {
		r.Faults = append(r.Faults, Fault{check, clean(found), want})
	}
}

// Images is what is needed of a backend; see [provider.Provider].
type Images interface {
	Image(ctx context.Context, ref string) (provider.Image, error)
	Lacks(ctx context.Context, imageID string, paths []string) ([]string, error)
	CreateEnvironment(ctx context.Context, cfg contract.Config, cwd string) (contract.Environment, error)
}

var _ Images = (*provider.Provider)(nil)

// Verify looks at an image that the daemon has and at a sandbox without a network made of it, which takes some seconds. The sandbox is
// gone when it returns, also when ctx ended it. An error is a [contract.BackendError], about the backend and not about the image.
func Verify(ctx context.Context, on Images, ref string) (Report, error) {
	found, err := on.Image(ctx, ref)
	if err != nil {
		return Report{}, err
	}
	r := Report{Image: ref, ID: found.ID}
	r.configuration(found)
	env, why := makeSandbox(ctx, on, ref)
	if ctx.Err() != nil {
		return r, errors.Join(why, remove(ctx, env))
	}
	r.expect(why == nil, "sandbox", reason(why), "a sandbox can be made of it")
	if env == nil {
		missing, err := on.Lacks(ctx, found.ID, candidates(found.Config.Env))
		if err != nil {
			return r, err
		}
		r.programs(absent(found.Config.Env, missing))
		for _, c := range liveChecks {
			r.expect(false, c.name, "not looked at, for there is no sandbox", "it works in one")
		}
		return r, nil
	}
	return r, errors.Join(r.live(ctx, on, found, env), remove(ctx, env))
}

// makeSandbox makes one of the image as it is, or else as root, so that the rest of an image without the right account can be looked at:
// then why says what was wrong. env is nil when there is no way.
func makeSandbox(ctx context.Context, on Images, ref string) (env contract.Environment, why error) {
	cfg := contract.Defaults()
	const letters = 10
	cfg.Name = "verify-" + strings.ToLower(rand.Text()[:letters])
	cfg.Image, cfg.Persistent, cfg.Network = ref, false, contract.NetworkNone
	cfg.CPUs, cfg.DiskMB, cfg.MemoryMB = 0, 0, 0
	env, why = on.CreateEnvironment(ctx, cfg, "")
	if why == nil || ctx.Err() != nil {
		return env, why
	}
	cfg.User = "0"
	if env, err := on.CreateEnvironment(ctx, cfg, ""); err == nil {
		return env, why
	}
	return nil, why
}

// removeLimit bounds the clean-up, which goes on when ctx is over.
const removeLimit = 30 * time.Second

func remove(ctx context.Context, env contract.Environment) error {
	if env == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	return env.Cleanup(ctx, true)
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// most is how much of what a program says becomes part of a message, in bytes.
const most = 300

// clean makes a text out of an image fit to be shown on one line.
func clean(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
