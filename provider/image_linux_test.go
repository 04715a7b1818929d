package provider_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
)

func TestImageDescribesWhatTheDaemonHas(t *testing.T) {
	e := newEngine(t)
	e.AddImage("there:1")
	got, err := newProvider(t, e).Image(t.Context(), "there:1")
	if err != nil {
		t.Fatal(err)
	}
	if got.Config.User != enginetest.User() || got.OS != "linux" || got.Architecture != runtime.GOARCH || got.Machine != runtime.GOARCH || got.ID == "" || got.Size == 0 {
		t.Errorf("%+v", got)
	}
}

func TestImageSaysHowAMissingOneIsHad(t *testing.T) {
	p := newProvider(t, newEngine(t))
	for ref, hint := range map[string]string{
		image.DefaultTag:   "dockerbox image build makes it",
		"dockerbox/mine:1": "build it first: no registry has an image of that name",
		"there/it/is:2":    "docker pull there/it/is:2 fetches it, if a registry has it",
	} {
		_, err := p.Image(t.Context(), ref)
		var backend *contract.BackendError
		if !errors.As(err, &backend) || !errors.Is(err, engine.ErrNotFound) || backend.Reason != "the image "+ref+" is not on this daemon" || backend.Hint != hint {
			t.Errorf("%s: %#v, want hint %q", ref, err, hint)
		}
	}
}

func TestLacksLooksWithoutRunningAnything(t *testing.T) {
	e := newEngine(t)
	e.AddImage("there:1")
	p := newProvider(t, e)
	e.Fail(enginetest.OpStart, errors.New("nothing is to be started"))
	got, err := p.Lacks(t.Context(), "there:1", []string{"/bin/none", "/etc/passwd", "/usr/bin/none"})
	if err != nil || !slices.Equal(got, []string{"/bin/none", "/usr/bin/none"}) {
		t.Errorf("Lacks = %q, %v", got, err)
	}
	e.Fail(enginetest.OpFileSize, &contract.BackendError{Reason: "the daemon has gone"})
	if got, err := p.Lacks(t.Context(), "there:1", []string{"/bin/none"}); err == nil || got != nil {
		t.Errorf("with a daemon that has gone Lacks = %q, %v", got, err)
	}
	if left := e.Containers(); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}
