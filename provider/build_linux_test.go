package provider_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/engine/enginetest"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

const tag = "dockerbox/mine:1"

func build(t *testing.T, p *provider.Provider, order provider.ImageBuild) provider.BuiltImage {
	t.Helper()
	built, err := p.BuildImage(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func TestAnImageIsBuiltOnceForEachRecipeAndBase(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	e.AddImage(image.BaseTag)
	order := provider.ImageBuild{Tag: tag, Revision: "abc"}
	first := build(t, p, order)
	if !first.Built || first.Tag != tag || first.Base != image.BaseTag || first.Size == 0 || first.FormerInUse != "" {
		t.Errorf("first: %+v", first)
	}
	second := build(t, p, order)
	if want := (provider.BuiltImage{Tag: tag, ID: first.ID, Base: first.Base, Size: first.Size}); second != want {
		t.Errorf("second: %+v, want %+v", second, want)
	}
	e.RemoveImage(image.BaseTag)
	e.AddImage(image.BaseTag) // another one
	if third := build(t, p, order); !third.Built || third.ID == first.ID {
		t.Errorf("on a new base: %+v", third)
	}
	order.Anew = true
	if fourth := build(t, p, order); !fourth.Built {
		t.Errorf("anew: %+v", fourth)
	}
	recipes := e.Recipes()
	if len(recipes) != 3 {
		t.Fatalf("%d builds, want 3", len(recipes))
	}
	r := recipes[0]
	if r.Tag != tag || r.NoCache || !recipes[2].NoCache || r.Dockerfile != image.Dockerfile || r.Args[image.ArgBase] != image.BaseTag || r.Args[image.ArgRevision] != "abc" {
		t.Errorf("recipe %+v", r.Args)
	}
	if len(r.Labels) != 1 || r.Labels[image.RecipeLabel] == recipes[1].Labels[image.RecipeLabel] || r.Labels[image.RecipeLabel] == "" {
		t.Errorf("labels %v and %v", r.Labels, recipes[1].Labels)
	}
}

func TestABuildReportsItsSteps(t *testing.T) {
	e := newEngine(t)
	e.AddImage(image.BaseTag)
	var got []string
	build(t, newProvider(t, e), provider.ImageBuild{Tag: tag, Report: func(b provider.BuildProgress) { got = append(got, b.Instruction+"|"+b.Output) }})
	if diff := cmp.Diff([]string{"FROM nothing|", "FROM nothing|a line"}, got); diff != "" {
		t.Error(diff)
	}
}

// The image that was replaced goes, unless somebody lives in it.
func TestTheFormerImageGoesWhenNothingUsesIt(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	e.AddImage(image.BaseTag)
	order := provider.ImageBuild{Tag: tag, Anew: true}
	first := build(t, p, order)
	second := build(t, p, order)
	if _, err := e.Image(t.Context(), first.ID); !errors.Is(err, engine.ErrNotFound) || second.FormerInUse != "" {
		t.Errorf("the unused image stays: %v, %+v", err, second)
	}
	cfg := fresh(e)()
	cfg.Image = tag
	open(t, p, cfg)
	third := build(t, p, order)
	if _, err := e.Image(t.Context(), second.ID); err != nil || third.FormerInUse != second.ID {
		t.Errorf("the image of a sandbox: %v, %+v", err, third)
	}
}

func TestTheBaseIsChosenAndPulled(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	e.Before(enginetest.OpPull, func() { e.AddImage(image.UpstreamBase) })
	if got := build(t, p, provider.ImageBuild{Tag: tag}); got.Base != image.UpstreamBase {
		t.Errorf("without %s the base is %s", image.BaseTag, got.Base)
	}
	e.AddImage(image.BaseTag)
	if got := build(t, p, provider.ImageBuild{Tag: tag}); got.Base != image.BaseTag {
		t.Errorf("with %s the base is %s", image.BaseTag, got.Base)
	}
	e.AddImage("debian:sid")
	if got := build(t, p, provider.ImageBuild{Tag: tag, Base: "debian:sid"}); got.Base != "debian:sid" {
		t.Errorf("a base that was asked for became %s", got.Base)
	}
	for ref, parts := range map[string][]string{"dockerbox/none:1": {"dockerbox/none:1", "build-base", "--base"}, "debian:none": {"debian:none", "pulled"}} {
		_, err := p.BuildImage(t.Context(), provider.ImageBuild{Tag: tag, Base: ref})
		backendError(t, err, parts...)
	}
}

func TestABuildThatFailsChangesNothing(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	e.AddImage(image.BaseTag)
	first := build(t, p, provider.ImageBuild{Tag: tag})
	for _, op := range []enginetest.Op{enginetest.OpImage, enginetest.OpBuild} {
		e.Fail(op, &contract.BackendError{Reason: "out of luck", Hint: "try again"})
		_, err := p.BuildImage(t.Context(), provider.ImageBuild{Tag: tag, Anew: true})
		backendError(t, err, "out of luck", "try again")
	}
	if now, err := e.Image(t.Context(), tag); err != nil || now.ID != first.ID {
		t.Errorf("%s is %s (%v), want %s", tag, now.ID, err, first.ID)
	}
}

func TestAuthoritiesReachTheContextAndNothingElse(t *testing.T) {
	const authority = "-----BEGIN CERTIFICATE-----\nb25l\n-----END CERTIFICATE-----\n"
	e := newEngine(t)
	e.AddImage(image.BaseTag)
	p := newProvider(t, e)
	first := build(t, p, provider.ImageBuild{Tag: tag, Authorities: []byte(authority)})
	r := e.Recipes()[0]
	if !strings.Contains(string(r.Context), authority) {
		t.Error("the context lacks the certificate")
	}
	for name, value := range r.Args {
		if strings.Contains(value, "CERTIFICATE") {
			t.Errorf("argument %s has the certificate", name)
		}
	}
	if again := build(t, p, provider.ImageBuild{Tag: tag}); again.Built || again.ID != first.ID {
		t.Error("another authority made another image")
	}
	if n := len(e.Recipes()); n != 1 {
		t.Errorf("it was built %d times", n)
	}
}
