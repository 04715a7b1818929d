//go:build unix

package rpc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// What a client does wrong is answered with the right code, and the server goes on.
func TestFaultsAreAnsweredAndSurvived(t *testing.T) {
	const head = `{"jsonrpc":"2.0","id":5,`
	for name, tc := range map[string]struct {
		line string
		id   string // of the answer
		code int
		says string // part of the message
	}{
		"broken JSON":           {`{"jsonrpc":`, "null", -32700, "not JSON"},
		"binary":                {"\x00\xff\xfe", "null", -32700, "not JSON"},
		"two values":            {`{} {}`, "null", -32700, "not JSON"},
		"a number":              {`7`, "null", -32600, "not a JSON-RPC message"},
		"a batch":               {`[{"jsonrpc":"2.0","id":5,"method":"probe"}]`, "null", -32600, "not a JSON-RPC message"},
		"no version":            {`{"id":5,"method":"probe"}`, "5", -32600, "jsonrpc"},
		"version 1":             {`{"jsonrpc":"1.0","id":5,"method":"probe"}`, "5", -32600, "jsonrpc"},
		"no method":             {head + `"params":{}}`, "5", -32600, "method is missing"},
		"method is a number":    {head + `"method":7}`, "null", -32600, "method"},
		"id 0":                  {`{"jsonrpc":"2.0","id":0,"method":"probe"}`, "0", -32600, "above 0"},
		"id negative":           {`{"jsonrpc":"2.0","id":-1,"method":"probe"}`, "-1", -32600, "above 0"},
		"id a string":           {`{"jsonrpc":"2.0","id":"x","method":"probe"}`, `"x"`, -32600, "above 0"},
		"id a fraction":         {`{"jsonrpc":"2.0","id":1.5,"method":"probe"}`, "1.5", -32600, "above 0"},
		"id too big":            {`{"jsonrpc":"2.0","id":1e40,"method":"probe"}`, "1e40", -32600, "above 0"},
		"id an object":          {`{"jsonrpc":"2.0","id":{},"method":"probe"}`, "null", -32600, "above 0"},
		"id null":               {`{"jsonrpc":"2.0","id":null,"method":"nope"}`, "null", -32600, "above 0"},
		"unknown method":        {head + `"method":"fly"}`, "5", -32601, `"fly"`},
		"notification with id":  {head + `"method":"credit","params":{"call":1,"bytes":1}}`, "5", -32601, "credit"},
		"params a string":       {head + `"method":"execute","params":"x"}`, "5", -32602, "params: must be an object"},
		"params an array":       {head + `"method":"execute","params":[1]}`, "5", -32602, "params: must be an object"},
		"window a string":       {head + `"method":"execute","params":{"env":"e1","command":"true","window":"1"}}`, "5", -32602, "window: must be a whole number"},
		"window small":          {head + `"method":"execute","params":{"env":"e1","command":"true","window":65535}}`, "5", -32602, "window: "},
		"argv a string":         {head + `"method":"execute","params":{"env":"e1","argv":"true"}}`, "5", -32602, "argv: must be an array"},
		"argv empty":            {head + `"method":"execute","params":{"env":"e1","argv":[]}}`, "5", -32602, "argv: "},
		"nothing to run":        {head + `"method":"execute","params":{"env":"e1"}}`, "5", -32602, "command: exactly one"},
		"two to run":            {head + `"method":"execute","params":{"env":"e1","command":"true","argv":["true"]}}`, "5", -32602, "command: exactly one"},
		"NUL in command":        {head + `"method":"execute","params":{"env":"e1","command":"a\u0000b"}}`, "5", -32602, "NUL"},
		"not base64":            {head + `"method":"execute","params":{"env":"e1","command_b64":"***"}}`, "5", -32602, "base64"},
		"user with a space":     {head + `"method":"execute","params":{"env":"e1","command":"true","user":"a b"}}`, "5", -32602, "user: "},
		"negative timeout":      {head + `"method":"execute","params":{"env":"e1","command":"true","timeout_ms":-1}}`, "5", -32602, "timeout_ms: "},
		"timeout overflows":     {head + `"method":"execute","params":{"env":"e1","command":"true","timeout_ms":9223372036854775807}}`, "5", -32602, "timeout_ms: "},
		"negative max_output":   {head + `"method":"execute","params":{"env":"e1","command":"true","max_output":-1}}`, "5", -32602, "max_output: "},
		"two inputs":            {head + `"method":"execute","params":{"env":"e1","command":"true","stdin":"","stream_stdin":true}}`, "5", -32602, "stdin: "},
		"unknown handle":        {head + `"method":"execute","params":{"env":"e9","command":"true"}}`, "5", -32602, `env: "e9"`},
		"prefix unknown handle": {head + `"method":"exec_prefix","params":{"env":"e9"}}`, "5", -32602, `env: "e9"`},
		"prefix none":           {head + `"method":"exec_prefix","params":{"env":"e1","user":"nobody-here"}}`, "5", -32000, "no prefix"},
		"realpath of nothing":   {head + `"method":"realpath","params":{"env":"e1","path":""}}`, "5", -32602, "path: "},
		"realpath missing":      {head + `"method":"realpath","params":{"env":"e1","path":"/no/such"}}`, "5", -32001, "/no/such"},
		"fetch missing":         {head + `"method":"fetch","params":{"env":"e1","path":"/no/such","dest":"/tmp/x"}}`, "5", -32001, "/no/such"},
		"fetch dest relative":   {head + `"method":"fetch","params":{"env":"e1","path":"/etc/passwd","dest":"x"}}`, "5", -32602, "dest: "},
		"fetch dest missing":    {head + `"method":"fetch","params":{"env":"e1","path":"/etc/passwd","dest":"/no/such/x"}}`, "5", -32001, "/no/such/x: cannot be written"},
		"fetch negative limit":  {head + `"method":"fetch","params":{"env":"e1","path":"/etc/passwd","dest":"/tmp/x","max_bytes":-1}}`, "5", -32602, "max_bytes: "},
		"deliver nowhere":       {head + `"method":"deliver","params":{"env":"e1","files":[{"source":"/etc/passwd","path":"a"}]}}`, "5", -32602, "dest: "},
		"deliver relative":      {head + `"method":"deliver","params":{"env":"e1","dest":"~","files":[{"source":"passwd","path":"a"}]}}`, "5", -32602, "files: "},
		"deliver to no name":    {head + `"method":"deliver","params":{"env":"e1","dest":"~","files":[{"source":"/etc/passwd"}]}}`, "5", -32602, "files: "},
		"deliver less than 0":   {head + `"method":"deliver","params":{"env":"e1","dest":"~","max_bytes":-1}}`, "5", -32602, "max_bytes: "},
		"deliver no handle":     {head + `"method":"deliver","params":{"env":"e9","dest":"~"}}`, "5", -32602, `env: "e9"`},
		"deliver without agent": {head + `"method":"deliver","params":{"env":"e1","dest":"~","files":[{"source":"/etc/passwd","path":"a"}]}}`, "5", -32000, "the agent in the sandbox"},
		"remove without agent":  {head + `"method":"deliver","params":{"env":"e1","dest":"~","remove":["a"]}}`, "5", -32000, "the agent in the sandbox"},
		"create bad config":     {head + `"method":"create","params":{"config":{"name":"a b","pids":-1,"network":"host"}}}`, "5", -32602, "network: "},
		"create cpus a string":  {head + `"method":"create","params":{"config":{"cpus":"many"}}}`, "5", -32602, `cpus: "many" must be a number of cores`},
		"create unknown key":    {head + `"method":"create","params":{"config":{"memroy":1}}}`, "5", -32602, "memroy: is no setting of dockerbox 1.2.3"},
		"validate bad config":   {head + `"method":"validate","params":{"config":{"memory_mb":"12x","pids":1}}}`, "5", -32602, `memory_mb: "12x" must be a whole number of MB; pids: 1 must be`},
		"create fails":          {head + `"method":"create","params":{"config":{"image":"missing"}}}`, "5", -32000, "no such image"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serveRaw(t, nil)
			c.open()
			c.send(tc.line)
			l, _ := c.answer(tc.id)
			if l.Error == nil || l.Error.Code != tc.code || !strings.Contains(l.Error.Message, tc.says) {
				t.Fatalf("got %+v %+v, want code %d saying %q", l.Result, l.Error, tc.code, tc.says)
			}
			if strings.HasSuffix(l.Error.Message, ".") {
				t.Errorf("message %q ends with a full stop", l.Error.Message)
			}
			c.send(`{"jsonrpc":"2.0","id":6,"method":"execute","params":{"env":"e1","command":"echo on"}}`)
			if l, _ := c.answer("6"); l.Result["output"] != "b24K" {
				t.Fatalf("the server did not go on: %+v %+v", l.Result, l.Error)
			}
		})
	}
}

// The data member of an error is what programs act on.
func TestErrorData(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	for id, tc := range []struct {
		request string
		want    map[string]any
	}{
		{`"method":"create","params":{"config":{"image":"missing"}}`, map[string]any{"kind": "backend", "reason": "no such image: missing", "hint": "pull it"}},
		{`"method":"fetch","params":{"env":"e1","path":"/etc/passwd","dest":"/tmp/x","max_bytes":3}`, map[string]any{"kind": "file", "path": "/etc/passwd", "problem": "too large"}},
		{`"method":"create","params":{"config":{"name":"-","pids":-1}}`, map[string]any{"kind": "config", "faults": []any{
			map[string]any{"key": "name", "problem": `"-" must be 1 to 128 letters, digits, ".", "_", ":" or "-" and begin with a letter or digit`},
			map[string]any{"key": "pids", "problem": "-1 must be 0 (no limit) or at least 64, for the agent and its shells take some themselves"},
		}}},
	} {
		id += 10
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, id, tc.request))
		l, _ := c.answer(strconv.Itoa(id))
		if l.Error == nil || fmt.Sprint(l.Error.Data) != fmt.Sprint(tc.want) {
			t.Errorf("%s: got %+v, want %v", tc.request, l.Error, tc.want)
		}
	}
}

func TestLongLines(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	piece := strings.Repeat("x", 1<<20)
	if _, err := fmt.Fprint(c.w, `{"jsonrpc":"2.0","id":5,"method":"`); err != nil {
		t.Fatal(err)
	}
	for range MaxLine >> 20 {
		if _, err := c.w.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	c.send(`"}`)
	if l, _ := c.answer("null"); l.Error == nil || l.Error.Code != -32700 || !strings.Contains(l.Error.Message, "96 MiB") {
		t.Fatalf("a line above the limit: %+v", l)
	}
	// A long line below the limit is an ordinary one.
	c.send(`{"jsonrpc":"2.0","id":6,"method":"execute","params":{"env":"e1","command":"echo ${#X}","environ":{"X":"a"},"later":"` + strings.Repeat(piece, 4) + `"}}`)
	if l, _ := c.answer("6"); l.Result["output"] != "MQo=" {
		t.Fatalf("a line of 4 MiB: %+v %+v", l.Result, l.Error)
	}
}

func TestDuplicateIDDoesNotAnswerTheCallThatHasIt(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	c.send(`{"jsonrpc":"2.0","id":5,"method":"execute","params":{"env":"e1","command":"read x; echo got $x","stream_stdin":true}}`)
	c.send(`{"jsonrpc":"2.0","id":5,"method":"probe"}`)
	if l := c.next(); string(l.ID) != "null" || l.Error == nil || !strings.Contains(l.Error.Message, "id 5") {
		t.Fatalf("the duplicate: %+v", l)
	}
	c.send(`{"jsonrpc":"2.0","method":"stdin","params":{"call":5,"data":"aGkK"}}`)
	if l, _ := c.answer("5"); l.Result["output"] != "Z290IGhpCg==" {
		t.Fatalf("the first call: %+v", l)
	}
}

func TestRequestsInFlightAreBounded(t *testing.T) {
	c := serveRaw(t, func(s *Server) { s.Limit = 3 })
	c.open()
	for id := 5; id < 8; id++ {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"create","params":{"config":{"image":"slow"}}}`, id))
	}
	c.send(`{"jsonrpc":"2.0","id":8,"method":"probe"}`)
	if l, _ := c.answer("8"); l.Error == nil || l.Error.Code != -32000 || !strings.Contains(l.Error.Message, "the limit is 3") {
		t.Fatalf("one above the limit: %+v", l)
	}
	c.send(`{"jsonrpc":"2.0","method":"cancel","params":{"call":6,"cause":"interrupt"}}`)
	if l, _ := c.answer("6"); l.Error == nil || l.Error.Message != "creation was given up" {
		t.Fatalf("a cancelled create: %+v", l)
	}
	c.send(`{"jsonrpc":"2.0","id":9,"method":"probe"}`)
	if l, _ := c.answer("9"); l.Result["status"] != "ready" {
		t.Fatalf("after one ended: %+v", l)
	}
}

func TestMessagesForCallsThatAreOverAreIgnored(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	for _, method := range []string{"credit", "stdin", "cancel", "nope"} {
		for _, params := range []string{`{"call":2}`, `{"call":999}`, `{"call":"x"}`, `7`, `null`, `{"call":2,"data":"eA==","bytes":-5,"cause":9}`} {
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"execute","params":{"env":"e1","command":"touch ~/ran"}}`)
	c.send("")
	c.send(" \t\r")
	c.send(`{"jsonrpc":"2.0","id":5,"method":"probe"}`)
	if l := c.next(); string(l.ID) != "5" {
		t.Fatalf("something was answered: %+v", l)
	}
	if _, err := os.Stat(filepath.Join(c.provider.home, "ran")); err == nil {
		t.Error("a request without an id was run")
	}
}

// What only the provider knows to be wrong is named together with the rest, under the request's own keys.
func TestProvidersFaultsAreNamedWithTheOthers(t *testing.T) {
	c := serveRaw(t, func(s *Server) { s.Provider = particular{s.Provider} })
	c.open()
	for i, method := range []string{"create", "validate"} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"config":{"memory_mb":[],"extra_args":["--privileged"]}}}`, i+5, method))
		l, _ := c.answer(strconv.Itoa(i + 5))
		const want = "memory_mb: [] must be a whole number of MB; extra_args: --privileged is not taken"
		if l.Error == nil || l.Error.Code != -32602 || l.Error.Message != want {
			t.Errorf("%s: got %+v, want %q", method, l.Error, want)
		}
	}
}

// particular takes no further flags.
type particular struct{ contract.Provider }

func (particular) Check(c contract.Config) contract.Faults {
	faults := c.Validate()
	for _, arg := range c.ExtraArgs {
		faults = append(faults, contract.Fault{Key: "extra-args", Problem: arg + " is not taken"})
	}
	return faults
}

func TestValidateMakesNothing(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	c.send(`{"jsonrpc":"2.0","id":5,"method":"validate","params":{"config":{"image":"missing","memory_mb":512}}}`)
	if l, _ := c.answer("5"); l.Error != nil || len(l.Result) != 0 {
		t.Errorf("got %+v %+v, want an empty result", l.Result, l.Error)
	}
}
