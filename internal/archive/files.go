package archive

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// File is one of several to pack: Source on this machine, Name its path in the archive, with slashes.
type File struct{ Source, Name string }

// PackFiles writes regular files to w as a plain archive. One that is no regular file, has more than limit bytes (0: any) or cannot be read is
// left out, and the first such is a [*Fault] of kind Partial at the end. Links are not followed.
func PackFiles(w io.Writer, files []File, limit int64) (Totals, error) {
	p := newPacker(w, PackOptions{Plain: true, Warn: func(string) {}})
	for _, file := range files {
		p.display = file.Source
		if err := p.one(file, limit); err != nil {
			return p.totals, faultOf(file.Source, err)
		}
	}
	if err := p.finish(); err != nil {
		return p.totals, faultOf("", err)
	}
	return p.totals, nil
}

func (p *packer) one(file File, limit int64) error {
	name, err := local(file.Name)
	if err != nil {
		return err
	}
	info, err := os.Lstat(file.Source)
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("is not a regular file")
	case limit > 0 && info.Size() > limit:
		err = fmt.Errorf("has %d bytes, and the most that is delivered is %d", info.Size(), limit)
	}
	if err != nil {
		p.missed(file.Source, err)
		return nil
	}
	e := entry{info: info, rel: name, open: func() (*os.File, error) { return os.OpenFile(file.Source, os.O_RDONLY|quiet, 0) }}
	before := p.failed
	packed, err := p.regular(p.header(name, info), e)
	if err == nil && !packed && before == nil && p.failed != nil {
		p.failed.Path = file.Source
	}
	if packed {
		p.totals.Files++
	}
	return err
}

func (p *packer) missed(source string, err error) {
	p.missing++
	if p.failed == nil {
		p.failed = &Fault{Kind: Partial, Path: filepath.ToSlash(source), Problem: cmp.Or(because(err), "cannot be read") + ", left out", Err: err}
	}
}
