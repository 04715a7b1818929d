package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/pkg/jsonmessage"
)

// pullFrom is an engine whose daemon answers every pull so.
func pullFrom(t *testing.T, pull http.HandlerFunc) *Engine {
	t.Helper()
	return openAt(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if !strings.HasSuffix(r.URL.Path, "/_ping") {
			pull(w, r)
		}
	})
}

// say sends messages as a daemon does, each at once.
func say(w http.ResponseWriter, messages ...string) {
	for _, m := range messages {
		_, _ = fmt.Fprintln(w, m) // the client may have left
		_ = http.NewResponseController(w).Flush()
	}
}

const (
	downloading = `{"status":"Downloading","id":"a","progressDetail":{"current":1,"total":2}}`
	extracting  = `{"status":"Extracting","id":"a","progressDetail":{"current":1,"total":2}}`
	complete    = `{"status":"Pull complete","id":"a","progressDetail":{}}`
)

func TestAPullReportsWhatTheDaemonSays(t *testing.T) {
	e := pullFrom(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("fromImage") + ":" + r.URL.Query().Get("tag"); got != "docker.io/library/debian:13" {
			t.Errorf("asked for %q", got)
		}
		say(w, downloading, complete)
	})
	var steps []string
	if err := e.Pull(t.Context(), "debian:13", func(m jsonmessage.JSONMessage) { steps = append(steps, m.ID+" "+m.Status) }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(steps, ", "); got != "a Downloading, a Pull complete" {
		t.Errorf("got %q", got)
	}
	if err := e.Pull(t.Context(), "debian:13", nil); err != nil {
		t.Errorf("without anybody to report to: %v", err)
	}
}

// Whose connection broke decides what people are told.
func TestAPullThatIsCut(t *testing.T) {
	for name, tc := range map[string]struct {
		pull   http.HandlerFunc
		reason string
		is     error
	}{
		"by the registry": {
			func(w http.ResponseWriter, _ *http.Request) {
				say(w, downloading, `{"errorDetail":{"message":"unexpected EOF"},"error":"unexpected EOF"}`)
			},
			"the image debian is not on this daemon and cannot be pulled: the connection to its registry was cut", nil,
		},
		"by the daemon": {
			func(w http.ResponseWriter, _ *http.Request) { say(w, downloading); panic(http.ErrAbortHandler) },
			" went away: the pull of image debian was cut off", ErrUnreachable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := pullFrom(t, tc.pull).Pull(t.Context(), "debian", nil)
			if b := asBackend(t, err); !strings.HasSuffix(b.Reason, tc.reason) || b.Hint == "" {
				t.Errorf("reason %q, hint %q", b.Reason, b.Hint)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%v is not %v", err, tc.is)
			}
		})
	}
}

// A registry that keeps the connection and sends nothing is not waited for, and the daemon is told.
func TestAPullThatStalls(t *testing.T) {
	for name, first := range map[string][]string{"before the first byte": nil, "in the middle": {downloading}, "after a layer was unpacked": {extracting, complete}} {
		t.Run(name, func(t *testing.T) {
			left := make(chan struct{})
			e := pullFrom(t, func(w http.ResponseWriter, r *http.Request) {
				say(w, first...)
				<-r.Context().Done()
				close(left)
			})
			err := e.pullWithin(t.Context(), "debian", 50*time.Millisecond, nil)
			b := asBackend(t, err)
			if b.Reason != "the image debian is not on this daemon and cannot be pulled: nothing of it has come for 0 s" || b.Hint != hintCut || !errors.Is(err, errStalled) {
				t.Errorf("%q %q", b.Reason, b.Hint)
			}
			<-left
		})
	}
}

// What a layer takes to be unpacked is not the network's silence, and a reader that is slow is nobody's.
func TestAPullThatOnlySeemsToStall(t *testing.T) {
	w := pullWatch{quiet: time.Second, unpacking: map[string]bool{}}
	for _, step := range []struct {
		id, status string
		want       time.Duration
	}{
		{"a", "Extracting", unpackQuiet * time.Second}, {"b", "Downloading", unpackQuiet * time.Second}, {"", "Digest: x", unpackQuiet * time.Second},
		{"a", "Pull complete", time.Second}, {"b", "Extracting", unpackQuiet * time.Second},
	} {
		if got := w.patience(jsonmessage.JSONMessage{ID: step.id, Status: step.status}); got != step.want {
			t.Errorf("after %s %s it waits %s, want %s", step.id, step.status, got, step.want)
		}
	}
	e := pullFrom(t, func(w http.ResponseWriter, _ *http.Request) { say(w, downloading, complete) })
	err := e.pullWithin(t.Context(), "debian", 100*time.Millisecond, func(jsonmessage.JSONMessage) { <-time.After(200 * time.Millisecond) })
	if err != nil {
		t.Error(err)
	}
}

func TestAPullThatIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	e := pullFrom(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, downloading)
		<-r.Context().Done()
		close(left)
	})
	err := e.Pull(ctx, "debian", func(jsonmessage.JSONMessage) { cancel() })
	if b := asBackend(t, err); b.Reason != "the pull of image debian was given up before its end" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q", b.Reason)
	}
	<-left
}
