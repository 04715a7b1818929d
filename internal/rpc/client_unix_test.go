//go:build unix

package rpc

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
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
	cfg.ForwardEnv, cfg.Mounts = []string{"TOKEN"}, []contract.Mount{{Source: "/a", Target: "/b", ReadOnly: true}, {Source: "v1", Target: "/c"}}
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

// What only some requests and results have crosses as well.
func TestTransientNamesAndNewContainers(t *testing.T) {
	p := &localProvider{home: t.TempDir(), renewed: "f00d"}
	env := boxOf(t, connect(t, p))
	want := contract.Request{
		Command: "true", Dir: "/", User: "pn", Env: map[string]string{"A": "b"}, Transient: []string{"S", "T_*"}, Timeout: 1500 * time.Millisecond, MaxOutput: 7,
	}
	res, err := env.Execute(t.Context(), want)
	if err != nil || !res.Recreated || res.ContainerID != "f00d" {
		t.Errorf("%+v, %v", res, err)
	}
	if got := *p.request.Load(); !reflect.DeepEqual(got, want) {
		t.Errorf("the provider was asked for %+v, want %+v", got, want)
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
