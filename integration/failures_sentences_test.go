//go:build integration

package integration

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sentence is an error of a row with its hint, "" for one that has none.
type sentence struct{ row, text, hint string }

// sentences lists those of all rows.
func sentences() []sentence {
	var all []sentence
	for _, rows := range [][]badInput{usageRows(), daemonRows(), imageRows(), missingRows(), livingRows(), pluginRows(), pullRows(), ttyRows(), hardenedRows(), houseRows(), copyRows(), forwardRows()} {
		for _, row := range rows {
			if row.err != "" {
				all = append(all, sentence{row.name, row.err, row.hint})
			}
		}
	}
	for _, row := range append(badLines(), badGreetings()...) {
		all = append(all, sentence{row.name, row.message, ""})
	}
	return all
}

// leastRows is what the table must hold.
const leastRows = 70

// internals are words of Go, of its libraries and of the Docker client, which mean nothing to who reads them.
var internals = regexp.MustCompile(`Error response from daemon|error during connect|\bdial (tcp|unix)\b|\bjson: |Go value|%!|<nil>|context (deadline exceeded|canceled)|\bsyscall\b|\brpc error\b|OCI runtime|` +
	`\b[a-z]+\.[A-Z][a-z]+[A-Z]|\bexit status\b`)

// What people read is one cause, without the road it took, and a next step that exists.
func TestFailuresAreSentences(t *testing.T) {
	all := sentences()
	if len(all) < leastRows {
		t.Errorf("there are %d rows, want %d", len(all), leastRows)
	}
	verbs, docker := commands(t, dockerboxBinary(t)), append(commands(t, "docker"), "group", "service", "daemon", "context") // as in "the docker group"
	for _, s := range all {
		for _, part := range parts(s.text) {
			if n := len(causes(part)); n > 2 {
				t.Errorf("%s: a chain of %d causes: %s", s.row, n-1, part)
			}
		}
		for _, text := range []string{s.text, s.hint} {
			if found := internals.FindString(text); found != "" {
				t.Errorf("%s: %q is no word for people: %s", s.row, found, text)
			}
			if strings.HasSuffix(text, ".") || strings.ContainsAny(text, "\n\t") || strings.Contains(text, "  ") {
				t.Errorf("%s: not one sentence without a full stop: %q", s.row, text)
			}
		}
		for _, named := range mentioned("dockerbox", s.hint) {
			if !slices.Contains(verbs, named) {
				t.Errorf("%s: there is no dockerbox %s: %s", s.row, named, s.hint)
			}
		}
		for _, named := range mentioned("docker", strings.ReplaceAll(s.hint, "make docker", "make")) {
			if !slices.Contains(docker, named) {
				t.Errorf("%s: there is no docker %s: %s", s.row, named, s.hint)
			}
		}
	}
}

// A scan that finds nothing anywhere would hold no rule.
func TestChainsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"a sentence": 1, "creating x: no room": 2, "creating x: writing y: no room": 3, `doing a: "b: c: d"`: 2, `ssh says "ssh: no: no"`: 1, "a:b": 1, "": 1,
		"memory: 5 must be more": 1, `volume: "/a:/b": it is taken`: 2, "--time: x must be y": 1, "extra_args: --x: a: b": 3,
	} {
		if got := len(causes(text)); got != want {
			t.Errorf("%q has %d clauses, want %d", text, got, want)
		}
	}
	if got := parts(`a: "x; y"; b: z; and more`); len(got) != 2 || got[1] != "b: z; and more" {
		t.Errorf("%q", got)
	}
}

// settingKey is what stands before the problem of a setting: its name is no cause.
var settingKey = regexp.MustCompile(`^(--)?[a-z]+([-_][a-z]+)*: `)

// parts cuts a list of faults. A semicolon without the next setting's name behind it is part of a sentence.
func parts(text string) []string {
	var cut []string
	for _, piece := range unquoted(text, "; ") {
		if len(cut) > 0 && !settingKey.MatchString(piece) {
			cut[len(cut)-1] += "; " + piece
		} else {
			cut = append(cut, piece)
		}
	}
	return cut
}

// causes cuts a sentence at its colons. Somebody else's words in quotes are not ours, and a setting's name is no cause.
func causes(text string) []string { return unquoted(settingKey.ReplaceAllString(text, ""), ": ") }

// unquoted cuts text at a separator that stands outside of quotes.
func unquoted(text, separator string) []string {
	var (
		cut    []string
		from   int
		quoted bool
	)
	for i := range text {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case !quoted && i >= from && strings.HasPrefix(text[i:], separator):
			cut = append(cut, text[from:i])
			from = i + len(separator)
		}
	}
	return append(cut, text[from:])
}

// mentioned lists the words that stand behind a program's name as its commands do.
func mentioned(program, text string) []string {
	var found []string
	for _, m := range regexp.MustCompile(`(?:^|[\s(`+"`"+`])`+program+` ([a-z]+)\b`).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// commands lists those that a program's help names.
func commands(t *testing.T, program string) []string {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), program, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+)\*? +\S`).FindAllSubmatch(help, -1) {
		names = append(names, string(m[1]))
	}
	if len(names) == 0 {
		t.Fatalf("%s --help names no command", program)
	}
	return names
}
