//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// step is a tool call that does not depend on earlier results.
func step(name string, arguments map[string]any) func([]string) toolCall {
	return func([]string) toolCall { return toolCall{name, arguments} }
}

// field reads a field of a tool result, which is a JSON object.
func field(result, name string) any {
	var object map[string]any
	if json.Unmarshal([]byte(result), &object) != nil {
		return nil
	}
	return object[name]
}

// A whole agent run on Hermes as it is: `hermes --yolo -z` with a scripted model in the place of a real one, the plugin installed by
// `dockerbox plugin install`, the tools working in a real sandbox.
func TestAgentRun(t *testing.T) {
	const text = "first line\nsecond: \"quoted\" $HOME ä€\n"
	model := newScriptedModel(t,
		step("terminal", map[string]any{"command": "pwd"}),
		step("terminal", map[string]any{"command": "id -un; echo $HOME; cd /usr/share && export AGENT_RUN=kept"}),
		step("write_file", map[string]any{"path": "/home/pn/work/note.txt", "content": text}),
		step("read_file", map[string]any{"path": "/home/pn/work/note.txt"}),
		step("terminal", map[string]any{"command": "cat /home/pn/work/note.txt; echo \"[$AGENT_RUN]\"; exit 3"}),
		step("terminal", map[string]any{"command": "for i in 1 2 3; do echo tick $i; sleep 0.2; done; exit 5", "background": true}),
		func(results []string) toolCall {
			session, _ := field(results[5], "session_id").(string)
			return toolCall{"process_manage", map[string]any{"action": "wait", "session_id": session, "timeout": 30}}
		},
		func(results []string) toolCall {
			session, _ := field(results[5], "session_id").(string)
			return toolCall{"process_manage", map[string]any{"action": "poll", "session_id": session}}
		},
		step("terminal", map[string]any{"command": "echo before; sleep 300", "timeout": 2}),
		step("terminal", map[string]any{"command": "pgrep -fc '[s]leep 300'; echo still here"}),
	)
	// Deferred tools would be hidden behind a search; the model is to call process_manage by its name.
	home := newHermesHome(t, fmt.Sprintf("model: {provider: custom, base_url: \"%s/v1\", api_key: x, default: scripted}\ntools: {tool_search: {enabled: \"off\"}}\n", model.URL))
	said := home.run(3*time.Minute, home.hermesCLI(), "--yolo", "-z", "go")
	if !strings.Contains(said, "all done") {
		t.Errorf("hermes said %q; want the model's last words", said)
	}
	results := model.told(t)
	if len(results) != 10 {
		t.Fatalf("the model was shown %d tool results, want 10: %q", len(results), results)
	}
	want := func(i int, name string, value any) {
		t.Helper()
		if got := field(results[i], name); got != value {
			t.Errorf("result %d: %s is %v, want %v: %s", i, name, got, value, results[i])
		}
	}
	holds := func(i int, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(results[i], part) {
				t.Errorf("result %d lacks %q: %s", i, part, results[i])
			}
		}
	}
	want(0, "output", "/home/pn")
	want(0, "exit_code", 0.0)
	want(1, "output", "pn\n/home/pn")
	want(2, "error", nil)
	want(2, "verified", true)
	holds(3, "first line", "second:", "ä€")
	want(4, "output", text+"[kept]")
	want(4, "exit_code", 3.0)
	want(5, "error", nil)
	holds(6, "tick 1", "tick 3")
	want(7, "status", "exited")
	want(7, "exit_code", 5.0)
	want(8, "exit_code", 124.0)
	holds(8, "before", "timed out after 2s")
	want(9, "output", "0\nstill here")
}
