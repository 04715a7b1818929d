package engine

import (
	"context"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// VolumeUsers returns the names of the containers, running or not, that mount a named volume.
func (e *Engine) VolumeUsers(ctx context.Context, volume string) ([]string, error) {
	all, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("volume", volume))})
	if err != nil {
		return nil, e.explain("looking for containers that use volume "+volume, err)
	}
	var names []string
	for _, c := range all {
		for _, m := range c.Mounts { // the daemon's filter also takes a path that is mounted under that name
			if m.Name == volume && len(c.Names) > 0 {
				names = append(names, strings.TrimPrefix(c.Names[0], "/"))
				break
			}
		}
	}
	return names, nil
}
