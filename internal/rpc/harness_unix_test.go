//go:build unix

package rpc

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests: far above what any takes, so that a hang is a failure with a name.
const patience = 30 * time.Second

// line is any message of the server.
type line struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Call  int64  `json:"call"`
		Data  []byte `json:"data"`
		Raw   int    `json:"raw"`
		Bytes int64  `json:"bytes"`
		Text  string `json:"text"`
	} `json:"params"`
	Result map[string]any `json:"result"`
	Error  *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

// raw is the client end of a served connection, at the level of lines.
type raw struct {
	t        *testing.T
	server   *Server
	provider *localProvider
	w        *io.PipeWriter
	r        *io.PipeReader
	lines    chan line
	served   chan error
}

// serveRaw starts a server and takes its hello. At the end of the test the server must have ended without an error.
func serveRaw(t *testing.T, configure func(*Server)) *raw {
	t.Helper()
	p := &localProvider{home: t.TempDir()}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &raw{t: t, provider: p, server: &Server{Provider: p, Version: "1.2.3"}, w: inW, r: outR, lines: make(chan line, 4096), served: make(chan error, 1)}
	if configure != nil {
		configure(c.server)
	}
	go func() {
		err := c.server.Serve(context.Background(), inR, outW)
		c.served <- errors.Join(err, outW.Close())
	}()
	go func() {
		defer close(c.lines)
		r := bufio.NewReader(outR)
		for {
			text, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var l line
			if err := json.Unmarshal(text, &l); err != nil {
				t.Errorf("server wrote %.200q: %v", text, err)
				return
			}
			c.lines <- l
		}
	}()
	t.Cleanup(func() { c.end() })
	if hello := c.next(); hello.Method != "hello" {
		t.Fatalf("first line is %+v, want the hello", hello)
	}
	return c
}

// end closes the server's input and waits for it. Lines it still writes are read.
func (c *raw) end() {
	c.t.Helper()
	if err := c.w.Close(); err != nil {
		c.t.Error(err)
	}
	for deadline := time.After(patience); c.served != nil; {
		select {
		case err := <-c.served:
			if c.served = nil; err != nil {
				c.t.Errorf("Serve: %v", err)
			}
		case <-c.lines:
		case <-deadline:
			c.t.Fatal("Serve did not end after its input did")
		}
	}
	for range c.lines { // until the reading goroutine is gone
		continue
	}
}

func (c *raw) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.w, text+"\n"); err != nil {
		c.t.Fatalf("send %.100q: %v", text, err)
	}
}

func (c *raw) next() line {
	c.t.Helper()
	select {
	case l, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the server's stream ended")
		}
		return l
	case <-time.After(patience):
		c.t.Fatal("no line from the server")
	}
	return line{}
}

// answer returns the next line that answers id, and the notifications before it.
func (c *raw) answer(id string) (line, []line) {
	c.t.Helper()
	var before []line
	for {
		l := c.next()
		if l.Method == "" && string(l.ID) == id {
			return l, before
		}
		before = append(before, l)
	}
}

// output is the output of a result.
func (l line) output(t *testing.T) string {
	t.Helper()
	text, isText := l.Result["output"].(string)
	b, err := base64.StdEncoding.DecodeString(text)
	if !isText || err != nil {
		t.Fatalf("no output in %+v %+v: %v", l.Result, l.Error, err)
	}
	return string(b)
}

// open greets the server and makes sandbox e1.
func (c *raw) open() {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":1,"client":{"name":"t","version":"0"}}}`)
	if l, _ := c.answer("1"); l.Error != nil {
		c.t.Fatalf("initialize: %+v", l.Error)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"create","params":{"config":{"name":"box"},"cwd":"~"}}`)
	l, _ := c.answer("2")
	if l.Error != nil || l.Result["env"] != "e1" {
		c.t.Fatalf("create: %+v %+v", l.Result, l.Error)
	}
}

// connect joins a Client to a Server in process.
func connect(t *testing.T, p contract.Provider) *Client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := (&Server{Provider: p, Version: "1.2.3"}).Serve(context.Background(), inR, outW)
		served <- errors.Join(err, outW.Close())
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := Connect(ctx, outR, inW, "test", "0", func(text string) { t.Logf("warning: %s", text) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return c
}

func quoted(s string) string {
	var b strings.Builder
	if err := json.NewEncoder(&b).Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}
