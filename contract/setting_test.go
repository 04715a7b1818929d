package contract

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated part of docs/operations.md anew")

// Fields of Config that are no settings: who asks, and how.
var notSettings = []string{"profile", "task", "given", "recreate", "adapt"}

func TestEveryFieldOfTheConfigurationIsASetting(t *testing.T) {
	var described, fields []string
	for _, s := range Settings() {
		if s.Key != "" {
			described = append(described, s.Key)
		}
		if s.Type == "" || s.Doc == "" || s.Since == "" || s.HostKey == "" && s.Flag == "" {
			t.Errorf("%+v lacks something", s)
		}
		if s.Environ != "" && strings.HasPrefix(s.HostKey, "terminal.") && strings.HasPrefix(s.Environ, "TERMINAL_") {
			if want := "TERMINAL_" + strings.ToUpper(strings.TrimPrefix(s.HostKey, "terminal.")); s.Environ != want {
				t.Errorf("%s is taken from %s, Hermes calls it %s", s.HostKey, s.Environ, want)
			}
		}
	}
	for f := range reflect.TypeFor[Config]().Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !slices.Contains(notSettings, key) {
			fields = append(fields, key)
		}
	}
	slices.Sort(described)
	slices.Sort(fields)
	if !slices.Equal(described, fields) {
		t.Fatalf("described: %q\nfields:    %q", described, fields)
	}
}

func TestTheTableOfSettingsInTheDocumentationIsThis(t *testing.T) {
	const file, begin, end = "../docs/operations.md", "<!-- settings: written by go test ./contract -update -->\n", "<!-- end of settings -->\n"
	var table strings.Builder
	table.WriteString("| Hermes | flag of `up` | type | default | changes live | since | meaning |\n|---|---|---|---|---|---|---|\n")
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + s + "`"
	}
	for _, s := range Settings() {
		host, kind, live := code(s.HostKey), s.Type, ""
		if s.Environ != "" {
			host += "<br>" + code(s.Environ)
		}
		if s.Unit != "" {
			kind += ", " + s.Unit
		}
		if s.Live {
			live = "yes"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s | %s |\n", host, code(s.Flag), kind, s.Default, live, s.Since, s.Doc)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table, between %q and %q", file, begin, end)
	}
	want := before + begin + table.String() + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Fatalf("the table of settings in %s is not that of Settings(); go test ./contract -update writes it anew", file)
	}
}
