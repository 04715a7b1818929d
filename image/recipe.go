package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// files is the build context of DefaultTag, without the certificates that may be added to it.
//
//go:embed Dockerfile.desktop ca/README fetch all:files
var files embed.FS

// Dockerfile is the name of DefaultTag's recipe in its build context.
const Dockerfile = "Dockerfile.desktop"

// certificates is where the recipe looks for a certificate authority.
const certificates = "ca/ca.crt"

// The arguments of the recipe.
const (
	ArgBase     = "BASE_IMAGE"
	ArgVersion  = "VERSION"
	ArgRevision = "REVISION"
	ArgCreated  = "CREATED"
)

// each calls f with every file of the build context, in order of their names.
func each(f func(name string, data []byte) error) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return f(name, data)
	})
}

// Context returns the build context as a tar archive. Of authorities, a PEM file such as a proxy's, it takes the certificates alone: they let
// the build reach the registries and are in no image that is kept. The same authorities give the same bytes.
func Context(authorities []byte) ([]byte, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	add := func(name string, data []byte) error {
		const mode = 0o644 // the recipe sets the others: a file system or an embedding may have lost them
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	if err := each(add); err != nil {
		return nil, fmt.Errorf("pack the build context: %w", err)
	}
	if only := onlyCertificates(authorities); len(only) > 0 {
		if err := add(certificates, only); err != nil {
			return nil, fmt.Errorf("pack the build context: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack the build context: %w", err)
	}
	return archive.Bytes(), nil
}

// onlyCertificates drops what else a PEM file may hold, a private key above all.
func onlyCertificates(text []byte) []byte {
	var only []byte
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return only
		}
		if block.Type == "CERTIFICATE" {
			block.Headers = nil
			only = append(only, pem.EncodeToMemory(block)...)
		}
	}
}

// Digest is the value of RecipeLabel for an image built on the base with that id: SHA-256, in hex, over the recipe, every file it copies
// and the base. What a certificate authority or a label says does not count.
func Digest(baseID string) string {
	sum := sha256.New()
	_ = each(func(name string, data []byte) error { // a hash takes everything, and what is embedded can be read
		_, _ = fmt.Fprintf(sum, "%s %d\n", path.Clean(name), len(data))
		_, err := sum.Write(data)
		return err
	})
	_, _ = io.WriteString(sum, baseID)
	return hex.EncodeToString(sum.Sum(nil))
}
