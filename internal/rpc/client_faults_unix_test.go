//go:build unix

package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestClientErrorsKeepTheirKind(t *testing.T) {
	c := connect(t, &localProvider{home: t.TempDir()})
	cfg := contract.Defaults()
	cfg.Image = "missing"
	var backend *contract.BackendError
	if _, err := c.CreateEnvironment(t.Context(), cfg, ""); !errors.As(err, &backend) || backend.Reason != "no such image: missing" || backend.Hint != "pull it" {
		t.Errorf("backend: %#v", err)
	}
	var faults contract.Faults
	if _, err := c.CreateEnvironment(t.Context(), contract.Config{Name: "x", PIDs: -1, Network: "host"}, ""); !errors.As(err, &faults) || len(faults) != 2 {
		t.Errorf("faults: %#v", err)
	}
	env := boxOf(t, c)
	var file *contract.FileError
	if _, err := env.Realpath(t.Context(), "/no/such/file"); !errors.As(err, &file) || file.Path != "/no/such/file" {
		t.Errorf("realpath: %#v", err)
	}
	src := filepath.Join(t.TempDir(), "new\nline")
	if err := os.WriteFile(src, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := env.FetchFile(t.Context(), src, &got, 10); err != nil || got.String() != "0123456789" {
		t.Errorf("fetch: %q, %v", got.String(), err)
	}
	if err := env.FetchFile(t.Context(), src, io.Discard, 9); !errors.Is(err, contract.ErrTooLarge) {
		t.Errorf("fetch above the limit: %#v", err)
	}
	if _, err := env.Execute(t.Context(), contract.Request{Command: "true", Stdout: io.Discard, Stderr: io.Discard}); !errors.As(err, &backend) {
		t.Errorf("stderr of its own: %#v", err)
	}
	for range 2 {
		if err := env.Cleanup(t.Context(), true); err != nil {
			t.Errorf("cleanup: %v", err)
		}
	}
	if _, err := env.Execute(t.Context(), contract.Request{Command: "true"}); !errors.As(err, &backend) || backend.Hint == "" {
		t.Errorf("after cleanup: %#v", err)
	}
}

func TestCancelKillsTheTree(t *testing.T) {
	for name, tc := range map[string]struct {
		cause error
		code  int
	}{"timeout": {contract.ErrTimedOut, 124}, "interrupt": {contract.ErrInterrupted, 130}, "none": {nil, 130}} {
		t.Run(name, func(t *testing.T) {
			env := box(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			pids := make(chan string, 1)
			out := writerFunc(func(p []byte) (int, error) {
				select {
				case pids <- string(p):
				default:
				}
				return len(p), nil
			})
			go func() { <-pids; cancel(tc.cause) }()
			res, err := env.Execute(ctx, contract.Request{Command: "sleep 61 & sleep 61 & echo started; wait", Stdout: out})
			if err != nil || res.ExitCode != tc.code || res.TimedOut != (tc.code == 124) || res.Interrupted != (tc.code == 130) {
				t.Fatalf("%+v, %v", res, err)
			}
		})
	}
	res, err := box(t).Execute(t.Context(), contract.Request{Command: "echo before; sleep 61", Timeout: 50 * time.Millisecond})
	if err != nil || res.ExitCode != 124 || string(res.Output) != "before\n[Command timed out after 50ms]" {
		t.Fatalf("own timeout: %q %+v, %v", res.Output, res, err)
	}
}

// A server that dies, or is none, gives a backend error to everybody who waits.
func TestClientSurvivesItsServer(t *testing.T) {
	var backend *contract.BackendError
	t.Run("dies during a call", func(t *testing.T) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- (&Server{Provider: &localProvider{home: t.TempDir()}}).Serve(t.Context(), inR, outW)
		}()
		c, err := Connect(t.Context(), outR, inW, "t", "0", nil)
		if err != nil {
			t.Fatal(err)
		}
		env := boxOf(t, c)
		out := writerFunc(func(p []byte) (int, error) {
			// The stream breaks under the server while a command runs: it must notice and end.
			return len(p), outR.CloseWithError(errors.New("cut"))
		})
		stdin, hold := io.Pipe()
		defer func() { _ = hold.Close() }()
		if _, err = env.Execute(t.Context(), contract.Request{Command: "yes", Stdin: stdin, Stdout: out}); !errors.As(err, &backend) || backend.Hint == "" {
			t.Errorf("got %v", err)
		}
		if _, err = env.Realpath(t.Context(), "/"); !errors.As(err, &backend) {
			t.Errorf("a later call: %v", err)
		}
		if err := <-served; err == nil {
			t.Error("Serve did not say that the stream broke")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, answer := range map[string]string{
		"nothing":   "",
		"noise":     "Welcome to bash\n",
		"no hello":  `{"jsonrpc":"2.0","method":"warning","params":{"text":"x"}}` + "\n",
		"bad hello": `{"jsonrpc":"2.0","method":"hello","params":{"protocol":"x"}}` + "\n",
		"dies":      `{"jsonrpc":"2.0","method":"hello","params":{"name":"x","protocol":1,"version":"1"}}` + "\n",
		"flood":     `{"jsonrpc":"2.0","method":"hello","params":{"name":"x","protocol":1,"version":"1"}}` + "\nnoise\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Connect(t.Context(), strings.NewReader(answer), discard{}, "t", "0", nil); !errors.As(err, &backend) || backend.Hint == "" {
				t.Fatalf("got %v", err)
			}
		})
	}
	t.Run("another protocol", func(t *testing.T) {
		in, answers := io.Pipe()
		say := func(l string) {
			if _, err := io.WriteString(answers, l+"\n"); err != nil {
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { say(`{"jsonrpc":"2.0","method":"hello","params":{"name":"x","protocol":2,"version":"9"}}`) })
		out := onWrite{func([]byte) {
			wg.Go(func() {
				say(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"client speaks protocol 1, dockerbox 9 speaks 2","data":{"kind":"protocol","server":2,"client":1}}}`)
				if err := answers.Close(); err != nil {
					t.Error(err)
				}
			})
		}}
		_, err := Connect(t.Context(), in, out, "t", "0", nil)
		wg.Wait()
		if err == nil || !strings.Contains(err.Error(), "speaks protocol 1") {
			t.Fatalf("got %v", err)
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (discard) Close() error { return nil }

type onWrite struct{ do func([]byte) }

func (o onWrite) Write(p []byte) (int, error) { o.do(p); return len(p), nil }

func (onWrite) Close() error { return nil }
