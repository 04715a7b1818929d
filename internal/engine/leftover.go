package engine

import (
	"context"
	"strings"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"
)

// Volume is a named volume.
type Volume struct {
	Name   string
	Labels map[string]string
	// Created is when it was made, the zero time where the daemon does not say.
	Created time.Time
}

// ListVolumes returns the volumes that carry all labels ("key" or "key=value").
func (e *Engine) ListVolumes(ctx context.Context, labels ...string) ([]Volume, error) {
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	found, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: labelled(labels)})
	if err != nil {
		return nil, e.explain("listing volumes", err)
	}
	all := make([]Volume, 0, len(found.Volumes))
	for _, v := range found.Volumes {
		made, err := time.Parse(time.RFC3339, v.CreatedAt)
		if err != nil {
			made = time.Time{} // not every driver tells
		}
		all = append(all, Volume{Name: v.Name, Labels: v.Labels, Created: made})
	}
	return all, nil
}

// VolumeSizes measures the daemon's volumes, in bytes by name; those it cannot measure are missing. It goes through all of their files, and
// before API 1.42 through those of containers and images too.
func (e *Engine) VolumeSizes(ctx context.Context) (map[string]int64, error) {
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	used, err := e.api.DiskUsage(ctx, types.DiskUsageOptions{Types: []types.DiskUsageObject{types.VolumeObject}})
	if err != nil {
		return nil, e.explain("measuring volumes", err)
	}
	sizes := map[string]int64{}
	for _, v := range used.Volumes {
		if v.UsageData != nil && v.UsageData.Size >= 0 {
			sizes[v.Name] = v.UsageData.Size
		}
	}
	return sizes, nil
}

// Nameless is an image that lost its name to a newer one.
type Nameless struct {
	ID      string
	Labels  map[string]string
	Created time.Time
	// Size is in bytes, layers that others share included.
	Size int64
}

// NamelessImages returns the images without a name, and on which no other is built, that carry all labels.
func (e *Engine) NamelessImages(ctx context.Context, labels ...string) ([]Nameless, error) {
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	args := labelled(labels)
	args.Add("dangling", "true")
	found, err := e.api.ImageList(ctx, image.ListOptions{Filters: args})
	if err != nil {
		return nil, e.explain("listing images", err)
	}
	var all []Nameless
	for _, i := range found {
		named := false
		for _, tag := range i.RepoTags {
			named = named || !strings.HasPrefix(tag, "<none>")
		}
		if !named {
			all = append(all, Nameless{ID: i.ID, Labels: i.Labels, Created: time.Unix(i.Created, 0), Size: i.Size})
		}
	}
	return all, nil
}

func labelled(labels []string) filters.Args {
	args := filters.NewArgs()
	for _, l := range labels {
		args.Add("label", l)
	}
	return args
}
