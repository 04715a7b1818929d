//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

// badLine is a line that a client should not send, and the answer.
type badLine struct {
	name, line string
	// code and message are the answer's error. id is the answer's, "null" when it is empty.
	code    int
	message string
	id      string
	// data is the answer's as JSON, "" for none.
	data string
}

// settings is a create with that configuration. Its faults are data as well as message.
func settings(name, config string, faults ...string) badLine {
	type fault struct {
		Key     string `json:"key"`
		Problem string `json:"problem"`
	}
	var listed []fault
	for _, text := range faults {
		key, problem, _ := strings.Cut(text, ": ")
		listed = append(listed, fault{key, problem})
	}
	data, err := json.Marshal(map[string]any{"kind": "config", "faults": listed})
	if err != nil {
		panic(err)
	}
	return badLine{
		name: name, line: `{"jsonrpc":"2.0","id":7,"method":"create","params":{"config":` + config + `}}`,
		id: "7", code: -32602, message: strings.Join(faults, "; "), data: string(data),
	}
}

// parameter is a request with one wrong parameter.
func parameter(name, method, params, fault string) badLine {
	l := settings(name, "{}", fault)
	l.line = fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params)
	return l
}

// badLines are asked of one server after another, each followed by a request that has to be answered.
func badLines() []badLine {
	const unknownHandle = `env: "e99" is not a living handle of this connection`
	return []badLine{
		{name: "no JSON", line: `{"jsonrpc":`, code: -32700, message: "line is not JSON: unexpected end of JSON input"},
		{name: "words", line: `hello there`, code: -32700, message: "line is not JSON: invalid character 'h' looking for beginning of value"},
		{name: "a line above the limit", line: strings.Repeat("x", 97<<20), code: -32700, message: "line is longer than 96 MiB"},
		{name: "a list", line: `[]`, code: -32600, message: "line is not a JSON-RPC message: it must be an object, not a JSON array"},
		{name: "a method that is a number", line: `{"jsonrpc":"2.0","id":7,"method":5}`, code: -32600, message: "line is not a JSON-RPC message: method must be a string, not a JSON number"},
		{name: "another version of JSON-RPC", line: `{"jsonrpc":"1.0","id":7,"method":"probe"}`, id: "7", code: -32600, message: `jsonrpc must be "2.0"`},
		{name: "no method", line: `{"jsonrpc":"2.0","id":7}`, id: "7", code: -32600, message: "method is missing"},
		{name: "an id that is text", line: `{"jsonrpc":"2.0","id":"x","method":"probe"}`, id: `"x"`, code: -32600, message: "id must be a whole number above 0"},
		{name: "an unknown method", line: `{"jsonrpc":"2.0","id":7,"method":"frob"}`, id: "7", code: -32601, message: `method "frob" is unknown`},

		parameter("params that are a list", "execute", `[]`, "params: must be an object, not a JSON array"),
		parameter("a command that is a number", "execute", `{"env":"e1","command":5}`, "command: must be a string, not a JSON number"),
		parameter("words that are one word", "execute", `{"env":"e1","argv":"ls"}`, "argv: must be an array, not a JSON string"),
		parameter("a time-out that is text", "execute", `{"env":"e1","command":"ls","timeout_ms":"2s"}`, "timeout_ms: must be a whole number, not a JSON string"),
		parameter("no command", "execute", `{"env":"e1"}`, "command: exactly one of command, command_b64 and argv must be given"),
		parameter("a handle nobody gave", "execute", `{"env":"e99","command":"ls"}`, unknownHandle),
		parameter("a prefix of a handle nobody gave", "exec_prefix", `{"env":"e99"}`, unknownHandle),
		parameter("a path of a handle nobody gave", "realpath", `{"env":"e99","path":"/"}`, unknownHandle),
		parameter("a file to nowhere", "fetch", `{"env":"e1","path":"/f","dest":"here"}`, "dest: must be an absolute path on this machine"),

		settings("a configuration that is text", `"box"`, `config: "box" must be an object`),
		settings("a setting nobody knows", `{"name":"b","memroy_mb":5}`, "memroy_mb: is no setting of dockerbox {version}: correct its name, or update dockerbox if its client is newer"),
		settings("every setting of a wrong type", `{"name":5,"profile":[],"task":{},"image":1,"user":true,"cpus":"many","memory_mb":"12x","pids":[],"disk_mb":{},"shm_bytes":"lots","network":1,"security":2,`+
			`"env":"A=1","forward_env":"A","mounts":"/a:/b","extra_args":{},"persistent":"yes","given":"cpus","recreate":1,"adapt":"no"}`,
			"name: 5 must be text", "profile: [] must be text", "task: {} must be text", "image: 1 must be text", "user: true must be text",
			`cpus: "many" must be a number of cores`, `memory_mb: "12x" must be a whole number of MB`, "pids: [] must be a whole number of processes", "disk_mb: {} must be a whole number of MB",
			`shm_bytes: "lots" must be a size such as 512m or 1g, or a whole number of bytes`, "network: 1 must be text", "security: 2 must be text",
			`env: "A=1" must be a map of names to texts`, `forward_env: "A" must be a list of texts`, `mounts: "/a:/b" must be a list of texts`, "extra_args: {} must be a list of texts",
			`persistent: "yes" must be true or false`, `given: "cpus" must be a list of texts`, "recreate: 1 must be true or false", `adapt: "no" must be true or false`),
		settings("flags of docker that are refused", `{"name":"b","extra_args":["--privileged","--frob","-p","80:80","--ulimit","foo"]}`,
			"extra_args: --privileged: a privileged container is no sandbox; --cap-add and --device give single rights",
			"extra_args: --frob is no flag of docker run that dockerbox knows", "extra_args: --publish: ports are not published",
			`extra_args: --ulimit: "foo" must be NAME=SOFT or NAME=SOFT:HARD, NAME one that docker knows, such as nofile`),
		settings("flags of docker that undo a hardened sandbox", `{"name":"b","security":"hardened","extra_args":["--privileged","--cap-add=NET_ADMIN","--device","/dev/kvm","--cap-drop","ALL"]}`,
			"extra_args: --privileged: a privileged container is no sandbox; --cap-add and --device give single rights",
			"extra_args: --cap-add: a hardened sandbox has no capabilities; leave it out, or use security standard (--profile, in Hermes terminal.backends.dockerbox.security)",
			"extra_args: --device: a hardened sandbox has no devices of the machine; leave it out, or use security standard (--profile, in Hermes terminal.backends.dockerbox.security)"),
		settings("values that are wrong", `{"name":"a/b","image":"UPPER","cpus":-1,"memory_mb":1,"pids":1,"disk_mb":-1,"network":"host","env":{"9a":"x"}}`,
			`name: "a/b" `+badName, `image: "UPPER" must be in lower case up to the tag, such as debian:12`, "cpus: -1 "+badCPUs, "memory_mb: 1 MB must be 0 (no limit) or 6 to 1073741824 MB",
			"pids: 1 "+badPIDs, "disk_mb: -1 MB must be 0 (no limit) or 1 to 1073741824 MB", `network: "host" must be "bridge" or "none"`, `env: "9a" is not a variable name`),
	}
}

// server is a `dockerbox serve --stdio` without a daemon.
type server struct {
	t       *testing.T
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  bytes.Buffer
	version string
}

func newServer(t *testing.T) *server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), caseLimit)
	t.Cleanup(cancel)
	s := &server{t: t, command: exec.CommandContext(ctx, dockerboxBinary(t), "serve", "--stdio")}
	s.command.Env = append(s.command.Environ(), "DOCKER_HOST=unix:///nonexistent/docker.sock")
	s.command.Stderr = &s.stderr
	var err error
	if s.in, err = s.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	var hello struct{ Params struct{ Version string } }
	if err := json.Unmarshal([]byte(s.read()), &hello); err != nil || hello.Params.Version == "" {
		t.Fatalf("no greeting: %v", err)
	}
	s.version = hello.Params.Version
	return s
}

// ask sends a line and returns the next one that comes.
func (s *server) ask(line string) string {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
	return s.read()
}

func (s *server) read() string {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatalf("the server ended: %v\n%s", err, s.stderr.Bytes())
	}
	return strings.TrimSuffix(line, "\n")
}

// end closes the input and wants the server to end well and silently.
func (s *server) end() {
	s.t.Helper()
	if err := s.in.Close(); err != nil {
		s.t.Error(err)
	}
	if rest, err := io.ReadAll(s.out); err != nil || len(rest) > 0 {
		s.t.Errorf("%v, and more was answered: %q", err, rest)
	}
	if err := s.command.Wait(); err != nil || s.stderr.Len() > 0 {
		s.t.Errorf("it ended with %v and said %q", err, s.stderr.Bytes())
	}
}

// answers compares an error with what is wanted.
func (s *server) answers(got string, want badLine) {
	s.t.Helper()
	var answer struct {
		ID    json.RawMessage
		Error struct {
			Code    int
			Message string
			Data    json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(got), &answer); err != nil {
		s.t.Fatal(err)
	}
	version := strings.NewReplacer("{version}", s.version)
	message, data, id := version.Replace(want.message), version.Replace(want.data), want.id
	if id == "" {
		id = "null"
	}
	if answer.Error.Code != want.code || answer.Error.Message != message || string(answer.ID) != id {
		s.t.Errorf("id %s, code %d, want %s, %d\n got  %q\n want %q", answer.ID, answer.Error.Code, id, want.code, answer.Error.Message, message)
	}
	if len(answer.Error.Data) > 0 != (data != "") || data != "" && !sameJSON(s.t, string(answer.Error.Data), data) {
		s.t.Errorf("data\n got  %s\n want %s", answer.Error.Data, data)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &values[i]); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

const greet = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":1,"client":{"name":"t","version":"1"}}}`

func TestFailuresOfServe(t *testing.T) {
	s := newServer(t)
	if got := s.ask(greet); !strings.Contains(got, `"result":{"protocol":1,`) {
		t.Fatal(got)
	}
	for _, row := range badLines() {
		t.Run(row.name, func(t *testing.T) {
			s.t = t
			s.answers(s.ask(row.line), row)
			// It goes on.
			if got := s.ask(`{"jsonrpc":"2.0","id":8,"method":"cleanup","params":{"env":"gone"}}`); got != `{"jsonrpc":"2.0","id":8,"result":{}}` {
				t.Errorf("afterwards it answers %q", got)
			}
		})
	}
	s.t = t
	s.end()
}

// badGreetings are first requests that a server does not take; it waits for the right one.
func badGreetings() []badLine {
	return []badLine{
		{
			name: "a newer client", line: strings.Replace(greet, `"protocol":1`, `"protocol":2`, 1), id: "1", code: -32600,
			message: "client speaks protocol 2, dockerbox {version} speaks 1; update the older of the two", data: `{"kind":"protocol","server":1,"client":2}`,
		},
		{
			name: "a client without a version", line: `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, id: "1", code: -32600,
			message: "client speaks protocol 0, dockerbox {version} speaks 1; update the older of the two", data: `{"kind":"protocol","server":1,"client":0}`,
		},
		{name: "no greeting", line: `{"jsonrpc":"2.0","id":1,"method":"probe"}`, id: "1", code: -32600, message: "initialize must be the first request"},
	}
}

func TestFailuresOfTheGreeting(t *testing.T) {
	for _, row := range badGreetings() {
		t.Run(row.name, func(t *testing.T) {
			s := newServer(t)
			s.answers(s.ask(row.line), row)
			if got := s.ask(strings.Replace(greet, `"id":1`, `"id":2`, 1)); !strings.Contains(got, `"id":2,"result":`) {
				t.Errorf("afterwards the right greeting is answered with %q", got)
			}
			s.end()
		})
	}
}

// A daemon that is away is an answer as well: every request that needs it has the two sentences.
func TestFailuresOfServeWithoutADaemon(t *testing.T) {
	const (
		reason = "the docker daemon at unix:///nonexistent/docker.sock does not answer"
		data   = `{"kind":"backend","reason":"` + reason + `","hint":"` + startIt + `"}`
	)
	s := newServer(t)
	s.ask(greet)
	s.answers(s.ask(`{"jsonrpc":"2.0","id":2,"method":"create","params":{"config":{"name":"b"}}}`), badLine{id: "2", code: -32000, message: reason, data: data})
	s.answers(s.ask(`{"jsonrpc":"2.0","id":3,"method":"reap","params":{"profile":"p"}}`), badLine{id: "3", code: -32000, message: reason, data: data})
	if got, want := s.ask(`{"jsonrpc":"2.0","id":4,"method":"probe"}`), `{"jsonrpc":"2.0","id":4,"result":{"status":"unavailable","detail":"`+reason+`","hint":"`+startIt+`"}}`; got != want {
		t.Errorf("probe\n got  %s\n want %s", got, want)
	}
	s.end()
}
