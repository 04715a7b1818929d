package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	dockerimage "github.com/docker/docker/api/types/image"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// BuildProgress is where a build is; see there.
type BuildProgress = engine.BuildProgress

// ImageBuild is an order for the sandbox image. The zero value builds it as it is meant to be.
type ImageBuild struct {
	Base        string // what to build on; empty: [image.BaseTag] where the daemon has it, else [image.UpstreamBase]
	Tag         string // empty: [image.DefaultTag]
	Anew        bool   // build every step again although nothing changed: Debian's packages have newer versions
	Authorities []byte // PEM: whom the build trusts besides Debian's certificate authorities when it fetches; in no image that is kept
	Revision    string // of the program, for the label
	// Report receives the progress, in order, from the goroutine that waits; nil drops it.
	Report func(BuildProgress)
}

// BuiltImage is the image an order led to.
type BuiltImage struct {
	Tag, ID, Base string
	Size          int64 // bytes, with the layers it shares
	Built         bool  // false: it was up to date
	// FormerInUse is the id of the image that had the tag and stays, because a sandbox uses it; empty when there is none.
	FormerInUse string
}

// BuildImage makes the sandbox image unless the one of that tag was built from the same recipe on the same base. A base that is not on
// the daemon is pulled. The image that had the tag before is removed when nothing uses it. Errors are [contract.BackendError].
func (p *Provider) BuildImage(ctx context.Context, order ImageBuild) (BuiltImage, error) {
	built := BuiltImage{Tag: order.Tag}
	if built.Tag == "" {
		built.Tag = image.DefaultTag
	}
	base, ref, err := p.base(ctx, order.Base)
	if err != nil {
		return built, err
	}
	built.Base = ref
	digest := image.Digest(base.ID)
	former, err := p.engine.Image(ctx, built.Tag)
	switch {
	case errors.Is(err, engine.ErrNotFound):
	case err != nil:
		return built, err
	case !order.Anew && former.Config != nil && former.Config.Labels[image.RecipeLabel] == digest:
		built.ID, built.Size = former.ID, former.Size
		return built, nil
	}
	files, err := image.Context(order.Authorities)
	if err != nil {
		return built, err
	}
	report := order.Report
	if report == nil {
		report = func(BuildProgress) {}
	}
	built.ID, err = p.engine.Build(ctx, engine.Recipe{
		Context: files, Dockerfile: image.Dockerfile, Tag: built.Tag, NoCache: order.Anew,
		Args:   image.Args(p.version, order.Revision, time.Now(), ref),
		Labels: map[string]string{image.RecipeLabel: digest},
	}, report)
	if err != nil {
		return built, err
	}
	built.Built = true
	ctx = context.WithoutCancel(ctx) // what is left takes a moment, and the image is there
	made, err := p.engine.Image(ctx, built.ID)
	if err != nil {
		return built, err
	}
	built.Size = made.Size
	if former.ID != "" && former.ID != made.ID {
		inUse, err := p.dropUnnamed(ctx, former.ID)
		if err != nil {
			return built, fmt.Errorf("remove the image that %s was before: %w", built.Tag, err)
		}
		if inUse {
			built.FormerInUse = former.ID
		}
	}
	return built, nil
}

// base finds what to build on, and the name it has in the label.
func (p *Provider) base(ctx context.Context, wanted string) (dockerimage.InspectResponse, string, error) {
	ref := wanted
	if ref == "" {
		found, err := p.engine.Image(ctx, image.BaseTag)
		if !errors.Is(err, engine.ErrNotFound) {
			return found, image.BaseTag, err
		}
		ref = image.UpstreamBase
	}
	found, err := p.engine.Image(ctx, ref)
	if !errors.Is(err, engine.ErrNotFound) {
		return found, ref, err
	}
	if localOnly(ref) {
		return found, ref, &contract.BackendError{
			Reason: "the base image " + ref + " is not on this daemon",
			Hint:   "scripts/build-base makes " + image.BaseTag + "; or choose a Debian image with --base", Err: engine.ErrNotFound,
		}
	}
	if err := p.pull(ctx, ref, func(Pulled) {}); err != nil {
		return found, ref, err
	}
	found, err = p.engine.Image(ctx, ref)
	return found, ref, err
}

// dropUnnamed removes an image that has no name any more, and reports whether it stays because something uses it.
func (p *Provider) dropUnnamed(ctx context.Context, id string) (inUse bool, err error) {
	found, err := p.engine.Image(ctx, id)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case len(found.RepoTags) > 0:
		return false, nil
	}
	switch err := p.engine.DeleteImage(ctx, id); {
	case errors.Is(err, engine.ErrConflict):
		return true, nil
	case errors.Is(err, engine.ErrNotFound):
		return false, nil
	default:
		return false, err
	}
}
