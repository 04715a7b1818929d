// Package agentbin carries the static in-container agents, one per architecture, that
// scripts/build-agent put into bin/ before the build. A binary built without that step
// works up to the moment it needs an agent, and then says so with ErrNotBuilt.
package agentbin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// The all: prefix and the committed README keep the pattern valid in a clean clone.
//
//go:embed all:bin
var embedded embed.FS

// ErrNotBuilt says that this binary was built without its agents. The remedy is `make build`.
var ErrNotBuilt = errors.New("this dockerbox was built without the in-container agent: run `make build`")

// architectures are in Go's notation, which is also that of OCI platforms.
var architectures = []string{"amd64", "arm64"}

// Architectures returns those that dockerbox has agents for. Each call gives a fresh slice; no I/O.
func Architectures() []string { return slices.Clone(architectures) }

// Binary returns the Linux agent for an architecture in Go's notation ("amd64", "arm64").
// The error is ErrNotBuilt where the build left it out, another one where dockerbox has no
// agent for that architecture. The slice is a fresh copy; no I/O; safe for concurrent use.
func Binary(arch string) ([]byte, error) {
	return load(embedded, arch)
}

// Digest returns the SHA-256 of Binary(arch) in hex, with the same errors. It reads the
// whole binary, some 3 MB, each time.
func Digest(arch string) (string, error) {
	return digest(embedded, arch)
}

func load(files fs.FS, arch string) ([]byte, error) {
	if !slices.Contains(architectures, arch) {
		return nil, fmt.Errorf("there is no agent for architecture %q, only for %s", arch, strings.Join(architectures, ", "))
	}
	data, err := fs.ReadFile(files, "bin/dockerbox-agent-linux-"+arch)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("agent for linux/%s: %w", arch, ErrNotBuilt)
	}
	if err != nil {
		return nil, fmt.Errorf("read embedded agent for linux/%s: %w", arch, err)
	}
	return data, nil
}

func digest(files fs.FS, arch string) (string, error) {
	data, err := load(files, arch)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
