package conformance

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestCasesAreNamedAndSourced(t *testing.T) {
	const atLeast = 40
	name := regexp.MustCompile(`^[a-z]+/[a-z]+(-[a-z]+)*$`)
	rule := regexp.MustCompile(`^(contract\.[A-Z][A-Za-z.]+|Hermes \d(\.\d)?): .+[^.]$`)
	seen := map[string]bool{}
	for _, c := range Cases() {
		if !name.MatchString(c.Name) || seen[c.Name] {
			t.Errorf("%q: want a name of its own, as group/what", c.Name)
		}
		if !rule.MatchString(c.Rule) {
			t.Errorf("%s: the rule %q does not begin with where it stands", c.Name, c.Rule)
		}
		seen[c.Name] = true
	}
	if len(seen) < atLeast {
		t.Errorf("%d cases, want at least %d", len(seen), atLeast)
	}
}

// fake is a backend in which nothing is right. It never fails, which would be too easy to notice.
type fake struct {
	dir    func() string
	result contract.Result
	text   string
	argv   []string
}

func (*fake) Name() string                              { return "docker" }
func (f *fake) DefaultCwd() string                      { return f.dir() }
func (*fake) SupportsStreams() bool                     { return true }
func (*fake) Probe(context.Context) (h contract.Health) { return h }
func (*fake) Info() (i contract.Info)                   { return i }
func (*fake) Cleanup(context.Context, bool) error       { return nil }
func (f *fake) FetchFile(_ context.Context, _ string, w io.Writer, _ int64) error {
	_, err := io.WriteString(w, f.text)
	return err
}
func (f *fake) Realpath(context.Context, string) (string, error) { return f.text, nil }
func (f *fake) Execute(context.Context, contract.Request) (contract.Result, error) {
	return f.result, nil
}
func (*fake) Dial(context.Context, string, string) (contract.Conn, error)  { return nil, nil }
func (f *fake) ExecPrefix(context.Context, string, bool) ([]string, error) { return f.argv, nil }
func (f *fake) CreateEnvironment(context.Context, contract.Config, string) (contract.Environment, error) {
	return f, nil
}

func subjectOf(f *fake) Subject {
	return Subject{
		Provider: f, Config: contract.Defaults, Shared: Share(contract.Defaults()),
		Vanish: func(context.Context, contract.Environment) error { return nil },
	}
}

// Every case fails on a backend that does nothing, or on one that answers everything with the same nonsense: none passes by itself.
func TestEveryCaseCanFail(t *testing.T) {
	nothing := &fake{dir: func() string { return "" }}
	const read = 10 * time.Microsecond // too long for one, by twice
	nonsense := &fake{
		dir: func() string {
			for began := time.Now(); time.Since(began) < read; {
				continue
			}
			return "nonsense"
		},
		result: contract.Result{ExitCode: 3, Output: []byte("nonsense"), Cwd: "nonsense"}, text: "nonsense", argv: []string{"/bin/false"},
	}
	failed := map[string]bool{}
	for _, f := range []*fake{nothing, nonsense} {
		Run(t.Context(), subjectOf(f), Cases(), func(o Outcome) {
			if o.Status == Fail && o.Detail != "" {
				failed[o.Name] = true
			}
		})
	}
	for _, c := range Cases() {
		if !failed[c.Name] {
			t.Errorf("%s passes on a backend that does nothing and on one that answers nonsense", c.Name)
		}
	}
}

// one runs a single made-up case under the name of a real one.
func one(t *testing.T, s Subject, name string, run func(context.Context, Subject) error) Outcome {
	t.Helper()
	var got []Outcome
	Run(t.Context(), s, []Case{{name, "contract.X: so", run}}, func(o Outcome) { got = append(got, o) })
	if len(got) != 1 {
		t.Fatalf("%d outcomes of one case: %+v", len(got), got)
	}
	return got[0]
}

func TestOutcomes(t *testing.T) {
	name := Cases()[0].Name
	good := func(context.Context, Subject) error { return nil }
	bad := func(context.Context, Subject) error { return errors.New("it is bad") }
	declared := Subject{Declared: map[string]string{name: "it cannot"}}
	for what, tc := range map[string]struct {
		subject Subject
		run     func(context.Context, Subject) error
		want    Outcome
	}{
		"holds":              {Subject{}, good, Outcome{Status: Pass}},
		"does not":           {Subject{}, bad, Outcome{Status: Fail, Detail: "it is bad"}},
		"panics":             {Subject{}, func(context.Context, Subject) error { panic("ouch") }, Outcome{Status: Fail, Detail: "it panicked: ouch"}},
		"declared":           {declared, bad, Outcome{Status: Declared, Detail: "it cannot"}},
		"declared and holds": {declared, good, Outcome{Status: Fail, Detail: "it holds, although an exception is declared: it cannot"}},
	} {
		tc.want.Name, tc.want.Rule = name, "contract.X: so"
		if got := one(t, tc.subject, name, tc.run); got != tc.want {
			t.Errorf("%s: %+v, want %+v", what, got, tc.want)
		}
	}
}

func TestADeclarationOfNoCaseFails(t *testing.T) {
	var got []Outcome
	Run(t.Context(), Subject{Declared: map[string]string{"no/case": "why"}}, nil, func(o Outcome) { got = append(got, o) })
	if len(got) != 1 || got[0].Status != Fail || got[0].Name != "no/case" {
		t.Errorf("%+v, want one failure", got)
	}
}

func TestCasesThatAreLeftFailWhenTheTimeIsUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ran := 0
	cases := slices.Repeat([]Case{{"a/b", "contract.X: so", func(context.Context, Subject) error { ran++; cancel(); return nil }}}, 3)
	var got []Status
	Run(ctx, Subject{}, cases, func(o Outcome) { got = append(got, o.Status) })
	if ran != 1 || !slices.Equal(got, []Status{Pass, Fail, Fail}) {
		t.Errorf("%d ran, outcomes %q", ran, got)
	}
}
