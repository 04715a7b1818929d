//go:build unix

package rpc

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
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
		"create bad config":     {head + `"method":"create","params":{"config":{"name":"a b","pids":-1,"network":"host"}}}`, "5", -32602, "network: "},
		"create cpus a string":  {head + `"method":"create","params":{"config":{"cpus":"many"}}}`, "5", -32602, "config.cpus: must be a number"},
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
			map[string]any{"key": "pids", "problem": "-1 must be 0 (no limit) or a positive number"},
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

func TestGreeting(t *testing.T) {
	c := serveRaw(t, nil)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"probe"}`)
	if l, _ := c.answer("1"); l.Error == nil || l.Error.Code != -32600 {
		t.Errorf("a request before initialize: %+v", l)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocol":2}}`)
	l, _ := c.answer("2")
	if l.Error == nil || l.Error.Code != -32600 || l.Error.Data["server"] != 1.0 || l.Error.Data["client"] != 2.0 {
		t.Errorf("another protocol: %+v", l.Error)
	}
	c.send(`{"jsonrpc":"2.0","id":3,"method":"probe"}`)
	if l, _ := c.answer("3"); l.Error == nil || l.Error.Code != -32600 {
		t.Errorf("a request after a failed initialize: %+v", l)
	}
	c.send(`{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocol":1,"later":[1]},"later":{}}`)
	if l, _ := c.answer("4"); l.Error != nil || l.Result["protocol"] != 1.0 || l.Result["version"] != "1.2.3" {
		t.Errorf("initialize: %+v %+v", l.Result, l.Error)
	}
	c.send(`{"jsonrpc":"2.0","id":5,"method":"probe"}`)
	if l, _ := c.answer("5"); l.Result["status"] != "ready" {
		t.Errorf("probe: %+v", l)
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

// A short command costs one line, whatever the window.
func TestShortCommandIsOneLine(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	lines := 0
	const runs = 50
	for id := 10; id < 10+runs; id++ {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"execute","params":{"env":"e1","argv":["/bin/echo","hi"],"window":65536}}`, id))
		l, before := c.answer(strconv.Itoa(id))
		var got []byte
		for _, b := range before {
			got = append(got, b.Params.Data...)
		}
		if got = append(got, l.output(t)...); string(got) != "hi\n" {
			t.Fatalf("output %q", got)
		}
		lines += 1 + len(before)
	}
	// A process that is descheduled between its output and its end may take longer than the hold.
	if lines > runs+runs/2 {
		t.Errorf("%d short commands took %d lines", runs, lines)
	}
}

// Output of a command that goes on is not held back.
func TestOutputArrivesWhileTheCommandRuns(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	c.send(`{"jsonrpc":"2.0","id":5,"method":"execute","params":{"env":"e1","command":"while read x; do echo \"<$x>\"; done","stream_stdin":true,"window":65536}}`)
	for i := range 20 {
		word := fmt.Sprintf("w%d", i)
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"stdin","params":{"call":5,"data":%q}}`, base64.StdEncoding.EncodeToString([]byte(word+"\n"))))
		if l := c.next(); l.Method != "output" || string(l.Params.Data) != "<"+word+">\n" {
			t.Fatalf("answer to %s: %+v", word, l)
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"stdin","params":{"call":5,"data":"","eof":true}}`)
	if l, before := c.answer("5"); l.Result["returncode"] != 0.0 || len(before) > 0 {
		t.Fatalf("end: %+v, before it %+v", l, before)
	}
}

// Without credit a command stops at its window, whatever it has to say, and holds up nobody else.
func TestWindowIsNeverExceeded(t *testing.T) {
	const window = 128 << 10
	c := serveRaw(t, nil)
	c.open()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"execute","params":{"env":"e1","command":"head -c 3000000 /dev/zero","window":%d}}`, window))
	got, owed := 0, 0
	for owed < window {
		l := c.next()
		if l.Method != "output" || len(l.Params.Data) > MaxChunk {
			t.Fatalf("unexpected %s of %d bytes: %+v", l.Method, len(l.Params.Data), l.Error)
		}
		owed += len(l.Params.Data)
	}
	if owed > window {
		t.Fatalf("%d bytes are under way with a window of %d", owed, window)
	}
	got = owed
	// Stuck on its window, the call is silent, and another one runs.
	c.send(`{"jsonrpc":"2.0","id":6,"method":"execute","params":{"env":"e1","command":"echo other"}}`)
	if l := c.next(); string(l.ID) != "6" || l.Result["output"] != "b3RoZXIK" {
		t.Fatalf("next line is %+v, want the answer of the other call", l)
	}
	// More than was sent does not widen the window.
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"credit","params":{"call":5,"bytes":%d}}`, 100*window))
	owed = 0
	for {
		l := c.next()
		if l.Method == "" {
			if got += len(l.output(t)); got != 3000000 {
				t.Fatalf("%d bytes in all", got)
			}
			return
		}
		got += len(l.Params.Data)
		if owed += len(l.Params.Data); owed > window {
			t.Fatalf("%d bytes are under way with a window of %d", owed, window)
		}
		if owed == window {
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"credit","params":{"call":5,"bytes":%d}}`, owed))
			owed = 0
		}
	}
}

// A killed command ends although the client gives no credit: by cancel, and by the command's own deadline. The client of a stream has
// the flags and says in its own words what happened.
func TestKillDoesNotWaitForCredit(t *testing.T) {
	for name, tc := range map[string]struct {
		params, cause string
		code          float64
		flag          string
	}{
		"interrupt": {"", "interrupt", 130, "interrupted"},
		"timeout":   {"", "timeout", 124, "timed_out"},
		"deadline":  {`,"timeout_ms":300`, "", 124, "timed_out"},
		"other":     {"", "because", 130, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serveRaw(t, nil)
			c.open()
			c.send(`{"jsonrpc":"2.0","id":5,"method":"execute","params":{"env":"e1","command":"yes","window":65536` + tc.params + `}}`)
			if l := c.next(); l.Method != "output" {
				t.Fatalf("got %+v", l)
			}
			if tc.cause != "" {
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"cancel","params":{"call":5,"cause":%q}}`, tc.cause))
			}
			l, _ := c.answer("5")
			if l.Error != nil || l.Result["returncode"] != tc.code || l.Result[tc.flag] != true {
				t.Fatalf("got %v %v %+v", l.Result["returncode"], l.Result[tc.flag], l.Error)
			}
			out := l.output(t)
			if strings.Contains(out, "[") {
				t.Fatalf("output ends %q", out[max(0, len(out)-60):])
			}
			if len(out) > maxReleased {
				t.Errorf("%d bytes were kept for a client that reads nothing", len(out))
			}
		})
	}
}

// Output that is sent whole says itself that the command was killed.
func TestKilledWithoutWindow(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	c.send(`{"jsonrpc":"2.0","id":5,"method":"execute","params":{"env":"e1","command":"printf so; sleep 60","timeout_ms":200}}`)
	l, before := c.answer("5")
	if out := l.output(t); len(before) > 0 || out != "so\n[Command timed out after 200ms]" {
		t.Fatalf("got %q %+v", out, before)
	}
	c.send(`{"jsonrpc":"2.0","id":6,"method":"execute","params":{"env":"e1","command":""}}`)
	if l, _ := c.answer("6"); l.Result["returncode"] != 0.0 || l.Result["output"] != "" {
		t.Fatalf("an empty command: %+v %+v", l.Result, l.Error)
	}
}

func TestInputCredit(t *testing.T) {
	t.Run("a reader is fed again", func(t *testing.T) {
		c := serveRaw(t, nil)
		c.open()
		c.send(`{"jsonrpc":"2.0","id":5,"method":"execute","params":{"env":"e1","command":"wc -c","stream_stdin":true}}`)
		chunk := base64.StdEncoding.EncodeToString(make([]byte, MaxChunk))
		left, sent := InputWindow, 0
		for sent < 4<<20 {
			for left >= MaxChunk {
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"stdin","params":{"call":5,"data":%q}}`, chunk))
				left, sent = left-MaxChunk, sent+MaxChunk
			}
			if l := c.next(); l.Method != "credit" || l.Params.Call != 5 {
				t.Fatalf("got %+v", l)
			} else {
				left += int(l.Params.Bytes)
			}
		}
		c.send(`{"jsonrpc":"2.0","method":"stdin","params":{"call":5,"eof":true}}`)
		l, _ := c.answer("5")
		if out := l.output(t); strings.TrimSpace(out) != strconv.Itoa(sent) {
			t.Fatalf("the command counted %s, %d were sent", out, sent)
		}
	})
	t.Run("more than the credit ends the call", func(t *testing.T) {
		c := serveRaw(t, nil)
		c.open()
		c.send(`{"jsonrpc":"2.0","id":5,"method":"execute","params":{"env":"e1","command":"sleep 60","stream_stdin":true}}`)
		chunk := base64.StdEncoding.EncodeToString(make([]byte, MaxChunk))
		// A pipe takes 64 KiB and a copier holds some: twice the window cannot have been consumed.
		for range 2 * InputWindow / MaxChunk {
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"stdin","params":{"call":5,"data":%q}}`, chunk))
		}
		if l, _ := c.answer("5"); l.Error == nil || l.Error.Code != -32602 || !strings.Contains(l.Error.Message, "without credit") {
			t.Fatalf("got %+v %+v", l.Result, l.Error)
		}
	})
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

func TestFetch(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	src := filepath.Join(t.TempDir(), "src")
	if err := os.WriteFile(src, []byte("12345\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	dest := filepath.Join(dir, "dest")
	fetch := func(id int, path, dest string, limit int) line {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"fetch","params":{"env":"e1","path":%s,"dest":%s,"max_bytes":%d}}`, id, quoted(path), quoted(dest), limit))
		l, _ := c.answer(strconv.Itoa(id))
		return l
	}
	left := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if l := fetch(5, src, dest, 5); l.Error == nil || l.Error.Data["problem"] != "too large" {
		t.Errorf("above the limit: %+v", l)
	}
	if l := fetch(6, src+"-not", dest, 0); l.Error == nil || l.Error.Code != -32001 {
		t.Errorf("missing: %+v", l)
	}
	if n := left(); len(n) != 0 {
		t.Fatalf("failures left %v", n)
	}
	for id, limit := range []int{6, 0} {
		if l := fetch(10+id, src, dest, limit); l.Error != nil || l.Result["bytes"] != 6.0 {
			t.Errorf("limit %d: %+v %+v", limit, l.Result, l.Error)
		}
	}
	if b, err := os.ReadFile(dest); err != nil || string(b) != "12345\xff" {
		t.Errorf("dest holds %q, %v", b, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sub", "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if l := fetch(20, src, filepath.Join(dir, "sub"), 0); l.Error == nil || l.Error.Code != -32001 {
		t.Errorf("onto a directory: %+v", l)
	}
	if n := left(); len(n) != 2 {
		t.Errorf("the directory holds %v, want dest and sub", n)
	}
}

func TestCleanupTwiceAndAtTheEnd(t *testing.T) {
	c := serveRaw(t, nil)
	c.open()
	c.send(`{"jsonrpc":"2.0","id":3,"method":"create","params":{"config":{"name":"gone","persistent":false}}}`)
	c.answer("3")
	c.send(`{"jsonrpc":"2.0","id":4,"method":"create","params":{"config":{"name":"third"}}}`)
	c.answer("4")
	for _, id := range []string{"5", "6"} {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"cleanup","params":{"env":"e3","remove":true}}`)
		if l, _ := c.answer(id); l.Error != nil || l.Result == nil {
			t.Fatalf("cleanup: %+v", l)
		}
	}
	if n := c.provider.cleaned.Load(); n != 1 {
		t.Errorf("the sandbox was cleaned %d times", n)
	}
	c.send(`{"jsonrpc":"2.0","id":7,"method":"execute","params":{"env":"e3","command":"true"}}`)
	if l, _ := c.answer("7"); l.Error == nil || l.Error.Code != -32602 {
		t.Errorf("a handle after cleanup: %+v", l)
	}
	c.send(`{"jsonrpc":"2.0","id":8,"method":"execute","params":{"env":"e1","command":"sleep 60"}}`)
	start := time.Now()
	c.end()
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("the end took %s although a command can be killed at once", d)
	}
	if cleaned, removed := c.provider.cleaned.Load(), c.provider.removed.Load(); cleaned != 3 || removed != 2 {
		t.Errorf("%d sandboxes let go and %d removed, want 3 and 2: the persistent one stays", cleaned, removed)
	}
}

func TestWarn(t *testing.T) {
	c := serveRaw(t, nil)
	if !c.server.Warn("limits cannot be honoured") {
		t.Fatal("no client was told")
	}
	if l := c.next(); l.Method != "warning" || l.Params.Text != "limits cannot be honoured" {
		t.Fatalf("got %+v", l)
	}
	c.end()
	if c.server.Warn("nobody") {
		t.Error("a client that is gone was told")
	}
}
