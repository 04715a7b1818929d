package engine

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/pkg/stdcopy"
	"github.com/google/go-cmp/cmp"
)

// answering is an engine whose daemon gives one answer to everything, and asked what it was asked the last time.
func answering(t *testing.T, status int, text string) (e *Engine, asked func() string) {
	t.Helper()
	var last string
	e = openAt(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			return
		}
		last = r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1.41") + "?" + r.URL.RawQuery
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text)) // the client may have left
	})
	return e, func() string { return last }
}

func TestListsOfWhatIsLeft(t *testing.T) {
	e, asked := answering(t, http.StatusOK, `{"Volumes":[{"Name":"a","Labels":{"k":"v"},"CreatedAt":"2026-11-30T10:00:00Z"},{"Name":"b","CreatedAt":"long ago"}]}`)
	volumes, err := e.ListVolumes(t.Context(), "k=v")
	want := []Volume{{"a", map[string]string{"k": "v"}, time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)}, {Name: "b"}}
	if diff := cmp.Diff(want, volumes); err != nil || diff != "" || !strings.Contains(asked(), "GET /volumes?filters=") {
		t.Errorf("%v, asked %s\n%s", err, asked(), diff)
	}

	e, _ = answering(t, http.StatusOK, `{"Volumes":[{"Name":"a","UsageData":{"Size":5,"RefCount":1}},{"Name":"b","UsageData":{"Size":-1,"RefCount":-1}},{"Name":"c"}]}`)
	sizes, err := e.VolumeSizes(t.Context())
	if diff := cmp.Diff(map[string]int64{"a": 5}, sizes); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}

	e, asked = answering(t, http.StatusOK, `[{"Id":"sha256:1","Created":10,"Size":7,"Labels":{"k":"v"},"RepoTags":["<none>:<none>"]},{"Id":"sha256:2","RepoTags":["named:1"]},{"Id":"sha256:3","RepoTags":null}]`)
	images, err := e.NamelessImages(t.Context(), "k")
	nameless := []Nameless{{ID: "sha256:1", Labels: map[string]string{"k": "v"}, Created: time.Unix(10, 0), Size: 7}, {ID: "sha256:3", Created: time.Unix(0, 0)}}
	if diff := cmp.Diff(nameless, images); err != nil || diff != "" || !strings.Contains(asked(), "dangling") {
		t.Errorf("%v, asked %s\n%s", err, asked(), diff)
	}
}

func TestMeasuringOfContainers(t *testing.T) {
	e, asked := answering(t, http.StatusOK, `{"read":"2026-11-30T10:00:00Z","cpu_stats":{"cpu_usage":{"total_usage":9}}}`)
	s, err := e.Stats(t.Context(), "box")
	if err != nil || s.CPUStats.CPUUsage.TotalUsage != 9 || asked() != "GET /containers/box/stats?one-shot=1&stream=0" {
		t.Errorf("%+v, %v, asked %s", s, err, asked())
	}
	e, _ = answering(t, http.StatusOK, "{half")
	if _, err = e.Stats(t.Context(), "box"); err == nil || !strings.Contains(err.Error(), "measuring container box") {
		t.Errorf("%v", err)
	}
	for text, want := range map[string]int64{`{"Id":"x","SizeRw":12}`: 12, `{"Id":"x"}`: 0} {
		e, asked = answering(t, http.StatusOK, text)
		if got, err := e.WrittenSize(t.Context(), "box"); err != nil || got != want || asked() != "GET /containers/box/json?size=1" {
			t.Errorf("%d, %v, asked %s", got, err, asked())
		}
	}
}

func TestLogsOfContainers(t *testing.T) {
	var text bytes.Buffer
	for _, piece := range []struct {
		kind stdcopy.StdType
		text string
	}{{stdcopy.Stdout, "out\n"}, {stdcopy.Stderr, "err\n"}} {
		if _, err := stdcopy.NewStdWriter(&text, piece.kind).Write([]byte(piece.text)); err != nil {
			t.Fatal(err)
		}
	}
	e, asked := answering(t, http.StatusOK, text.String())
	var got strings.Builder
	err := e.Logs(t.Context(), "box", LogOptions{Tail: 5, Since: time.Unix(10, 0)}, &got)
	if err != nil || got.String() != "out\nerr\n" || !strings.Contains(asked(), "since=10.000000000&") || !strings.Contains(asked(), "tail=5") || strings.Contains(asked(), "follow") {
		t.Errorf("%q, %v, asked %s", got.String(), err, asked())
	}
	if err = e.Logs(t.Context(), "box", LogOptions{Follow: true, Tail: -1}, &got); err != nil || !strings.Contains(asked(), "follow=1") || !strings.Contains(asked(), "tail=all") {
		t.Errorf("%v, asked %s", err, asked())
	}
}

// Whatever is asked, what a daemon answers to it has its kind.
func TestHousekeepingFaultsHaveTheirKind(t *testing.T) {
	for name, call := range map[string]func(*Engine) error{
		"freeze":  func(e *Engine) error { return e.Freeze(t.Context(), "x") },
		"thaw":    func(e *Engine) error { return e.Thaw(t.Context(), "x") },
		"logs":    func(e *Engine) error { return e.Logs(t.Context(), "x", LogOptions{}, &strings.Builder{}) },
		"stats":   func(e *Engine) error { _, err := e.Stats(t.Context(), "x"); return err },
		"size":    func(e *Engine) error { _, err := e.WrittenSize(t.Context(), "x"); return err },
		"volumes": func(e *Engine) error { _, err := e.ListVolumes(t.Context()); return err },
		"sizes":   func(e *Engine) error { _, err := e.VolumeSizes(t.Context()); return err },
		"images":  func(e *Engine) error { _, err := e.NamelessImages(t.Context()); return err },
	} {
		e, _ := answering(t, http.StatusNotFound, `{"message":"there is no such thing"}`)
		if err := call(e); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		gone := openAt(t, func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
		if err := call(gone); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
