package verify

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// fewestTools is how many tools cua-driver has at least: what computer_use asks for is among them.
const fewestTools = 60

// conversation is what an MCP client says that wants to know the tools.
const conversation = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"dockerbox-verify","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// driver asks cua-driver for its tools, on the screen if there is one.
func (s *sandbox) driver(ctx context.Context, r *Report) error {
	want := fmt.Sprintf("cua-driver mcp lists at least %d tools", fewestTools)
	heard, over := &listener{said: make(chan struct{})}, make(chan struct{})
	defer close(over)
	stdin := io.MultiReader(strings.NewReader(conversation), waiting{heard.said, over})
	var complaints bytes.Buffer
	res, err := s.env.Execute(ctx, contract.Request{
		Argv: []string{"cua-driver", "mcp", "--no-overlay"}, User: s.account, Env: s.display, Timeout: runLimit,
		Stdin: stdin, Stdout: heard, Stderr: &complaints,
	})
	if err != nil {
		return err
	}
	if heard.tools == nil {
		r.expect(false, "cua-driver", ended(words(complaints.Bytes()), res.ExitCode), want)
		return nil
	}
	r.expect(len(heard.tools) >= fewestTools, "cua-driver", fmt.Sprintf("%d tools", len(heard.tools)), want)
	return nil
}

// listener takes what a server says, until it has said its tools. It is written to by one goroutine at a time.
type listener struct {
	line  []byte
	tools []json.RawMessage
	said  chan struct{} // closed when tools are known
}

// maxLine bounds an answer, in bytes; that with the tools is some 100 kB.
const maxLine = 4 << 20

func (l *listener) Write(p []byte) (int, error) {
	lines := bufio.NewReader(bytes.NewReader(p))
	for {
		part, err := lines.ReadSlice('\n')
		if len(l.line)+len(part) > maxLine {
			return 0, errors.New("an answer without an end")
		}
		l.line = append(l.line, part...)
		switch {
		case errors.Is(err, io.EOF):
			return len(p), nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		l.hear(l.line)
		l.line = l.line[:0]
	}
}

// hear keeps the tools if a line has them.
func (l *listener) hear(line []byte) {
	var answer struct {
		ID     json.Number `json:"id"`
		Result struct {
			Tools []json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if l.tools == nil && json.Unmarshal(line, &answer) == nil && answer.ID == "2" {
		l.tools = append([]json.RawMessage{}, answer.Result.Tools...)
		close(l.said)
	}
}

// waiting is at its end when one of the two is closed: a server whose standard input ends goes without a word.
type waiting struct{ one, other <-chan struct{} }

func (w waiting) Read([]byte) (int, error) {
	select {
	case <-w.one:
	case <-w.other:
	}
	return 0, io.EOF
}
