//go:build linux

package agent

import (
	"maps"
	"strings"
	"testing"
)

// stateRecord builds a record as a shell would.
func stateRecord(fields ...string) string {
	return recordState + "\x00" + strings.Join(fields, "\x00") + "\x00" + recordEnd + "\x00"
}

func TestParseState(t *testing.T) {
	before := newSnapshot()
	before.vars["odd.name"] = variable{value: "kept"}
	before.vars["gone"] = variable{value: "x"}
	before.functions["known"] = function{body: "known () \n{ \n    cat <<E\n}\nnext () \n{ \nE\n\n}"}
	vars := `declare -x PLAIN="a\"b\$c\\d\` + "`" + `e
f"
declare -x CONTROL=$'\001\377\n\'\\\E'
declare -x NOVALUE
declare -x EMPTY=""
declare -rx READONLY="1"
declare -ix NUMBER="5"
declare -ax LIST=([0]="a )" [1]=$'b\n)' [7]="c")
declare -Ax MAP=(["k ] =\""]="v" [plain]="w" )
declare -ax NONE=()
declare -x OLDPWD="/old"
declare -x PWD="/x"
declare -x __dockerbox_done="1"
`
	names := "declare -f __dockerbox_report\ndeclare -f builtin\ndeclare -fx known\ndeclare -f next\ndeclare -f trap\n"
	text := "__dockerbox_report () \n{ \n    :\n}\nbuiltin () \n{ \n    :\n}\n" + before.functions["known"].body + "\nnext () \n{ \n    echo\n} > /dev/null\ntrap () \n{ \n    __dockerbox_x\n}\n"
	aliases := "alias -- -x='a b'\nalias q='it'\\''s\n'\nalias z='=x'\n"
	r, err := parseReport([]byte("moved\x00"+stateRecord("/real dir\n\n", "/dir", vars, names, text, aliases)), before)
	must(t, err)
	if !r.moved || len(r.states) != 1 {
		t.Fatalf("%+v", r)
	}
	d := r.states[0]
	if d.cwd != "/real dir\n" || d.pwd != "/dir" || d.oldpwd != "/old" {
		t.Errorf("directories %q, %q, %q", d.cwd, d.pwd, d.oldpwd)
	}
	wantVars := map[string]variable{
		"odd.name": {value: "kept"}, "PLAIN": {value: "a\"b$c\\d`e\nf"}, "CONTROL": {value: "\x01\xff\n'\\\x1b"}, "NOVALUE": {declaration: "declare -x NOVALUE"},
		"EMPTY": {}, "READONLY": {"1", `declare -rx READONLY="1"`}, "NUMBER": {"5", `declare -ix NUMBER="5"`},
		"LIST": {declaration: `declare -ax LIST=([0]="a )" [1]=$'b\n)' [7]="c")`}, "MAP": {declaration: `declare -Ax MAP=(["k ] =\""]="v" [plain]="w" )`},
		"NONE": {declaration: "declare -ax NONE=()"},
	}
	if !maps.Equal(d.snapshot.vars, wantVars) {
		t.Errorf("variables %+v\nwant %+v", d.snapshot.vars, wantVars)
	}
	wantFunctions := map[string]function{"known": {before.functions["known"].body, true}, "next": {"next () \n{ \n    echo\n} > /dev/null", false}}
	if !maps.Equal(d.snapshot.functions, wantFunctions) {
		t.Errorf("functions %+v", d.snapshot.functions)
	}
	if want := map[string]string{"-x": "a b", "q": "it's\n", "z": "=x"}; !maps.Equal(d.snapshot.aliases, want) {
		t.Errorf("aliases %q", d.snapshot.aliases)
	}
}

func TestParseReportRefusesWhatIsBroken(t *testing.T) {
	empty := []string{"/\n", "/", "", "", "", ""}
	with := func(i int, s string) string {
		f := append([]string(nil), empty...)
		f[i] = s
		return stateRecord(f...)
	}
	for name, in := range map[string]string{
		"unknown record": "other\x00", "no end": strings.Replace(stateRecord(empty...), recordEnd, "xnd", 1),
		"no declaration": with(2, "x\n"), "no name": with(2, "declare -x =1\n"), "no newline": with(2, `declare -x A="1"`), "open quote": with(2, "declare -x A=\"1\n"),
		"open ANSI quote": with(2, "declare -x A=$'1\n"), "open single quote": with(2, "declare -x A='1\n"), "open array": with(2, "declare -ax A=([0]=\"1\"\n"),
		"array without key": with(2, "declare -ax A=(x)\n"), "array with an open key": with(2, "declare -Ax A=([\"x]=1)\n"), "nothing behind -": with(2, "declare -"),
		"function without text": with(3, "declare -f a\ndeclare -f b\n"), "function without name": with(3, "declare\n"),
		"no alias": with(5, "x\n"), "alias without value": with(5, "alias x\n"), "alias without newline": with(5, "alias x='1'"), "alias without name": with(5, "alias ='1'\n"),
	} {
		if r, err := parseReport([]byte(in), newSnapshot()); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, in := range map[string]string{"nothing": "", "cut short": stateRecord(empty...)[:15], "refused cut short": "refused\x00why"} {
		if r, err := parseReport([]byte(in), newSnapshot()); err != nil || len(r.states) != 0 || r.refused != "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// Whatever a command writes to its status descriptor, reading it ends, and a state that was understood survives being read again by bash's
// rules: unquote undoes quote.
func FuzzDump(f *testing.F) {
	f.Add([]byte(stateRecord("/\n", "/", "declare -x A=\"1\"\ndeclare -ax L=([0]=\"x\")\n", "declare -f f\n", "f () \n{ \n    :\n}\n", "alias a='b'\n")))
	f.Add([]byte("moved\x00refused\x00no\x00failed\x00a\x00b\x00"))
	f.Add([]byte(stateRecord("", "", "declare -x A=$'\\", "declare -f ", "", "alias ")))
	f.Add([]byte("state\x00\x00\x00declare -Ax A=([\"\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := parseReport(in, newSnapshot())
		if err != nil {
			return
		}
		for _, d := range r.states {
			env, text := d.snapshot.prelude()
			for _, kv := range append(env, text) {
				if strings.Contains(kv, "\x00") {
					t.Fatal("a NUL got into the state")
				}
			}
			for name, value := range d.snapshot.aliases {
				if word, rest, ok := unquote(quote(name+"="+value)+"\n", "\n"); !ok || word != name+"="+value || rest != "\n" {
					t.Fatalf("%q became %q", name+"="+value, word)
				}
			}
			d.snapshot.guards(text)
		}
	})
}

func TestMerge(t *testing.T) {
	s := func(pairs ...string) *snapshot {
		n := newSnapshot()
		for i := 0; i < len(pairs); i += 2 {
			n.vars[pairs[i]] = variable{value: pairs[i+1]}
		}
		return n
	}
	before := s("same", "1", "mine", "1", "lost", "1")
	now := s("same", "1", "mine", "1", "lost", "1", "other", "2")
	if got := now.merge(before, s("same", "1", "mine", "1", "lost", "1")); got != now {
		t.Error("no difference made another state")
	}
	got := now.merge(before, s("same", "1", "mine", "3", "new", "4"))
	if want := s("same", "1", "mine", "3", "new", "4", "other", "2"); !maps.Equal(got.vars, want.vars) {
		t.Errorf("got %v", got.vars)
	}
	if now.vars["mine"].value != "1" || len(now.vars) != 4 {
		t.Error("the old state was changed")
	}
	if got := got.merge(before, s("same", "1", "mine", "3", "new", "4")); got != got.merge(before, s("same", "1", "mine", "3", "new", "4")) {
		t.Error("the same difference twice made two states")
	}
	got = now.merge(s("other", "2"), s())
	if _, still := got.vars["other"]; still {
		t.Error("an unset was not applied")
	}
}
