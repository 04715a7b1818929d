package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// Create makes a container without starting it and returns its id, and in the daemon's own words which settings it discarded. The error is
// an [ErrConflict] when the name is taken and an [ErrNotFound] when the image is missing.
func (e *Engine) Create(ctx context.Context, name string, cfg *container.Config, host *container.HostConfig) (id string, warnings []string, err error) {
	if err := e.ready(ctx); err != nil {
		return "", nil, err
	}
	made, err := e.api.ContainerCreate(ctx, cfg, host, nil, nil, name)
	if err != nil {
		return "", nil, e.explain("creating container "+name, err)
	}
	return made.ID, made.Warnings, nil
}

// Start starts a container; one that runs already is no error.
func (e *Engine) Start(ctx context.Context, id string) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	return e.explain("starting container "+short(id), e.api.ContainerStart(ctx, id, container.StartOptions{}))
}

// Inspect describes a container, by id or name. [ErrNotFound] when there is none.
func (e *Engine) Inspect(ctx context.Context, id string) (container.InspectResponse, error) {
	if err := e.ready(ctx); err != nil {
		return container.InspectResponse{}, err
	}
	c, err := e.api.ContainerInspect(ctx, id)
	return c, e.explain("looking at container "+short(id), err)
}

// List returns the containers, running or not, that carry all labels ("key" or "key=value").
func (e *Engine) List(ctx context.Context, labels ...string) ([]container.Summary, error) {
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	args := filters.NewArgs()
	for _, l := range labels {
		args.Add("label", l)
	}
	all, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: args})
	return all, e.explain("listing containers", err)
}

// Remove ends and removes a container with its anonymous volumes. A container that is gone already is no error.
func (e *Engine) Remove(ctx context.Context, id string) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	err := e.explain("removing container "+short(id), e.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true}))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// ReadFile returns a file of a container, running or not, up to limit bytes; the rest is an error. [ErrNotFound] when it is missing.
func (e *Engine) ReadFile(ctx context.Context, id, path string, limit int64) ([]byte, error) {
	did := fmt.Sprintf("reading %s of container %s", path, short(id))
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	archive, _, err := e.api.CopyFromContainer(ctx, id, path)
	if err != nil {
		return nil, e.explain(did, err)
	}
	defer func() { _ = archive.Close() }() // read only: nothing to lose
	entries := tar.NewReader(archive)
	if _, err := entries.Next(); err != nil {
		return nil, e.explain(did, err)
	}
	data, err := io.ReadAll(io.LimitReader(entries, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, e.explain(did, err)
}

// FileSize returns the size of a file of a container in bytes, running or not. [ErrNotFound] when it is missing.
func (e *Engine) FileSize(ctx context.Context, id, path string) (int64, error) {
	if err := e.ready(ctx); err != nil {
		return 0, err
	}
	stat, err := e.api.ContainerStatPath(ctx, id, path)
	return stat.Size, e.explain(fmt.Sprintf("looking at %s of container %s", path, short(id)), err)
}

// WriteFile puts a file owned by root into directory dir of a container, running or not. It appears under its name only when it is
// complete, so a second writer of the same file never exposes half of it.
func (e *Engine) WriteFile(ctx context.Context, id, dir, name string, mode int64, data []byte) error {
	var archive bytes.Buffer
	entries := tar.NewWriter(&archive)
	staged := "." + name + ".new"
	// The archive API has no rename; a hard link made after the data is the nearest thing to one.
	headers := []*tar.Header{
		{Typeflag: tar.TypeReg, Name: staged, Mode: mode, Size: int64(len(data))},
		{Typeflag: tar.TypeLink, Name: name, Linkname: staged, Mode: mode},
	}
	for _, h := range headers {
		if err := entries.WriteHeader(h); err != nil {
			return err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := entries.Write(data); err != nil {
				return err
			}
		}
	}
	if err := entries.Close(); err != nil {
		return err
	}
	if err := e.ready(ctx); err != nil {
		return err
	}
	err := e.api.CopyToContainer(ctx, id, dir, &archive, container.CopyToContainerOptions{})
	return e.explain(fmt.Sprintf("writing %s/%s of container %s", dir, name, short(id)), err)
}

// short is the 12 characters people know a container by; names stay whole.
func short(id string) string {
	const idLength, shown = 64, 12
	if len(id) == idLength {
		return id[:shown]
	}
	return id
}
