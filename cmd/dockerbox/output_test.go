package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

func TestTable(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	err := printTable(&out, []provider.Sandbox{
		{Name: "default", ID: strings.Repeat("0123456789abcdef", 4), Image: "dockerbox/desktop:latest", User: "pn", State: "running", Created: now.Add(-90 * time.Minute)},
		{Name: "t", Profile: "work", ID: "short", Image: "i", User: "0", State: "exited", Created: now.Add(time.Second)},
	}, now)
	want := "" +
		"NAME      ID             IMAGE                      USER   STATE     CREATED\n" +
		"default   0123456789ab   dockerbox/desktop:latest   pn     running   2 hours ago\n" +
		"work/t    short          i                          0      exited    Less than a second ago\n"
	if diff := cmp.Diff(want, out.String()); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
}

// A shell reads back every word that is printed.
func TestQuoteIsReadBackByAShell(t *testing.T) {
	words := []string{"plain", "", "a b", "it's", "$HOME", "new\nline", `back\slash`, `"`, "*", "~", "ü", "--x=y", "#", "a'b'c", "!"}
	got, err := exec.Command("sh", "-c", `printf '%s\0' `+quoteAll(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Join(words, "\x00")+"\x00", string(got)); diff != "" {
		t.Fatal(diff)
	}
}

func TestKilledLineEndsStreamedOutput(t *testing.T) {
	for _, tc := range []struct {
		output string
		res    contract.Result
		want   string
	}{
		{"", contract.Result{TimedOut: true}, "[Command timed out after 2s]\n"},
		{"whole\n", contract.Result{TimedOut: true}, "whole\n[Command timed out after 2s]\n"},
		{"part", contract.Result{TimedOut: true}, "part\n[Command timed out after 2s]\n"},
		{"part", contract.Result{Interrupted: true}, "part\n[Command interrupted]\n"},
		{"part", contract.Result{ExitCode: 124}, "part"},
	} {
		var out bytes.Buffer
		w := &lastByte{w: &out}
		if _, err := w.Write([]byte(tc.output)); err != nil {
			t.Fatal(err)
		}
		if err := sayKilled(w, tc.res, 2*time.Second); err != nil || out.String() != tc.want {
			t.Errorf("%q %+v: got %q, want %q, %v", tc.output, tc.res, out.String(), tc.want, err)
		}
	}
}
