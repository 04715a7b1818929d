package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// openAt is an engine whose daemon is answer.
func openAt(t *testing.T, answer http.HandlerFunc) *Engine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "d.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: answer}
	go func() { _ = server.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	e, err := Open(Endpoint{Host: "unix://" + socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // an idle client: it cannot fail usefully
	return e
}

// Each fault comes from a real HTTP exchange, so the client's own error types are what is explained.
func TestFaultsBecomeSentences(t *testing.T) {
	answer := func(status int, message string) string {
		socket := filepath.Join(t.TempDir(), "d.sock")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", "1.41")
			w.Header().Set("Content-Type", "application/json")
			if strings.HasSuffix(r.URL.Path, "/_ping") {
				return
			}
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"message":%q}`, message) // the client may have left
		})}
		go func() { _ = server.Serve(l) }() // ends with Close
		t.Cleanup(func() { _ = server.Close() })
		return "unix://" + socket
	}
	plain := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		host   string
		is     error
		reason string
	}{
		"no socket":    {"unix:///nonexistent/docker.sock", ErrUnreachable, "the docker daemon at unix:///nonexistent/docker.sock does not answer"},
		"not a socket": {"unix://" + plain, ErrUnreachable, "does not answer"},
		"not found":    {answer(404, "No such container: x"), ErrNotFound, "there is no container x"},
		"conflict":     {answer(409, "name is in use"), ErrConflict, "looking at container x: name is in use"},
		"no such host": {"tcp://no-such-host.invalid:1", ErrUnreachable, "there is no machine of the name no-such-host.invalid, where the docker daemon should be"},
		"not taken":    {answer(400, "that is nothing"), nil, "looking at container x: that is nothing"},
		"anything":     {answer(500, "disk\n full"), nil, "looking at container x: disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Open(Endpoint{Host: tc.host})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Close() }() // closing an idle client cannot fail usefully
			_, err = e.Inspect(t.Context(), "x")
			var b *contract.BackendError
			if !errors.As(err, &b) || !strings.Contains(b.Reason, tc.reason) || b.Hint == "" {
				t.Fatalf("got %v", err)
			}
			for _, kind := range []error{ErrNotFound, ErrConflict, ErrUnreachable} {
				if want := errors.Is(kind, tc.is); errors.Is(err, kind) != want {
					t.Fatalf("errors.Is(%v) is %v", kind, !want)
				}
			}
		})
	}
	t.Run("caller gave up", func(t *testing.T) {
		e, err := Open(Endpoint{Host: answer(200, "")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = e.Close() }() // as above
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = e.Inspect(ctx, "x"); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "no answer from the daemon in time") {
			t.Fatal(err)
		}
	})
	t.Run("a daemon of old", func(t *testing.T) {
		e := openAt(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.40") })
		_, err := e.List(t.Context())
		if b := asBackend(t, err); !strings.HasSuffix(b.Reason, " speaks API 1.40, older than 1.41") || !strings.Contains(b.Hint, "20.10") {
			t.Fatal(err)
		}
	})
	t.Run("a version that was asked for", func(t *testing.T) {
		for version, want := range map[string]string{
			"1.40": "DOCKER_API_VERSION is 1.40, older than 1.41, which dockerbox needs", "9.99": "DOCKER_API_VERSION is 9.99, and the docker daemon at HOST speaks 1.41",
			"banana": `DOCKER_API_VERSION is "banana", which is no version`,
		} {
			t.Setenv("DOCKER_API_VERSION", version)
			e := openAt(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.41") })
			_, err := e.List(t.Context())
			if b := asBackend(t, err); b.Reason != strings.ReplaceAll(want, "HOST", e.Address()) || !strings.Contains(b.Hint, "unset DOCKER_API_VERSION") {
				t.Errorf("%s: %v", version, err)
			}
		}
		t.Setenv("DOCKER_API_VERSION", "v1.41")
		e := openAt(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.51") })
		if version, err := e.Ping(t.Context()); version != "1.41" || err != nil {
			t.Errorf("%s %v", version, err)
		}
	})
	t.Run("no daemon at all", func(t *testing.T) {
		e := openAt(t, func(http.ResponseWriter, *http.Request) {})
		_, err := e.List(t.Context())
		if b := asBackend(t, err); !strings.Contains(b.Reason, "is not a docker daemon") || !errors.Is(err, ErrUnreachable) {
			t.Fatal(err)
		}
	})
	t.Run("cut off", func(t *testing.T) {
		e := openAt(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", "1.41")
			if !strings.HasSuffix(r.URL.Path, "/_ping") {
				panic(http.ErrAbortHandler)
			}
		})
		_, err := e.List(t.Context())
		if b := asBackend(t, err); !strings.HasSuffix(b.Reason, " went away: listing containers was cut off") || !errors.Is(err, ErrUnreachable) {
			t.Fatal(err)
		}
	})
}
