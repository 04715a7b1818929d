package main

import (
	"testing"

	"github.com/hermes-dockerbox/dockerbox/conformance"
)

// Every outcome is one line, and a failure names what it breaks.
func TestOutcomeLine(t *testing.T) {
	for _, tc := range []struct {
		outcome conformance.Outcome
		want    string
	}{
		{conformance.Outcome{Name: "a/b", Rule: "contract.X: so", Status: conformance.Pass}, "pass      a/b\n"},
		{conformance.Outcome{Name: "a/b", Rule: "contract.X: so", Status: conformance.Declared, Detail: "it cannot"}, "declared  a/b: it cannot\n"},
		{conformance.Outcome{Name: "a/b", Rule: "contract.X: so", Status: conformance.Fail, Detail: "1 is\n2"}, "fail      a/b: 1 is 2 (contract.X: so)\n"},
	} {
		if got := outcomeLine(tc.outcome); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
