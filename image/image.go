// Package image holds the recipe of the sandbox image as embedded files, the tags it is built under, the labels it carries and the
// profile of system calls its sandboxes run with. It does no I/O; building is the business of package provider.
package image

import (
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// DefaultTag is the image of a sandbox that asks for none.
	DefaultTag = "dockerbox/desktop:latest"
	// BaseTag is the Debian base that scripts/build-base makes, what DefaultTag is built on where it is there.
	BaseTag = "dockerbox/base:trixie"
	// UpstreamBase is what DefaultTag is built on elsewhere; it can be pulled.
	UpstreamBase = "debian:trixie-slim"
)

// RecipeLabel carries the [Digest] an image was built from. Its change is what makes an image be built again.
const RecipeLabel = "dev.dockerbox.image.recipe"

const (
	title       = "dockerbox desktop"
	description = "Debian with bash tools, sudo, the account pn and a desktop with Chromium: a sandbox for Hermes"
	source      = "https://github.com/hermes-dockerbox/dockerbox"
	licenses    = "MIT"
)

// Labels returns the OCI labels of DefaultTag: version and revision of the program, the time of the build and the name of the base. A zero
// created gives an empty value, as the recipe's own default does. The map is the caller's.
func Labels(version, revision string, created time.Time, base string) map[string]string {
	return map[string]string{
		v1.AnnotationTitle:         title,
		v1.AnnotationDescription:   description,
		v1.AnnotationSource:        source,
		v1.AnnotationLicenses:      licenses,
		v1.AnnotationVersion:       version,
		v1.AnnotationRevision:      revision,
		v1.AnnotationCreated:       stamp(created),
		v1.AnnotationBaseImageName: base,
	}
}

// Args returns the recipe's arguments; the recipe makes those of [Labels] out of them. The map is the caller's.
func Args(version, revision string, created time.Time, base string) map[string]string {
	return map[string]string{ArgBase: base, ArgVersion: version, ArgRevision: revision, ArgCreated: stamp(created)}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
