//go:build unix

package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// rawClient speaks to a Server with bulk as it is.
type rawClient struct {
	t     *testing.T
	in    io.WriteCloser
	out   *bufio.Reader
	ended chan error
}

func serveBytes(t *testing.T) *rawClient {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &rawClient{t, inW, bufio.NewReader(outR), make(chan error, 1)}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	go func() {
		err := (&Server{Provider: &localProvider{home: t.TempDir()}}).Serve(ctx, inR, outW)
		_ = outW.Close()
		c.ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		_ = inW.Close()
		_ = outR.Close()
	})
	c.line() // hello
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":1,"raw":true}}`)
	if l := c.line(); l.Result["raw"] != true {
		t.Fatalf("initialize: %+v", l)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"create","params":{"config":{"name":"box"},"cwd":"~"}}`)
	if l := c.line(); l.Error != nil {
		t.Fatalf("create: %+v", l.Error)
	}
	return c
}

func (c *rawClient) send(line string, bytes ...byte) {
	c.t.Helper()
	if _, err := c.in.Write(append([]byte(line+"\n"), bytes...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) line() (l line) {
	c.t.Helper()
	text, err := c.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		c.t.Fatalf("%q: %v", text, err)
	}
	return l
}

func rawInput(call, n int, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"stdin","params":{"call":%d,"raw":%d%s}}`, call, n, more)
}

// Every byte there is goes in and comes out, lines' ends among them, in pieces that do not fit one another.
func TestRawBothWays(t *testing.T) {
	c := serveBytes(t)
	want := make([]byte, 900_001)
	for i := range want {
		want[i] = byte(i * i >> 3)
	}
	c.send(`{"jsonrpc":"2.0","id":5,"method":"execute","params":{"env":"e1","argv":["/bin/cat"],"stream_stdin":true,"window":1048576}}`)
	go func() {
		left := want
		for n := 1; len(left) > 0; n = n*3 + 1 {
			piece := left[:min(n, len(left), MaxRaw)]
			left = left[len(piece):]
			more := ""
			if len(left) == 0 {
				more = `,"eof":true`
			}
			if n == 4 { // as an encoder may write it that puts spaces
				_, _ = fmt.Fprintf(c.in, "{\"method\": \"stdin\", \"jsonrpc\": \"2.0\", \"params\": {\"raw\": %d, \"call\": 5}}\n%s", len(piece), piece)
				continue
			}
			_, _ = c.in.Write(append([]byte(rawInput(5, len(piece), more)+"\n"), piece...))
		}
	}()
	var got []byte
	for {
		l := c.line()
		switch {
		case l.Method == methodOutput:
			piece := make([]byte, l.Params.Raw)
			if len(piece) == 0 || len(piece) > MaxRaw {
				t.Fatalf("a piece of %d bytes", len(piece))
			}
			if _, err := io.ReadFull(c.out, piece); err != nil {
				t.Fatal(err)
			}
			got = append(got, piece...)
		case l.Method == "" && string(l.ID) == "5":
			if got = append(got, l.output(t)...); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes came back of %d, or others", len(got), len(want))
			}
			return
		}
	}
}

// Raw bytes for nobody are bytes all the same: what follows them is the next line.
func TestRawForACallThatIsOver(t *testing.T) {
	c := serveBytes(t)
	lost := []byte("{\"jsonrpc\":\n\n\n\"2.0\"")
	c.send(rawInput(99, len(lost), ""), lost...)
	c.send(`{"jsonrpc":"2.0","id":5,"method":"execute","params":{"env":"e1","command":"echo on"}}`)
	if l := c.line(); string(l.ID) != "5" || l.output(t) != "on\n" {
		t.Fatalf("%+v", l)
	}
}

// After more than can be, where the next line begins is anybody's guess.
func TestRawBeyondTheLimitEndsTheConnection(t *testing.T) {
	for _, n := range []int{MaxRaw + 1, -1} {
		c := serveBytes(t)
		c.send(rawInput(99, n, ""))
		if err := <-c.ended; err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "raw bytes were announced") {
			t.Errorf("%d: %v", n, err)
		}
	}
}
