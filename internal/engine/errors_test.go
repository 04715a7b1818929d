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

	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

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
		"not found":    {answer(404, "No such container: x"), ErrNotFound, "looking at container x: No such container: x"},
		"conflict":     {answer(409, "name is in use"), ErrConflict, "looking at container x: name is in use"},
		"no such host": {"tcp://no-such-host.invalid:1", ErrUnreachable, "does not answer: dial tcp: lookup no-such-host.invalid"},
		"not taken":    {answer(400, "Range of CPUs is small"), nil, "looking at container x: Range of CPUs is small"},
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
	t.Run("a pull that fails in the middle of its stream", func(t *testing.T) {
		socket := filepath.Join(t.TempDir(), "d.sock")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Api-Version", "1.41")
			_, _ = fmt.Fprintln(w, `{"status":"Pulling","id":"a","progressDetail":{"current":1,"total":2}}`) // the client may have left
			_, _ = fmt.Fprintln(w, `{"errorDetail":{"message":"unexpected EOF"},"error":"unexpected EOF"}`)
		})}
		go func() { _ = server.Serve(l) }() // ends with Close
		defer func() { _ = server.Close() }()
		e, err := Open(Endpoint{Host: "unix://" + socket})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = e.Close() }() // as above
		var steps []string
		err = e.Pull(t.Context(), "debian", func(m jsonmessage.JSONMessage) { steps = append(steps, m.ID+" "+m.Status) })
		if err == nil || !strings.Contains(err.Error(), "pulling image debian: unexpected EOF") || len(steps) != 1 {
			t.Fatalf("%q %v", steps, err)
		}
	})
}
