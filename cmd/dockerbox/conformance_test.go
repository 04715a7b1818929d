package main

import (
	"testing"

	"github.com/hermes-dockerbox/dockerbox/conformance"
	"github.com/hermes-dockerbox/dockerbox/contract"
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

// The sandboxes are of the profile that was asked for, and have names of their own.
func TestConformanceUsesTheProfileAskedFor(t *testing.T) {
	for _, profile := range []string{contract.SecurityStandard, contract.SecurityHardened} {
		s := throwaway(nil, profile)
		one, two := s.Config(), s.Config()
		if one.Security != profile || two.Security != profile || one.Name == two.Name {
			t.Errorf("%s: %q is %s, %q is %s", profile, one.Name, one.Security, two.Name, two.Security)
		}
	}
}
