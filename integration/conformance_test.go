//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/conformance"
)

// report turns an outcome into a subtest; a declared case is logged with its reason.
func report(t *testing.T, o conformance.Outcome) {
	t.Helper()
	t.Run(o.Name, func(t *testing.T) {
		switch o.Status {
		case conformance.Pass:
		case conformance.Declared:
			t.Logf("declared: %s", o.Detail)
		default:
			t.Errorf("%s (%s)", o.Detail, o.Rule)
		}
	})
}

// On a real daemon the contract holds without an exception, through the built executable.
func TestDockerHoldsTheContract(t *testing.T) {
	const patience = 5 * time.Minute // for a machine that is busy; a quiet one takes half a minute
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	out, err := exec.CommandContext(ctx, dockerboxBinary(t), "conformance", "--json").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() != 1 || err != nil && exit == nil {
		t.Fatalf("dockerbox conformance: %v\n%s", err, tail(exit.Stderr))
	}
	var answer struct {
		Schema int
		Cases  []conformance.Outcome
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Schema != 1 {
		t.Fatalf("the answer: %v\n%s", err, tail(out))
	}
	failed := 0
	for _, o := range answer.Cases {
		if o.Status != conformance.Pass {
			failed++
		}
		report(t, o)
	}
	if want := len(conformance.Cases()); len(answer.Cases) != want {
		t.Errorf("%d outcomes of %d cases", len(answer.Cases), want)
	}
	if (failed > 0) != (exit != nil) {
		t.Errorf("%d cases did not pass, and the status is %v", failed, err)
	}
	t.Logf("%d cases in %s", len(answer.Cases), time.Since(began).Round(time.Millisecond))
}
