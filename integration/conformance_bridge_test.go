//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// bridge is Hermes in another process as a contract.Provider: see pytests/conformance/bridge.py.
type bridge struct {
	out        io.Writer
	attributes struct {
		Name       string
		DefaultCwd string `json:"default_cwd"`
		Streams    bool
	}

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	err     error // why the process is gone
}

// reply is a line of the bridge.
type reply struct {
	ID     int
	Result json.RawMessage
	Error  *struct{ Kind, Reason, Hint string }
}

var _ contract.Provider = (*bridge)(nil)

// newBridge starts Hermes in home and ends it with the test.
func newBridge(t *testing.T, home *hermesHome) *bridge {
	t.Helper()
	script, err := filepath.Abs("pytests/conformance/bridge.py")
	if err != nil {
		t.Fatal(err)
	}
	command := home.command(context.Background(), home.python, "-u", script)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	b := &bridge{out: stdin, waiting: map[int]chan reply{}}
	read := make(chan struct{})
	go func() { defer close(read); b.read(stdout) }()
	t.Cleanup(func() {
		_ = stdin.Close()
		<-read
		if err := command.Wait(); err != nil {
			t.Errorf("the bridge: %v\n%s", err, tail(log.Bytes()))
		}
	})
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.ask(ctx, "attributes", nil, &b.attributes); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bridge) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20)
	err := io.EOF
	for lines.Scan() {
		var r reply
		if err = json.Unmarshal(lines.Bytes(), &r); err != nil {
			break
		}
		b.mu.Lock()
		ch := b.waiting[r.ID]
		delete(b.waiting, r.ID)
		b.mu.Unlock()
		if ch != nil {
			ch <- r
		}
		err = io.EOF
	}
	_, _ = io.Copy(io.Discard, from) // the process must not wait for us
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = fmt.Errorf("the bridge ended: %w", errors.Join(lines.Err(), err))
	for id, ch := range b.waiting {
		delete(b.waiting, id)
		close(ch)
	}
}

// send writes a request and returns its number and where the answer comes.
func (b *bridge) send(op string, params map[string]any) (int, <-chan reply, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, nil, b.err
	}
	b.next++
	line := map[string]any{"id": b.next, "op": op}
	for k, v := range params {
		line[k] = v
	}
	text, err := json.Marshal(line)
	if err != nil {
		return 0, nil, err
	}
	ch := make(chan reply, 1)
	b.waiting[b.next] = ch
	_, err = b.out.Write(append(text, '\n'))
	return b.next, ch, err
}

// ask makes a request and waits for its answer. When ctx ends first the command is interrupted, and the answer still awaited.
func (b *bridge) ask(ctx context.Context, op string, params map[string]any, result any) error {
	id, ch, err := b.send(op, params)
	if err != nil {
		return err
	}
	var r reply
	ok := false
	select {
	case r, ok = <-ch:
	case <-ctx.Done():
		if _, _, err := b.send("interrupt", map[string]any{"call": id}); err != nil {
			return err
		}
		r, ok = <-ch
	}
	switch {
	case !ok:
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.err
	case r.Error == nil && result == nil:
		return nil
	case r.Error == nil:
		return json.Unmarshal(r.Result, result)
	case r.Error.Kind == "backend":
		return &contract.BackendError{Reason: r.Error.Reason, Hint: r.Error.Hint}
	case r.Error.Kind == "file":
		return fileFault(params["path"], r.Error.Reason)
	default:
		return errors.New(r.Error.Reason)
	}
}

// fileFault reads what Hermes's exception says: the path and the problem in one sentence.
func fileFault(path any, reason string) error {
	name := fmt.Sprint(path)
	problem := strings.TrimPrefix(reason, name+": ")
	if problem == "too large" {
		return fmt.Errorf("%s: %w", name, contract.ErrTooLarge)
	}
	return &contract.FileError{Path: name, Problem: problem}
}

func (b *bridge) Name() string          { return b.attributes.Name }
func (b *bridge) DefaultCwd() string    { return b.attributes.DefaultCwd }
func (b *bridge) SupportsStreams() bool { return b.attributes.Streams }

func (b *bridge) Probe(ctx context.Context) contract.Health {
	var h contract.Health
	if err := b.ask(ctx, "probe", nil, &h); err != nil {
		return contract.Health{Status: contract.Unavailable, Detail: err.Error(), Hint: "look at the test"}
	}
	return h
}

func (b *bridge) CreateEnvironment(ctx context.Context, cfg contract.Config, cwd string) (contract.Environment, error) {
	if want := contract.Defaults(); cfg.CPUs != want.CPUs || cfg.PIDs != want.PIDs || cfg.Network != want.Network {
		return nil, errors.ErrUnsupported
	}
	var made struct {
		Env                          int
		Name, Image, User, Home, Cwd string
		TempDir                      string `json:"temp_dir"`
		ContainerID                  string `json:"container_id"`
		Created                      bool
	}
	params := map[string]any{"task": cfg.Name, "cwd": cwd, "persistent": cfg.Persistent}
	if err := b.ask(context.WithoutCancel(ctx), "create", params, &made); err != nil {
		return nil, err
	}
	return &hermesEnvironment{bridge: b, id: made.Env, info: contract.Info{
		Name: made.Name, ContainerID: made.ContainerID, Image: made.Image, User: made.User, Home: made.Home, Cwd: made.Cwd,
		TempDir: made.TempDir, Created: made.Created,
	}}, nil
}
