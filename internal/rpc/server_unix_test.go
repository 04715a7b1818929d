//go:build unix

package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

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
	// What is no file stays; of a link only the link itself is replaced.
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if l := fetch(21, src, pipe, 0); l.Error == nil || l.Error.Code != -32001 {
		t.Errorf("onto a pipe: %+v", l)
	}
	if st, err := os.Lstat(pipe); err != nil || st.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe is now %v, %v", st, err)
	}
	if err := os.Symlink(filepath.Join(dir, "sub", "f"), link); err != nil {
		t.Fatal(err)
	}
	if l := fetch(22, src, link, 0); l.Error != nil {
		t.Errorf("onto a link: %+v", l.Error)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "sub", "f")); err != nil || len(b) != 0 {
		t.Errorf("what the link named holds %q, %v", b, err)
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

// The end of its context ends a server whose client is still there, and nothing it started is left.
func TestServeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	p := &localProvider{home: t.TempDir()}
	served := make(chan error, 1)
	go func() {
		err := (&Server{Provider: p}).Serve(ctx, in, out)
		served <- errors.Join(err, out.Close())
	}()
	c, err := Connect(t.Context(), fromServer, toServer, "t", "0", nil)
	if err != nil {
		t.Fatal(err)
	}
	env := boxOf(t, c)
	started := make(chan struct{})
	var once sync.Once
	stdout := writerFunc(func(b []byte) (int, error) { once.Do(func() { close(started) }); return len(b), nil })
	go func() { <-started; cancel(contract.ErrInterrupted) }()
	res, err := env.Execute(t.Context(), contract.Request{Command: "echo up; sleep 60", Stdout: stdout})
	if err != nil || res.ExitCode != contract.ExitInterrupted {
		t.Errorf("the command: %+v, %v", res, err)
	}
	if err := <-served; !errors.Is(err, contract.ErrInterrupted) {
		t.Errorf("Serve: %v", err)
	}
	if n := p.cleaned.Load(); n != 1 {
		t.Errorf("%d sandboxes were let go, want 1", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
