// Package image holds the recipes of the sandbox images as embedded files, the tags they
// are built under and the labels they carry. It does no I/O; building is the business of
// scripts/build-image.
package image

import (
	"embed"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Files holds Dockerfile.terminal, the recipe of TerminalTag. It needs no build context.
//
//go:embed Dockerfile.terminal
var Files embed.FS

// TerminalDockerfile is the name of TerminalTag's recipe in Files.
const TerminalDockerfile = "Dockerfile.terminal"

const (
	// TerminalTag is the image of a sandbox that asks for none.
	TerminalTag = "dockerbox/terminal:latest"
	// BaseTag is the Debian base that scripts/build-base makes and TerminalTag is built on.
	BaseTag = "dockerbox/base:trixie"
)

// RecipeLabel carries the SHA-256, in hex, of the recipe and the base's id an image was
// built from. Its change is what makes scripts/build-image build again.
const RecipeLabel = "dev.dockerbox.image.recipe"

const (
	title       = "dockerbox terminal"
	description = "Debian with bash tools, sudo and the account pn: a terminal sandbox for Hermes"
	source      = "https://github.com/hermes-dockerbox/dockerbox"
	licenses    = "MIT"
)

// Labels returns the OCI labels of TerminalTag: version and revision of the tree, the time
// of the build and the name of the base. A zero created gives an empty value, as the
// Dockerfile's own default does. The map is the caller's.
func Labels(version, revision string, created time.Time, base string) map[string]string {
	var when string
	if !created.IsZero() {
		when = created.UTC().Format(time.RFC3339)
	}
	return map[string]string{
		v1.AnnotationTitle:         title,
		v1.AnnotationDescription:   description,
		v1.AnnotationSource:        source,
		v1.AnnotationLicenses:      licenses,
		v1.AnnotationVersion:       version,
		v1.AnnotationRevision:      revision,
		v1.AnnotationCreated:       when,
		v1.AnnotationBaseImageName: base,
	}
}
