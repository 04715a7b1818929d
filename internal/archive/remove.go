package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Remove removes files below a directory by their slash-separated paths, and returns how many there were. It does not leave the directory, and removes no
// directory with something in it. What is not there is no failure; the first other one is returned at the end.
func Remove(dir string, names []string) (removed int64, err error) {
	top, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, faultOf(dir, err)
	}
	defer func() { err = errors.Join(err, top.Close()) }()
	var first error
	for _, name := range names {
		clean, err := local(name)
		if err == nil && clean != root {
			err = top.Remove(filepath.FromSlash(clean))
		}
		switch {
		case err == nil:
			removed++
		case !errors.Is(err, fs.ErrNotExist) && first == nil:
			first = faultOf(filepath.Join(dir, name), err)
		}
	}
	return removed, first
}
