//go:build linux

package enginetest

import (
	"context"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Build implements the provider's engine: the image has the recipe's labels, and an account like any other here. An image that had the tag
// goes on without a name.
func (e *Engine) Build(ctx context.Context, r engine.Recipe, report func(engine.BuildProgress)) (string, error) {
	if err := e.enter(ctx, OpBuild); err != nil {
		return "", err
	}
	step := engine.BuildProgress{Step: 1, Steps: 1, Instruction: "FROM nothing"}
	report(step)
	step.Output = "a line"
	report(step)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recipes = append(e.recipes, r)
	if former, there := e.images[r.Tag]; there {
		e.images[untagged+former.id] = former
	}
	id := newID()
	e.images[r.Tag] = image{id: "sha256:" + id, home: e.path("homes", short(id)), labels: r.Labels, created: time.Now()}
	return "sha256:" + id, nil
}

// Recipes are those that were built, in order.
func (e *Engine) Recipes() []engine.Recipe {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]engine.Recipe(nil), e.recipes...)
}

// DeleteImage implements the provider's engine.
func (e *Engine) DeleteImage(ctx context.Context, ref string) error {
	if err := e.enter(ctx, OpDeleteImage); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	gone, ok := e.image(ref)
	if !ok {
		return notFound("removing image %s: there is none", ref)
	}
	for _, b := range e.containers {
		if b.image.id == gone.id {
			return failure(engine.ErrConflict, "removing image %s: container %s uses it", ref, short(b.id))
		}
	}
	for name, i := range e.images {
		if i.id == gone.id && (name == ref || strings.HasPrefix(name, untagged)) {
			delete(e.images, name)
		}
	}
	return nil
}
