//go:build unix

package rpc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func box(t *testing.T) contract.Environment {
	t.Helper()
	return boxOf(t, connect(t, &localProvider{home: t.TempDir()}))
}

func boxOf(t *testing.T, p contract.Provider) contract.Environment {
	t.Helper()
	cfg := contract.Defaults()
	env, err := p.CreateEnvironment(t.Context(), cfg, "~")
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// A served provider answers what the provider itself answers.
func TestClientIsTheProvider(t *testing.T) {
	p := &localProvider{home: t.TempDir()}
	c := connect(t, p)
	if c.Name() != p.Name() || c.DefaultCwd() != p.DefaultCwd() || !c.SupportsStreams() || c.Version() != "1.2.3" {
		t.Errorf("name %q, default cwd %q, streams %v, version %q", c.Name(), c.DefaultCwd(), c.SupportsStreams(), c.Version())
	}
	if got, want := c.Probe(t.Context()), p.Probe(t.Context()); got != want {
		t.Errorf("probe: %+v, want %+v", got, want)
	}
	cfg := contract.Defaults()
	cfg.Image = "img"
	served, direct := boxOf(t, c), boxOf(t, p)
	got, want := served.Info(), direct.Info()
	if want.Warnings == nil {
		want.Warnings = []string{} // JSON has no nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("info: %+v, want %+v", got, want)
	}
	for _, req := range []contract.Request{
		{Command: "echo out; echo err >&2; exit 7"},
		{Command: "printf 'a\\xff\\x00b'"},
		{Command: "echo '\xff\xfe' | od -c"},
		{Command: "pwd", Dir: "/"},
		{Command: "pwd", Dir: "/no/such", FallbackDir: ""},
		{Command: "echo $A", Env: map[string]string{"A": "ä b\n$c"}},
		{Argv: []string{"printf", "%s|", "a b", "", "$x", "ü\n"}},
		{Argv: []string{"no-such-program"}},
		{Argv: []string{"/etc"}},
		{Command: "cat", Stdin: strings.NewReader("in\xff")},
		{Command: "true", Stdin: strings.NewReader("")},
		{Command: "seq 1 1000", MaxOutput: 100},
		{Command: "kill -9 $$"},
	} {
		again := req
		if s, ok := req.Stdin.(*strings.Reader); ok {
			copied := *s
			again.Stdin = &copied
		}
		got, err := served.Execute(t.Context(), req)
		want, err2 := direct.Execute(t.Context(), again)
		got.Duration, want.Duration = 0, 0
		if len(got.Output) == 0 && len(want.Output) == 0 {
			got.Output, want.Output = nil, nil
		}
		if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v:\n got %+v, %v\nwant %+v, %v", req, got, err, want, err2)
		}
	}
	argv, err := served.ExecPrefix(t.Context(), "pn", false)
	if want := []string{"/usr/bin/env", "U=pn", "I=false"}; err != nil || !reflect.DeepEqual(argv, want) {
		t.Errorf("prefix: %q, %v", argv, err)
	}
}

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
	if _, err := env.Execute(t.Context(), contract.Request{Command: "true"}); !errors.As(err, &faults) || faults[0].Key != "env" {
		t.Errorf("after cleanup: %#v", err)
	}
}

// hashing counts and hashes what passes.
type hashing struct {
	hash.Hash
	n int
}

func (h *hashing) Write(p []byte) (int, error) { h.n += len(p); return h.Hash.Write(p) }

func TestSixtyFourMegabytesBothWays(t *testing.T) {
	const size = 64 << 20
	env := box(t)
	in, out := &hashing{Hash: sha256.New()}, &hashing{Hash: sha256.New()}
	src := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{1}), size), in)
	start := time.Now()
	res, err := env.Execute(t.Context(), contract.Request{Command: "cat", Stdin: src, Stdout: out})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	t.Logf("64 MiB there and back in %s", time.Since(start))
	if in.n != size || out.n != size || !bytes.Equal(in.Sum(nil), out.Sum(nil)) {
		t.Fatalf("%d bytes went in, %d came out, equal: %v", in.n, out.n, bytes.Equal(in.Sum(nil), out.Sum(nil)))
	}
}

// A consumer that does not read holds up its own command and no other.
func TestSlowConsumerHoldsUpNobodyElse(t *testing.T) {
	env := box(t)
	gate, first := make(chan struct{}), make(chan struct{})
	var once sync.Once
	n := 0
	slow := writerFunc(func(p []byte) (int, error) {
		once.Do(func() { close(first) })
		<-gate
		n += len(p)
		return len(p), nil
	})
	done := make(chan error, 1)
	go func() {
		res, err := env.Execute(t.Context(), contract.Request{Command: "head -c 8000000 /dev/zero", Stdout: slow})
		if err == nil && res.ExitCode != 0 {
			err = fmt.Errorf("status %d", res.ExitCode)
		}
		done <- err
	}()
	<-first
	for range 20 {
		res, err := env.Execute(t.Context(), contract.Request{Command: "echo quick; head -c 300000 /dev/zero"})
		if err != nil || len(res.Output) != 300006 {
			t.Fatalf("%d bytes, %v", len(res.Output), err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("the flood ended unread: %v", err)
	default:
	}
	close(gate)
	if err := <-done; err != nil || n != 8000000 {
		t.Fatalf("%d bytes, %v", n, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

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

func TestHalfClosedInput(t *testing.T) {
	env := box(t)
	t.Run("its end ends cat", func(t *testing.T) {
		r, w := io.Pipe()
		echo := make(chan string, 8)
		out := writerFunc(func(p []byte) (int, error) { echo <- string(p); return len(p), nil })
		done := make(chan contract.Result, 1)
		go func() {
			res, err := env.Execute(t.Context(), contract.Request{Command: "cat; echo after >&2; exit 3", Stdin: r, Stdout: out})
			if err != nil {
				t.Error(err)
			}
			done <- res
		}()
		for _, word := range []string{"one\n", "two\n"} {
			if _, err := io.WriteString(w, word); err != nil {
				t.Fatal(err)
			}
			if got := <-echo; got != word {
				t.Fatalf("%q came back as %q", word, got)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if res, last := <-done, <-echo; res.ExitCode != 3 || last != "after\n" {
			t.Fatalf("%+v, %q", res, last)
		}
	})
	t.Run("the command ends first", func(t *testing.T) {
		r, w := io.Pipe()
		defer func() { _ = w.Close() }() // ends the reader, which only its owner can
		res, err := env.Execute(t.Context(), contract.Request{Command: "exit 4", Stdin: r})
		if err != nil || res.ExitCode != 4 {
			t.Fatalf("%+v, %v", res, err)
		}
	})
	t.Run("input nobody reads is no error", func(t *testing.T) {
		res, err := env.Execute(t.Context(), contract.Request{Command: "head -c1", Stdin: bytes.NewReader(bytes.Repeat([]byte("x"), 20<<20))})
		if err != nil || res.ExitCode != 0 || string(res.Output) != "x" {
			t.Fatalf("%+v, %v", res, err)
		}
	})
	t.Run("many empty inputs", func(t *testing.T) {
		for range 100 {
			res, err := env.Execute(t.Context(), contract.Request{Command: "cat | wc -c", Stdin: strings.NewReader("")})
			if err != nil || strings.TrimSpace(string(res.Output)) != "0" {
				t.Fatalf("%+v, %v", res, err)
			}
		}
	})
}

func TestConcurrentCommandsDoNotMix(t *testing.T) {
	env := box(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 10 {
				want := strings.Repeat(fmt.Sprintf("%d.%d ", i, j), 20000)
				res, err := env.Execute(t.Context(), contract.Request{Command: "cat", Stdin: strings.NewReader(want)})
				if err != nil || string(res.Output) != want {
					t.Errorf("%d.%d: %d bytes, %v", i, j, len(res.Output), err)
				}
			}
		})
	}
	wg.Wait()
}

// What a host says when it has no better idea is completed here, on the border to the host.
func TestLegacyDirectoryFallsBackToHome(t *testing.T) {
	p := &localProvider{home: t.TempDir()}
	env := boxOf(t, connect(t, p))
	if _, err := os.Stat("/root"); err == nil && os.Getuid() == 0 {
		// Here /root can be entered, so it is honoured.
		p.home = t.TempDir()
		res, err := env.Execute(t.Context(), contract.Request{Command: "pwd", Dir: "/root"})
		if err != nil || string(res.Output) != "/root\n" {
			t.Fatalf("%q, %v", res.Output, err)
		}
		return
	}
	res, err := env.Execute(t.Context(), contract.Request{Command: "pwd", Dir: "/root"})
	if err != nil || string(res.Output) != p.home+"\n" {
		t.Fatalf("%q, %v", res.Output, err)
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
func (discard) Close() error                { return nil }

type onWrite struct{ do func([]byte) }

func (o onWrite) Write(p []byte) (int, error) { o.do(p); return len(p), nil }
func (onWrite) Close() error                  { return nil }
