//go:build unix

package rpc

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

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
