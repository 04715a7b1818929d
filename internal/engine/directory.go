package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// Directory is one that [Engine.MakeDirectories] makes. Path is absolute. Mode holds permission bits; 0 is 0755 for one that is made and
// the mode it has for one that is there.
type Directory struct {
	Path     string
	Mode     int64
	UID, GID int
}

// MakeDirectories makes directories in a container, running or not, in its volumes and mounts too, and in their order: outer ones come before
// inner ones. One that is there takes on the owner. What is below a link is left alone, and so is the link.
func (e *Engine) MakeDirectories(ctx context.Context, id string, dirs []Directory) error {
	did := "making directories in container " + short(id)
	var archive bytes.Buffer
	entries := tar.NewWriter(&archive)
	var links []string
	for _, d := range dirs {
		if slices.ContainsFunc(links, func(link string) bool { return strings.HasPrefix(d.Path, link+"/") }) {
			continue
		}
		there, err := e.api.ContainerStatPath(ctx, id, d.Path)
		switch {
		case err != nil && !errdefs.IsNotFound(err):
			return e.explain(did, err)
		case err == nil && there.Mode&fs.ModeSymlink != 0:
			links = append(links, d.Path)
			continue
		case d.Mode == 0 && err == nil:
			d.Mode = permissions(there.Mode)
		case d.Mode == 0:
			const usual = 0o755
			d.Mode = usual
		}
		err = entries.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: strings.TrimPrefix(d.Path, "/") + "/", Mode: d.Mode, Uid: d.UID, Gid: d.GID, ModTime: time.Now(),
		})
		if err != nil {
			return err
		}
	}
	if err := entries.Close(); err != nil {
		return err
	}
	return e.explain(did, e.api.CopyToContainer(ctx, id, "/", &archive, container.CopyToContainerOptions{}))
}

// permissions are the bits of a mode as a tar file has them.
func permissions(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}
