package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vector is one case of a rule, in a form that other languages read too. docs/providers.md describes the fields.
type vector struct {
	Rule   int             `json:"rule"`
	Name   string          `json:"name"`
	Source string          `json:"source"`
	HeldBy string          `json:"held_by"` // "0.22.2": that release has the rule already; "changed": the release after it
	Do     string          `json:"do"`
	In     json.RawMessage `json:"in"`
	Want   json.RawMessage `json:"want"`
}

// input has the fields of every kind; each kind uses its own.
type input struct {
	Container                bool
	Dir, Mounted, Home       string
	Value                    any
	Raises                   bool
	Declared, Resolved       string
	Setting                  string
	Workdir, Recorded, Start string
	Backend                  string
	Streams, Isolated        bool
}

func (in input) guard() Guard { return Guard{in.Container, in.Mounted, in.Home} }

// answer runs the rule a vector is about.
func answer(do string, in input) (any, bool) {
	switch do {
	case "guard":
		return in.guard().Rejects(in.Dir), true
	case "default":
		var err error
		if in.Raises {
			err = errors.New("raised")
		}
		return DeclaredDefault(in.Value, err), true
	case "home":
		return DeclaredHome(in.Declared, in.Resolved), true
	case "start":
		return HostStart(in.Setting, in.Declared, in.guard()), true
	case "command":
		return HostCommandDirectory(in.Workdir, in.Recorded, in.Start, in.guard()), true
	default:
		return nil, false
	}
}

// readVectors returns all vectors of testdata, by file.
func readVectors(t *testing.T) map[string][]vector {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("vectors: %v %v", files, err)
	}
	all := map[string][]vector{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var vs []vector
		if err := json.Unmarshal(text, &vs); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".json")] = vs
	}
	return all
}

func TestVectors(t *testing.T) {
	for file, vs := range readVectors(t) {
		for _, v := range vs {
			t.Run(file+"/"+v.Name, func(t *testing.T) {
				var in input
				if err := json.Unmarshal(v.In, &in); err != nil {
					t.Fatal(err)
				}
				if v.Do == "placement" {
					if fault := placementFault(t, v, Resolve(in.Setting, Backend{in.Backend, in.Streams, in.Isolated})); fault != "" {
						t.Error(fault)
					}
					return
				}
				got, known := answer(v.Do, in)
				if !known {
					t.Fatalf("there is no rule %q", v.Do)
				}
				text, err := json.Marshal(got)
				if err != nil || !sameJSON(t, text, v.Want) {
					t.Errorf("%s gives %s, want %s (rule %d: %s)", v.In, text, v.Want, v.Rule, v.Source)
				}
			})
		}
	}
}

// placementFault says in what a placement is not the one a vector wants, "" when it is.
func placementFault(t *testing.T, v vector, got Placement) string {
	t.Helper()
	var want struct {
		Where Place
		Says  []string
	}
	if err := json.Unmarshal(v.Want, &want); err != nil {
		t.Fatal(err)
	}
	if got.Where != want.Where || (got.Reason == "") != (want.Where != PlaceRefused) {
		return fmt.Sprintf("%s gives %+v, want %s", v.In, got, v.Want)
	}
	for _, word := range want.Says {
		if !strings.Contains(got.Reason, word) {
			return fmt.Sprintf("the sentence %q does not name %q", got.Reason, word)
		}
	}
	return ""
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		t.Fatalf("%s or %s is no JSON", a, b)
	}
	return x == y
}

// The vectors are only worth what they cover: every rule, every source named, and enough of them.
func TestVectorsCoverTheRules(t *testing.T) {
	const rules, atLeast = 8, 80
	perRule, perHost, total := map[int]int{}, map[string]int{}, 0
	for file, vs := range readVectors(t) {
		names := map[string]bool{}
		for _, v := range vs {
			if names[v.Name] || v.Name == "" || v.Source == "" {
				t.Errorf("%s: %q needs a name of its own and a source", file, v.Name)
			}
			names[v.Name] = true
			perRule[v.Rule]++
			perHost[v.HeldBy]++
			total++
		}
	}
	for r := 1; r <= rules; r++ {
		if perRule[r] < 3 {
			t.Errorf("rule %d has only %d vectors", r, perRule[r])
		}
	}
	if total < atLeast || len(perRule) != rules || perHost["0.22.2"]+perHost["changed"] != total {
		t.Errorf("%d vectors, per rule %v, per host %v", total, perRule, perHost)
	}
	t.Logf("%d vectors, per rule %v, per host %v", total, perRule, perHost)
}
