//go:build linux

package enginetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/mount"
)

// place is where a file of a container is: in the image, or in a volume on this machine.
type place struct {
	text  string // of an image's file
	image bool
	path  string
}

// locate finds a file of a container. Only what the provider asks for exists: the image's accounts, and volumes.
func (e *Engine) locate(id, file string) (place, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, ok := e.find(id)
	if !ok {
		return place{}, notFound("there is no container %s", id)
	}
	switch file {
	case "/etc/passwd":
		return place{text: b.image.passwd(), image: true}, nil
	case "/etc/group":
		return place{text: b.image.group(), image: true}, nil
	}
	best := ""
	var found place
	for _, m := range b.host.Mounts {
		rest, below := strings.CutPrefix(file, m.Target)
		if !below || rest != "" && rest[0] != '/' || len(m.Target) < len(best) {
			continue
		}
		root := e.path("volumes", m.Source)
		if m.Type == mount.TypeBind {
			root = m.Source
		}
		best, found = m.Target, place{path: root + path.Clean("/"+rest)}
	}
	if best != "" {
		return found, nil
	}
	if file == b.image.home {
		return place{image: true}, nil
	}
	return place{}, notFound("container %s has no file %s", short(id), file)
}

// ReadFile implements the provider's engine.
func (e *Engine) ReadFile(ctx context.Context, id, file string, limit int64) ([]byte, error) {
	if err := e.enter(ctx, OpReadFile); err != nil {
		return nil, err
	}
	p, err := e.locate(id, file)
	if err != nil {
		return nil, err
	}
	data := []byte(p.text)
	if !p.image {
		if data, err = os.ReadFile(p.path); err != nil {
			return nil, explain(err)
		}
	}
	if int64(len(data)) > limit {
		return data, failure(nil, "reading %s of container %s: it is larger than %d bytes", file, short(id), limit)
	}
	return data, nil
}

// FileSize implements the provider's engine.
func (e *Engine) FileSize(ctx context.Context, id, file string) (int64, error) {
	if err := e.enter(ctx, OpFileSize); err != nil {
		return 0, err
	}
	p, err := e.locate(id, file)
	if err != nil || p.image {
		return int64(len(p.text)), err
	}
	info, err := os.Stat(p.path)
	if err != nil {
		return 0, explain(err)
	}
	return info.Size(), nil
}

// WriteFile implements the provider's engine. A program that runs is replaced, not written into.
func (e *Engine) WriteFile(ctx context.Context, id, dir, name string, mode int64, data []byte) error {
	if err := e.enter(ctx, OpWriteFile); err != nil {
		return err
	}
	p, err := e.locate(id, path.Join(dir, name))
	if err != nil {
		return err
	}
	if p.image {
		return failure(nil, "writing %s/%s: it is the image's", dir, name)
	}
	const everybody = 0o755
	if err := os.MkdirAll(path.Dir(p.path), everybody); err != nil {
		return explain(err)
	}
	return explain(replace(p.path, fs.FileMode(mode), data))
}

// replace writes a file that appears whole. Nothing forks meanwhile: a child that inherited the descriptor would keep the file from being
// executed until it executes something else itself.
func replace(file string, mode fs.FileMode, data []byte) (err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	staged, err := os.CreateTemp(path.Dir(file), "new-")
	if err != nil {
		return err
	}
	_, err = staged.Write(data)
	if err = errors.Join(err, staged.Chmod(mode), staged.Close()); err != nil {
		return err
	}
	return os.Rename(staged.Name(), file)
}

func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return notFound("%v", err)
	default:
		return failure(err, "%v", err)
	}
}
