//go:build unix

package rpc

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// checkedProvider offers what a provider need not.
type checkedProvider struct {
	*localProvider
	checks  []contract.Check
	removed []string
	err     error
	profile string
}

func (p *checkedProvider) Doctor(context.Context) []contract.Check { return p.checks }

func (p *checkedProvider) Reap(_ context.Context, profile string) ([]string, error) {
	p.profile = profile
	return p.removed, p.err
}

func TestDoctorAndReapAreServed(t *testing.T) {
	p := &checkedProvider{
		localProvider: &localProvider{home: t.TempDir()}, removed: []string{"a", "b"},
		checks: []contract.Check{{Name: "one", Status: contract.CheckOK, Detail: "fine"}, {Name: "two", Status: contract.CheckFail, Detail: "bad", Remedy: "mend it"}},
	}
	c := connect(t, p)
	if got := c.Doctor(t.Context()); !reflect.DeepEqual(got, p.checks) {
		t.Errorf("checks %+v, want %+v", got, p.checks)
	}
	got, err := c.Reap(t.Context(), "work")
	if err != nil || !slices.Equal(got, p.removed) || p.profile != "work" {
		t.Errorf("removed %q of profile %q, %v", got, p.profile, err)
	}
	p.err = &contract.BackendError{Reason: "the daemon is away", Hint: "call it back"}
	var backend *contract.BackendError
	if _, err := c.Reap(t.Context(), ""); !errors.As(err, &backend) || *backend != (contract.BackendError{Reason: "the daemon is away", Hint: "call it back"}) {
		t.Errorf("a failed reap: %v", err)
	}
}

// Lists are lists in JSON also when they are empty.
func TestEmptyListsOfDoctorAndReap(t *testing.T) {
	c := serveRaw(t, func(s *Server) { s.Provider = &checkedProvider{localProvider: &localProvider{}} })
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":1}}`)
	c.answer("1")
	for id, tc := range map[string]struct{ method, key string }{"2": {"doctor", "checks"}, "3": {"reap", "removed"}} {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + tc.method + `"}`)
		l, _ := c.answer(id)
		if list, ok := l.Result[tc.key].([]any); !ok || len(list) > 0 {
			t.Errorf("%s: %+v %+v, want an empty list", tc.method, l.Result, l.Error)
		}
	}
}

// A provider without them has neither the methods nor the features, and a client of it says so.
func TestAProviderWithoutDoctor(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	for id, name := range map[string]string{"7": "doctor", "8": "reap"} {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + name + `"}`)
		if l, _ := c.answer(id); l.Error == nil || l.Error.Code != -32601 {
			t.Errorf("%s: %+v, want an unknown method", name, l)
		}
	}
	client := connect(t, &localProvider{home: t.TempDir()})
	if got := client.Doctor(t.Context()); len(got) != 1 || got[0].Status != contract.CheckWarn || !strings.Contains(got[0].Detail, "1.2.3") {
		t.Errorf("checks %+v, want one that names the version", got)
	}
	if _, err := client.Reap(t.Context(), ""); err == nil {
		t.Error("reap worked")
	}
}

func TestFeaturesOfTheHello(t *testing.T) {
	for _, tc := range []struct {
		provider contract.Provider
		want     []string
	}{
		{&localProvider{}, []string{"execute", "exec_prefix", "fetch", "raw", "deliver"}},
		{&checkedProvider{localProvider: &localProvider{}}, []string{"execute", "exec_prefix", "fetch", "raw", "deliver", "doctor", "reap"}},
	} {
		if got := (&Server{Provider: tc.provider}).hello().Features; !slices.Equal(got, tc.want) {
			t.Errorf("features %q, want %q", got, tc.want)
		}
	}
}

// A connection that is gone is the one row.
func TestDoctorWithoutAConnection(t *testing.T) {
	c := connect(t, &checkedProvider{localProvider: &localProvider{}})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	got := c.Doctor(t.Context())
	if len(got) != 1 || got[0].Status != contract.CheckFail || got[0].Detail == "" || got[0].Remedy == "" {
		t.Errorf("%+v, want a failure with a remedy", got)
	}
}
