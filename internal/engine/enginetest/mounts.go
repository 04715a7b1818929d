//go:build linux

package enginetest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Warn makes each container that is created from now on come with the daemon's warnings.
func (e *Engine) Warn(warnings ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.warnings = warnings
}

// sources refuses a bind mount whose source is missing, in the daemon's words, and makes volumes that are, as daemons do. e.mu is held.
func (e *Engine) sources(name string, host *container.HostConfig) error {
	for _, m := range host.Mounts {
		switch m.Type {
		case mount.TypeBind:
			if _, err := os.Stat(m.Source); err != nil {
				return failure(err, "creating container %s: invalid mount config for type \"bind\": bind source path does not exist: %s", name, m.Source)
			}
		case mount.TypeVolume:
			if _, there := e.volumes[m.Source]; !there {
				e.volumes[m.Source] = volume{created: time.Now()}
			}
		}
	}
	return nil
}

// VolumeUsers implements the provider's engine.
func (e *Engine) VolumeUsers(ctx context.Context, name string) ([]string, error) {
	if err := e.enter(ctx, OpVolumeUsers); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var users []string
	for _, b := range e.containers {
		if slices.ContainsFunc(b.host.Mounts, func(m mount.Mount) bool { return m.Source == name }) {
			users = append(users, b.name)
		}
	}
	slices.Sort(users)
	return users, nil
}

// MakeDirectories implements the provider's engine for what is in a mount; elsewhere it is the image's, which has none of its own here.
func (e *Engine) MakeDirectories(ctx context.Context, id string, dirs []engine.Directory) error {
	if err := e.enter(ctx, OpMakeDirectories); err != nil {
		return err
	}
	for _, d := range dirs {
		p, err := e.locate(id, d.Path)
		if err != nil {
			continue
		}
		if err := e.makeDirectory(p.path, d); err != nil {
			return explain(err)
		}
	}
	return nil
}

// makeDirectory makes d at file. The directory of a volume appears with what is first put into it, and is the account's, as the copy of the
// image's would be.
func (e *Engine) makeDirectory(file string, d engine.Directory) error {
	const everybody = 0o755
	if rest, below := strings.CutPrefix(file, e.path("volumes")+"/"); below {
		name, _, _ := strings.Cut(rest, "/")
		err := os.Mkdir(e.path("volumes", name), everybody)
		if err == nil {
			uid, gid := account()
			err = os.Chown(e.path("volumes", name), uid, gid)
		}
		if err != nil && !os.IsExist(err) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Clean(file), everybody); err != nil {
		return err
	}
	if d.Mode != 0 {
		if err := os.Chmod(file, os.FileMode(d.Mode)); err != nil {
			return err
		}
	}
	return os.Chown(file, d.UID, d.GID)
}
