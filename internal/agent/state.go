//go:build linux

package agent

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// variable is an exported variable. declaration is bash's own text for one that a plain NAME=VALUE cannot express: arrays,
// readonly, integer, or exported without a value; value is then what a reader of the environment would see, if anything.
type variable struct{ value, declaration string }

type function struct {
	body     string
	exported bool
}

// snapshot is shell state between commands, apart from the directory. It is never changed once made, so commands share it and two
// states are the same when the pointers are.
type snapshot struct {
	vars      map[string]variable
	functions map[string]function
	aliases   map[string]string

	traps     sync.Once
	trapNames map[string]bool // see trapping
}

func newSnapshot() *snapshot {
	return &snapshot{vars: map[string]variable{}, functions: map[string]function{}, aliases: map[string]string{}}
}

// foreign names never are state: bash sets them itself, or the boot script needs them writable.
var foreign = map[string]bool{
	"_": true, "SHLVL": true, "PWD": true, "OLDPWD": true, "MAPFILE": true, "REPLY": true, "BASH_EXECUTION_STRING": true, "SECONDS": true,
	"SHELLOPTS": true, "BASHOPTS": true, "BASHPID": true, "PPID": true, "UID": true, "EUID": true, "BASH_VERSINFO": true,
	"BASH_ARGV0": true, "FUNCNEST": true,
}

// own is how every name the agent brings into a shell begins.
const own = "__dockerbox"

func lasts(name string) bool { return !foreign[name] && !strings.HasPrefix(name, own) }

// isName reports whether bash would take name for a variable.
func isName(name string) bool {
	for i, c := range []byte(name) {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// merge returns s with the differences between before and after applied to it; s itself when there is none. That each command brings only
// its own differences is what lets concurrent commands keep each other's.
func (s *snapshot) merge(before, after *snapshot) *snapshot {
	vars, a := mergeMap(s.vars, before.vars, after.vars)
	functions, b := mergeMap(s.functions, before.functions, after.functions)
	aliases, c := mergeMap(s.aliases, before.aliases, after.aliases)
	if !a && !b && !c {
		return s
	}
	return &snapshot{vars: vars, functions: functions, aliases: aliases}
}

func mergeMap[V comparable](now, before, after map[string]V) (map[string]V, bool) {
	out, changed := now, false
	edit := func() map[string]V {
		if !changed {
			out, changed = maps.Clone(now), true
		}
		return out
	}
	for k, v := range after {
		if b, had := before[k]; had && b == v {
			continue
		}
		if n, has := now[k]; !has || n != v {
			edit()[k] = v
		}
	}
	for k := range before {
		if _, still := after[k]; still {
			continue
		}
		if _, has := now[k]; has {
			delete(edit(), k)
		}
	}
	return out, changed
}

// passing says which variables are one command's alone: those it was given, and those a host marked by name or beginning.
type passing struct {
	given    map[string][]byte
	patterns []string // see wire.Run.Transient
}

func (p passing) has(name string) bool {
	if _, given := p.given[name]; given {
		return true
	}
	return slices.ContainsFunc(p.patterns, func(pattern string) bool {
		beginning, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, beginning)
	})
}

// keep puts into s what before had of the passing variables, as if the command had not touched them. For a state nobody else has yet.
func (s *snapshot) keep(before *snapshot, p passing) {
	maps.DeleteFunc(s.vars, func(name string, _ variable) bool { return p.has(name) })
	for name, v := range before.vars {
		if p.has(name) {
			s.vars[name] = v
		}
	}
}

// Limits on what goes into the environment of the shell itself rather than into its prelude. A value above the kernel's 128 KiB
// would make every later command impossible to start, unset included; here it only hits the programs that get it.
const (
	maxEnvValue = 32 << 10
	maxEnvTotal = 256 << 10
)

// afterwards are variables that bash or its loader act upon when it starts: they are for the command's programs, and a broken one must
// not keep the shell from starting, make it complain about a locale, or let it run a file first.
func afterwards(name string) bool {
	return name == "BASH_ENV" || name == "ENV" || name == "IFS" || name == "PS4" || name == "LANG" || name == "BASH_XTRACEFD" ||
		strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "LD_")
}

// split divides the variables into an environment for execve and the text that declares the rest.
func (s *snapshot) split() (env []string, declarations string) {
	var late strings.Builder
	total := 0
	for _, name := range slices.Sorted(maps.Keys(s.vars)) {
		v := s.vars[name]
		switch {
		case v.declaration != "":
			late.WriteString("builtin eval -- " + quote(v.declaration) + "\n")
		case isName(name) && (afterwards(name) || len(v.value) > maxEnvValue || total+len(v.value) > maxEnvTotal):
			late.WriteString("builtin export " + name + "=" + quote(v.value) + "\n")
		default:
			env = append(env, name+"="+v.value)
			total += len(name) + len(v.value)
		}
	}
	return append(env, "SHLVL=0"), late.String()
}

// environ is the environment for a program that is no shell, with over on top.
func (s *snapshot) environ(over map[string][]byte) []string {
	env := make([]string, 0, len(s.vars)+len(over))
	for name, v := range s.vars {
		if _, hidden := over[name]; !hidden && (v.declaration == "" || v.value != "") {
			env = append(env, name+"="+v.value)
		}
	}
	for name, value := range over {
		env = append(env, name+"="+string(value))
	}
	return env
}

// prelude is the text that turns a fresh bash, started with env, into this state. Every piece is evaluated by itself, so that one
// bash cannot read again costs itself alone; aliases come last and in one command, or the first would change how the next is read.
func (s *snapshot) prelude() (env []string, text string) {
	env, declarations := s.split()
	var b strings.Builder
	b.WriteString(declarations)
	if _, set := s.vars["PATH"]; !set {
		b.WriteString("builtin unset PATH\n") // bash makes one up
	}
	b.WriteString("builtin shopt -s extglob\n") // a function may have been defined while it was on
	for _, name := range slices.Sorted(maps.Keys(s.functions)) {
		f := s.functions[name]
		b.WriteString("builtin eval -- " + quote(f.body) + "\n")
		if f.exported {
			b.WriteString("builtin export -f -- " + quote(name) + "\n")
		}
	}
	b.WriteString("builtin shopt -u extglob\n")
	if len(s.aliases) > 0 {
		b.WriteString("builtin alias --")
		for _, name := range slices.Sorted(maps.Keys(s.aliases)) {
			b.WriteString(" " + quote(name+"="+s.aliases[name]))
		}
		b.WriteString("\n")
	}
	return env, b.String()
}
