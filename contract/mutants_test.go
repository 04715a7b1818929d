package contract

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"
)

// mutant is a rule with one thing broken on purpose. A mutant that no vector of its rule notices would mean that the vectors allow a
// host with that fault.
type mutant struct {
	rule   int
	broken string
	do     string
	answer func(in input) any
}

// real is the unbroken answer.
func real(do string, in input) any {
	got, _ := answer(do, in)
	return got
}

var mutants = []mutant{
	{1, "terminal.cwd is ignored", "start", func(in input) any { return in.Declared }},
	{1, "the provider's default is ignored", "start", func(in input) any {
		in.Declared = BuiltinDefault
		return real("start", in)
	}},
	{1, "the provider's default beats terminal.cwd", "start", func(in input) any {
		if in.Declared != BuiltinDefault {
			return in.Declared
		}
		return real("start", in)
	}},
	{1, "terminal.cwd is used unguarded", "start", func(in input) any {
		in.Container = false
		return real("start", in)
	}},
	{1, "a terminal.cwd equal to the default is guarded too", "start", func(in input) any {
		if in.guard().Rejects(in.Setting) {
			return BuiltinDefault
		}
		return real("start", in)
	}},

	{2, "relative paths pass", "guard", passes(func(in input) bool { return !path.IsAbs(in.Dir) })},
	{2, "/Users passes", "guard", passes(func(in input) bool { return strings.HasPrefix(in.Dir, "/Users/") })},
	{2, "/home passes", "guard", passes(func(in input) bool { return strings.HasPrefix(in.Dir, "/home/") })},
	{2, "Windows drives pass", "guard", passes(func(in input) bool { return windowsDrive.MatchString(in.Dir) })},
	{2, "the mounted directory passes", "guard", func(in input) any {
		in.Mounted = ""
		return real("guard", in)
	}},
	{2, "the mounted directory is compared letter by letter", "guard", passes(func(in input) bool {
		return in.Mounted != "" && in.Dir != in.Mounted
	})},
	{2, "what lies below the mounted directory is rejected", "guard", rejects(func(in input) bool {
		return in.Mounted != "" && strings.HasPrefix(in.Dir, in.Mounted+"/")
	})},
	{2, "prefixes match without their slash", "guard", rejects(func(in input) bool {
		return strings.HasPrefix(in.Dir, "/home") || strings.HasPrefix(in.Dir, "/Users")
	})},
	{2, "the path is cleaned first", "guard", func(in input) any {
		if in.Dir != "" {
			in.Dir = path.Clean(in.Dir)
		}
		return real("guard", in)
	}},
	{2, "an empty directory is rejected", "guard", rejects(func(in input) bool { return in.Dir == "" })},
	{2, "backends without a container are guarded too", "guard", func(in input) any {
		in.Container = true
		return real("guard", in)
	}},

	{3, "any string counts", "default", func(in input) any {
		if dir, ok := in.Value.(string); ok && !in.Raises {
			return dir
		}
		return BuiltinDefault
	}},
	{3, "a path below the tilde counts", "default", func(in input) any {
		if dir, ok := in.Value.(string); ok && strings.HasPrefix(dir, "~/") {
			return dir
		}
		return real("default", in)
	}},
	{3, "the tilde does not count", "default", func(in input) any {
		if in.Value == HomeDirectory {
			return BuiltinDefault
		}
		return real("default", in)
	}},
	{3, "/Users counts", "default", func(in input) any {
		if dir, ok := in.Value.(string); ok && strings.HasPrefix(dir, "/Users/") {
			return dir
		}
		return real("default", in)
	}},
	{3, "/home does not count", "default", func(in input) any {
		if dir, ok := in.Value.(string); ok && strings.HasPrefix(dir, "/home/") {
			return BuiltinDefault
		}
		return real("default", in)
	}},
	{3, "what raised counts all the same", "default", func(in input) any {
		in.Raises = false
		return real("default", in)
	}},

	{4, "the tilde is expanded on the host", "start", func(in input) any {
		return strings.Replace(HostStart(in.Setting, in.Declared, in.guard()), HomeDirectory, "/home/host", 1)
	}},
	{4, "a bad setting falls back to the built-in default", "start", func(in input) any {
		if in.guard().Rejects(in.Setting) {
			return BuiltinDefault
		}
		return real("start", in)
	}},

	{5, "the home is not believed in", "guard", func(in input) any {
		in.Home = ""
		return real("guard", in)
	}},
	{5, "a home is believed by its first letters", "guard", passes(func(in input) bool {
		return in.Home != "" && strings.HasPrefix(in.Dir, in.Home)
	})},
	{5, "only the home itself is believed, not what is below", "guard", rejects(func(in input) bool {
		return strings.HasPrefix(in.Dir, "/home/") && path.Clean(in.Dir) != path.Clean(in.Home)
	})},
	{5, "the home itself is not believed, only what is below", "guard", rejects(func(in input) bool {
		return in.Home != "" && path.Clean(in.Dir) == path.Clean(in.Home)
	})},
	{5, "any home is believed once one is declared", "guard", passes(func(in input) bool {
		return in.Home != "" && strings.HasPrefix(in.Dir, "/home/")
	})},
	{5, "the home beats the mounted directory", "guard", passes(func(in input) bool {
		return in.Mounted != "" && in.Home != "" && within(in.Dir, in.Home)
	})},
	{5, "a resolved tilde is no home", "home", func(in input) any {
		in.Resolved = ""
		return real("home", in)
	}},
	{5, "what was resolved beats an absolute default", "home", func(in input) any {
		if in.Resolved != "" {
			in.Declared = HomeDirectory
		}
		return real("home", in)
	}},
	{5, "the built-in default is a home", "home", func(in input) any {
		if in.Declared == BuiltinDefault {
			return BuiltinDefault
		}
		return real("home", in)
	}},

	{6, "the recorded directory beats the workdir", "command", func(in input) any {
		if in.Recorded != "" {
			in.Workdir = ""
		}
		return real("command", in)
	}},
	{6, "the recorded directory is ignored", "command", func(in input) any {
		in.Recorded = ""
		return real("command", in)
	}},
	{6, "the recorded directory is used unguarded", "command", func(in input) any {
		in.Container = false
		return real("command", in)
	}},
	{6, "the recorded directory is guarded without the home", "command", func(in input) any {
		in.Home = ""
		return real("command", in)
	}},

	{7, "a local terminal has a sandbox", "placement", placed(func(in input) (string, Backend) {
		if in.Backend == localBackend {
			in.Backend = "elsewhere"
		}
		return in.Setting, Backend{in.Backend, in.Streams, in.Isolated}
	})},
	{7, "gateway is not obeyed", "placement", placed(func(in input) (string, Backend) {
		return "auto", Backend{in.Backend, in.Streams, in.Isolated}
	})},
	{7, "the setting is compared letter by letter", "placement", placed(func(in input) (string, Backend) {
		if in.Setting != string(PlaceGateway) {
			in.Setting = "auto"
		}
		return in.Setting, Backend{in.Backend, in.Streams, in.Isolated}
	})},
	{7, "no streams are needed", "placement", placed(func(in input) (string, Backend) {
		return in.Setting, Backend{in.Backend, true, in.Isolated}
	})},
	{7, "streams do not help", "placement", placed(func(in input) (string, Backend) {
		return in.Setting, Backend{in.Backend, false, in.Isolated}
	})},
	{7, "the refusal does not name the backend", "placement", silent("acme")},
	{7, "the refusal does not name the way out", "placement", silent("bot_desktop.placement: gateway")},

	{8, "isolation is ignored", "placement", placed(func(in input) (string, Backend) {
		return in.Setting, Backend{in.Backend, in.Streams, false}
	})},
	{8, "isolation forbids the gateway too", "placement", func(in input) any {
		p := Resolve(in.Setting, Backend{in.Backend, in.Streams, in.Isolated})
		if in.Isolated && p.Where == PlaceGateway {
			return Placement{PlaceRefused, "plugins.isolation"}
		}
		return p
	}},
	{8, "the refusal does not name plugins.isolation", "placement", silent("plugins.isolation")},
	{8, "a placeholder's literal tilde is a home", "home", func(in input) any {
		if in.Resolved == HomeDirectory {
			return HomeDirectory
		}
		return real("home", in)
	}},
}

// passes is a guard that accepts what which describes.
func passes(which func(input) bool) func(input) any {
	return func(in input) any { return !which(in) && in.guard().Rejects(in.Dir) }
}

// rejects is a guard that refuses what which describes.
func rejects(which func(input) bool) func(input) any {
	return func(in input) any { return which(in) || in.guard().Rejects(in.Dir) }
}

// placed decides after something else than what it was given.
func placed(altered func(input) (string, Backend)) func(input) any {
	return func(in input) any { return Resolve(altered(in)) }
}

// silent leaves a word out of the reason.
func silent(word string) func(input) any {
	return func(in input) any {
		p := Resolve(in.Setting, Backend{in.Backend, in.Streams, in.Isolated})
		p.Reason = strings.ReplaceAll(p.Reason, word, "…")
		return p
	}
}

// Every rule, broken in each of these ways, has a vector of that rule that fails.
func TestVectorsNoticeBrokenRules(t *testing.T) {
	all := readVectors(t)
	perRule := map[int]int{}
	for _, m := range mutants {
		perRule[m.rule]++
		var noticed []string
		for file, vs := range all {
			for _, v := range vs {
				if v.Rule == m.rule && v.Do == m.do && !holds(t, v, m.answer) {
					noticed = append(noticed, file+"/"+v.Name)
				}
			}
		}
		if len(noticed) == 0 {
			t.Errorf("rule %d: no vector of it fails when %s", m.rule, m.broken)
			continue
		}
		slices.Sort(noticed)
		t.Logf("rule %d: %s: %d vectors fail, such as %q", m.rule, m.broken, len(noticed), noticed[0])
	}
	for rule := 1; rule <= 8; rule++ {
		if perRule[rule] < 2 {
			t.Errorf("rule %d is broken in %d ways, want 2 at least", rule, perRule[rule])
		}
	}
}

// holds reports whether a vector is content with an answer.
func holds(t *testing.T, v vector, answer func(input) any) bool {
	t.Helper()
	var in input
	if err := json.Unmarshal(v.In, &in); err != nil {
		t.Fatal(err)
	}
	got := answer(in)
	if p, ok := got.(Placement); ok {
		return placementFault(t, v, p) == ""
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	return sameJSON(t, text, v.Want)
}
