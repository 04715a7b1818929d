//go:build !linux

package archive

import (
	"errors"
	"io/fs"
	"os"
)

func (f *folder) makePipe(string, fs.FileMode) error { return errors.ErrUnsupported }

func (f *folder) attributes() map[string]string { return nil }

func (f *folder) setAttributes(map[string]string) (unset string) { return "" }

func pieces(*os.File, fs.FileInfo) (found []piece, ok bool, err error) { return nil, false, nil }

func attributes(*os.File) map[string]string { return nil }

func setAttributes(*os.File, map[string]string) (unset string) { return "" }
