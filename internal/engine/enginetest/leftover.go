//go:build linux

package enginetest

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// ListVolumes implements the provider's engine.
func (e *Engine) ListVolumes(ctx context.Context, labels ...string) ([]engine.Volume, error) {
	if err := e.enter(ctx, OpListVolumes); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []engine.Volume
	for _, name := range slices.Sorted(maps.Keys(e.volumes)) {
		v := e.volumes[name]
		if !slices.ContainsFunc(labels, func(l string) bool { return !hasLabel(v.labels, l) }) {
			all = append(all, engine.Volume{Name: name, Labels: v.labels, Created: v.created.Truncate(time.Second)})
		}
	}
	return all, nil
}

// VolumeSizes implements the provider's engine: the bytes in the files of volumes that no container uses.
func (e *Engine) VolumeSizes(ctx context.Context) (map[string]int64, error) {
	if err := e.enter(ctx, OpVolumeSizes); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	sizes := map[string]int64{}
	for name := range e.volumes {
		sizes[name] = 0
		err := filepath.WalkDir(e.path("volumes", name), func(_ string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) { // nothing was put into it yet
				return nil
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				sizes[name] += info.Size()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

// NamelessImages implements the provider's engine.
func (e *Engine) NamelessImages(ctx context.Context, labels ...string) ([]engine.Nameless, error) {
	if err := e.enter(ctx, OpNamelessImages); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []engine.Nameless
	for _, ref := range slices.Sorted(maps.Keys(e.images)) {
		i := e.images[ref]
		if strings.HasPrefix(ref, untagged) && len(e.names(i.id)) == 0 &&
			!slices.ContainsFunc(labels, func(l string) bool { return !hasLabel(i.labels, l) }) {
			all = append(all, engine.Nameless{ID: i.id, Labels: i.labels, Created: i.created.Truncate(time.Second), Size: imageSize})
		}
	}
	return all, nil
}
