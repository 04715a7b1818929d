//go:build linux

package agent

import (
	"errors"
	"fmt"
	"strings"
)

// What shells and shims report on their status descriptor: fields that each end in NUL. The first of a record names it.
const (
	recordMoved   = "moved"   // the directory is gone, a parent serves
	recordRefused = "refused" // the directory cannot be entered; 1 field: why
	recordFailed  = "failed"  // the program cannot be executed; 2 fields: Reason, Text
	recordState   = "state"   // stateFields fields, then recordEnd
	recordEnd     = "end"
)

// Fields of a state record: pwd -P, $PWD, declare -px, declare -F, declare -f, alias -p.
const stateFields = 6

// maxReport bounds what a command may report. A state above it is not kept.
const maxReport = 64 << 20

// report is what a command left on its status descriptor.
type report struct {
	moved   bool
	refused string    // why the directory could not be entered
	failed  [2]string // reason and text of a program that could not be executed
	states  []dump    // complete ones only; a command has at most one
}

// dump is the shell as it was when it reported.
type dump struct {
	cwd      string // physical
	pwd      string // as the shell names it: unchanged unless the command changed directory
	oldpwd   string // "" when unset
	snapshot *snapshot
}

// parseReport reads all that arrived. before is what the shell started with. Records that are cut short are left out; what cannot be
// understood ends the report with an error next to what came before it. Any program of the command may have written here.
func parseReport(b []byte, before *snapshot) (report, error) {
	var r report
	fields := strings.Split(string(b), "\x00")
	fields = fields[:len(fields)-1] // what no NUL ended
	for len(fields) > 0 {
		kind, rest := fields[0], fields[1:]
		size := map[string]int{recordMoved: 0, recordRefused: 1, recordFailed: 2, recordState: stateFields + 1}
		n, known := size[kind]
		switch {
		case !known:
			return r, fmt.Errorf("unknown record %.40q", kind)
		case len(rest) < n:
			return r, nil
		}
		switch kind {
		case recordMoved:
			r.moved = true
		case recordRefused:
			r.refused = rest[0]
		case recordFailed:
			r.failed = [2]string{rest[0], rest[1]}
		case recordState:
			if rest[stateFields] != recordEnd {
				return r, errors.New("state record without its end")
			}
			d, err := parseState(rest[:stateFields], before)
			if err != nil {
				return r, err
			}
			r.states = append(r.states, d)
		}
		fields = rest[n:]
	}
	return r, nil
}

func parseState(f []string, before *snapshot) (dump, error) {
	d := dump{cwd: strings.TrimSuffix(f[0], "\n"), pwd: f[1], snapshot: newSnapshot()}
	for name, v := range before.vars {
		// bash passes these on and cannot list or change them, except for functions, which it has taken in.
		if !isName(name) && !strings.HasPrefix(name, "BASH_FUNC_") {
			d.snapshot.vars[name] = v
		}
	}
	if err := d.parseVars(f[2]); err != nil {
		return d, err
	}
	if err := d.parseFunctions(f[3], f[4], before); err != nil {
		return d, err
	}
	return d, d.parseAliases(f[5])
}

// parseVars reads declare -px: lines `declare -ATTRIBUTES NAME[=WORD]` or `NAME=(…)`, where words may hold newlines.
func (d *dump) parseVars(s string) error {
	const verb = "declare -"
	for s != "" {
		line, found := strings.CutPrefix(s, verb)
		attributes, line, spaced := strings.Cut(line, " ")
		end := strings.IndexAny(line, "=\n")
		if !found || !spaced || end < 0 || !isName(line[:end]) {
			return fmt.Errorf("no declaration: %.60q", s)
		}
		name, rest := line[:end], line[end:]
		v := variable{}
		plain := attributes == "x"
		switch {
		case rest[0] == '\n':
			plain = false
		case strings.HasPrefix(rest, "=("):
			var ok bool
			if rest, ok = skipArray(rest[2:]); !ok {
				return fmt.Errorf("array %s does not end", name)
			}
			plain = false
		default:
			var ok bool
			if v.value, rest, ok = unquote(rest[1:], "\n"); !ok {
				return fmt.Errorf("value of %s does not end", name)
			}
		}
		if !strings.HasPrefix(rest, "\n") {
			return fmt.Errorf("declaration of %s does not end", name)
		}
		if !plain {
			v.declaration = s[:len(s)-len(rest)]
		}
		s = rest[1:]
		if name == "OLDPWD" {
			d.oldpwd = v.value
		}
		if lasts(name) {
			d.snapshot.vars[name] = v
		}
	}
	return nil
}

// skipArray reads behind "(" to behind ")": elements [KEY]=WORD with spaces between, where keys and words may be quoted.
func skipArray(s string) (rest string, ok bool) {
	for {
		s = strings.TrimLeft(s, " ")
		if rest, done := strings.CutPrefix(s, ")"); done {
			return rest, true
		}
		if !strings.HasPrefix(s, "[") {
			return s, false
		}
		if _, s, ok = unquote(s[1:], "]"); !ok || !strings.HasPrefix(s, "]=") {
			return s, false
		}
		if _, s, ok = unquote(s[2:], " )\n"); !ok {
			return s, false
		}
	}
}

// parseFunctions reads the names of declare -F and divides the text of declare -f, which has them in the same order.
func (d *dump) parseFunctions(names, text string, before *snapshot) error {
	type entry struct {
		name     string
		exported bool
	}
	var list []entry
	for line := range strings.Lines(names) {
		attributes, name, found := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "declare -"), "\n"), " ")
		if !found || name == "" {
			return fmt.Errorf("no function: %.60q", line)
		}
		list = append(list, entry{name, strings.Contains(attributes, "x")})
	}
	for i, e := range list {
		next := ""
		if i+1 < len(list) {
			next = list[i+1].name
		}
		size := functionSize(text, next, before.functions[e.name].body)
		if size < 0 {
			return fmt.Errorf("function %.60q has no end", e.name)
		}
		body := strings.TrimSuffix(text[:size], "\n")
		text = text[size:]
		// The trap that guards a user's own EXIT trap names our variables.
		if lasts(e.name) && e.name != "builtin" && e.name != "exec" && (e.name != "trap" || !strings.Contains(body, own)) {
			d.snapshot.functions[e.name] = function{body, e.exported}
		}
	}
	return nil
}

// functionSize finds where the function that text begins with ends and next begins. A here-document in a body can look like a header, so
// an unchanged body is recognised as such first, and a header counts only behind a line that can close a function.
func functionSize(text, next, known string) int {
	if next == "" {
		return len(text)
	}
	header := next + " () \n"
	if known != "" && strings.HasPrefix(text, known+"\n"+header) {
		return len(known) + 1
	}
	for from := 0; ; {
		i := strings.Index(text[from:], "\n"+header)
		if i < 0 {
			return -1
		}
		from += i + 1
		if line := text[strings.LastIndexByte(text[:from-1], '\n')+1 : from]; line[0] == '}' {
			return from
		}
	}
}

// parseAliases reads alias -p: lines `alias [-- ]NAME=WORD`, where words may hold newlines.
func (d *dump) parseAliases(s string) error {
	for s != "" {
		line, found := strings.CutPrefix(s, "alias ")
		line = strings.TrimPrefix(line, "-- ")
		word, rest, closed := unquote(line, "\n")
		name, value, set := strings.Cut(word, "=")
		if !found || !closed || !set || name == "" || !strings.HasPrefix(rest, "\n") {
			return fmt.Errorf("no alias: %.60q", s)
		}
		d.snapshot.aliases[name] = value
		s = rest[1:]
	}
	return nil
}
