package archive

import (
	"archive/tar"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// link makes a hard link to something below the root.
func (u *unpacker) link(h *tar.Header, f *folder, base string) error {
	to := h.Linkname
	if u.options.Plain {
		to = strings.TrimLeft(to, "/")
	}
	to, err := local(to)
	if err != nil {
		return err
	}
	if to == root || u.only != "" {
		return &Fault{Kind: Broken, Path: h.Linkname, Problem: "the archive has a link to what cannot have one"}
	}
	top, err := u.folders.get(root)
	if err != nil {
		return err
	}
	defer u.folders.release(top)
	// Its name until it is renamed is one of the root's, for only there both names are known.
	return u.drafts.replace(f, base, func(draft string) error {
		at := draft
		if f.path != root {
			at = f.path + "/" + draft
		}
		return top.Link(filepath.FromSlash(to), filepath.FromSlash(at))
	})
}

// parent opens the directory that an entry goes into, and makes it when the archive did not.
func (u *unpacker) parent(name string) (*folder, error) {
	f, err := u.folders.get(path.Dir(name))
	if !errors.Is(err, fs.ErrNotExist) || !u.options.Plain {
		return f, err
	}
	top, err := u.folders.get(root)
	if err != nil {
		return nil, err
	}
	defer u.folders.release(top)
	const usual = 0o777 // less the umask
	if err := top.MkdirAll(filepath.FromSlash(path.Dir(name)), usual); err != nil {
		return nil, err
	}
	return u.folders.get(path.Dir(name))
}

// directory makes a directory, or takes the one that is there as it is.
func (u *unpacker) directory(h *tar.Header, name string, where place) error {
	mine := directory{name: name, mode: h.FileInfo().Mode(), at: h.ModTime, attrs: h.PAXRecords}
	if name == root {
		if where.fresh {
			u.dirs = append(u.dirs, mine)
		}
		return nil
	}
	f, err := u.parent(name)
	if err != nil {
		return err
	}
	defer u.folders.release(f)
	if u.crew.has(name) {
		if err := u.crew.wait(); err != nil {
			return err
		}
	}
	const private = 0o700 // until all is there
	switch err := f.Mkdir(path.Base(name), private); {
	case err == nil:
		const most = 100_000
		if u.dirs = append(u.dirs, mine); len(u.dirs) > most {
			return u.finish(name)
		}
		return nil
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	info, err := f.Lstat(path.Base(name))
	if err == nil && !info.IsDir() {
		err = &Fault{Kind: Mismatch, Path: u.shownName(name), Problem: "is not a directory, and a directory cannot take its place"}
	}
	return err
}

// finish gives directories their modes and times, from the innermost out: those in which nothing more is to be made, which are all but the
// ones above at, or all of them.
func (u *unpacker) finish(at string) error {
	if err := u.crew.wait(); err != nil {
		return err
	}
	var later []directory
	for i := len(u.dirs) - 1; i >= 0; i-- {
		d := u.dirs[i]
		if at != "" && (d.name == root || at == d.name || strings.HasPrefix(at, d.name+"/")) {
			later = append([]directory{d}, later...)
			continue
		}
		if err := u.settle(d); err != nil {
			return faultOf(u.shownName(d.name), err)
		}
	}
	u.dirs = later
	return nil
}

func (u *unpacker) settle(d directory) error {
	f, err := u.folders.get(d.name)
	if err != nil {
		return err
	}
	defer u.folders.release(f)
	if name := f.setAttributes(d.attrs); name != "" {
		u.options.Warn(Shown(u.shownName(d.name)) + " could not be given the attribute " + Shown(name))
	}
	// Only what everybody may do and the sticky bit: a group that new files would get is the source's, and there is none of that here.
	if err := f.Chmod(".", d.mode&(fs.ModePerm|fs.ModeSticky|u.groupBit())); err != nil {
		return err
	}
	return f.setTime(".", d.at)
}

func (u *unpacker) groupBit() fs.FileMode {
	if u.options.Special {
		return fs.ModeSetgid
	}
	return 0
}
