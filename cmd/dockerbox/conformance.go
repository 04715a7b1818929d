package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/conformance"
	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// exitCasesFailed is the status when the contract does not hold.
const exitCasesFailed = 1

func newConformance(std streams, open opener) *cobra.Command {
	var (
		asJSON           bool
		backend, profile string
	)
	c := &cobra.Command{
		Use:        "conformance [--json] [--backend NAME] [--profile NAME]",
		Short:      "Hold a backend to the Hermes contract",
		SuggestFor: []string{"check", "verify"},
		Long: `Run every case of the Hermes terminal-backend contract against a backend, on
sandboxes made for it and removed afterwards, homes included. Each case is a line:
"pass", "fail" with what went wrong and the rule it breaks, or "declared" with the
reason why it does not hold. It takes about a minute.`,
		Args: noArgs,
		Annotations: map[string]string{exitCodes: exitOK + "\n" +
			"  1    a case failed\n" + exitUsage + "\n" + exitBackend},
		RunE: func(c *cobra.Command, _ []string) error {
			if backend != provider.Name {
				return &usageError{problem: fmt.Sprintf("there is no backend %.40q", backend), hint: "the backend is " + provider.Name}
			}
			cfg := contract.Config{Name: "conformance", Network: contract.NetworkNone, Security: profile}
			if faults := cfg.Validate(); len(faults) > 0 {
				return faults
			}
			return runConformance(c.Context(), std, open, profile, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, when all cases have run")
	c.Flags().StringVar(&backend, "backend", provider.Name, "backend `NAME` to hold to the contract")
	c.Flags().StringVar(&profile, "profile", contract.SecurityStandard, "`NAME` of the sandboxes' security profile: standard or hardened")
	return c
}

// conformanceAnswer is what conformance --json prints.
type conformanceAnswer struct {
	Schema int                   `json:"schema"`
	Cases  []conformance.Outcome `json:"cases"`
}

func runConformance(ctx context.Context, std streams, open opener, profile string, asJSON bool) (err error) {
	p, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if h := p.Probe(ctx); h.Status != contract.Ready {
		return &contract.BackendError{Reason: h.Detail, Hint: h.Hint}
	}
	s := throwaway(p, profile)
	defer func() { err = errors.Join(err, s.Shared.Close(ctx, s)) }()
	answer := conformanceAnswer{Schema: schema, Cases: []conformance.Outcome{}}
	count := map[conformance.Status]int{}
	conformance.Run(ctx, s, conformance.Cases(), func(o conformance.Outcome) {
		count[o.Status]++
		answer.Cases = append(answer.Cases, o)
		if !asJSON && ctx.Err() == nil {
			err = errors.Join(err, say(std.out, "%s", outcomeLine(o)))
		}
	})
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if asJSON {
		err = errors.Join(err, printJSON(std.out, answer))
	} else {
		err = errors.Join(err, say(std.out, "%d cases: %d passed, %d failed, %d declared\n",
			len(answer.Cases), count[conformance.Pass], count[conformance.Fail], count[conformance.Declared]))
	}
	if err == nil && count[conformance.Fail] > 0 {
		err = statusError(exitCasesFailed)
	}
	return err
}

// outcomeLine is one case for people. A failure says which promise it breaks.
func outcomeLine(o conformance.Outcome) string {
	line := fmt.Sprintf("%-8s  %s", o.Status, o.Name)
	switch o.Status {
	case conformance.Declared:
		line += ": " + o.Detail
	case conformance.Fail:
		line += fmt.Sprintf(": %s (%s)", o.Detail, o.Rule)
	}
	return oneLine(line) + "\n"
}

// throwaway is a subject whose sandboxes nobody else has.
func throwaway(p *provider.Provider, profile string) conformance.Subject {
	const letters = 8
	run, n := strings.ToLower(rand.Text()[:letters]), 0
	fresh := func() contract.Config {
		cfg := contract.Defaults()
		cfg.Security = profile
		n++
		cfg.Name = fmt.Sprintf("conformance-%s-%d", run, n)
		return cfg
	}
	return conformance.Subject{
		Provider: p,
		Config:   fresh,
		Shared:   conformance.Share(fresh()),
		Discard: func(ctx context.Context, cfg contract.Config) error {
			return p.Remove(ctx, cfg.Name, provider.RemoveOptions{Force: true})
		},
		Vanish: func(ctx context.Context, env contract.Environment) error {
			return p.Remove(ctx, env.Info().Name, provider.RemoveOptions{Force: true, KeepHome: true})
		},
	}
}
