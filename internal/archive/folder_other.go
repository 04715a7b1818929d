//go:build !unix

package archive

import (
	"errors"
	"io/fs"
	"time"
)

var quota = errors.New("quota")

func (f *folder) prepare() error { return nil }

func (f *folder) finish() {}

func (f *folder) names() ([]string, error) {
	dir, err := f.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	return names, errors.Join(err, dir.Close())
}

func (f *folder) setTime(name string, at time.Time) error {
	info, err := f.Lstat(name)
	if err != nil || info.Mode().Type() == fs.ModeSymlink { // a link's own time cannot be set here
		return err
	}
	return f.Chtimes(name, at, at)
}

const quiet = 0

type fileID struct{ dev, ino uint64 }

func identity(fs.FileInfo) (fileID, bool) { return fileID{}, false }

func owner(fs.FileInfo) (uid, gid int) { return 0, 0 }
