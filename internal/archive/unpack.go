package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// UnpackOptions say where things go and who hears of it.
type UnpackOptions struct {
	// Name is what the source is called when the destination is a directory that exists; "" means that its contents go there.
	Name string
	// Plain reads an archive of another program into a directory that exists.
	Plain bool
	// Special keeps the setuid and setgid bits of files. Without their owner they would let everybody act as whoever unpacks.
	Special bool
	// Ended is called when ctx ended and nothing half-written is left. It may be nil.
	Ended func()
	// Progress is told now and then how much was unpacked, from the calling goroutine. It may be nil.
	Progress func(Totals)
	// Warn is told, in a sentence, of what could not be made as it was, from one goroutine at a time. It may be nil.
	Warn func(string)
}

// Unpack reads a stream into dest, a path of this machine. Files take the place of files; a directory never takes that of a file, nor the
// other way round. It stops at the first failure, which is a [*Fault]; then each file is there whole, as it was before, or not at all.
//
// When ctx ends, what is half written is removed at once, even while r keeps Unpack waiting; Unpack itself ends with the next it reads.
func Unpack(ctx context.Context, r io.Reader, dest string, o UnpackOptions) (Totals, error) {
	o.Warn = oneAtATime(o.Warn)
	u := &unpacker{r: tar.NewReader(r), options: o, dest: dest, drafts: newDrafts()}
	defer u.drafts.abandon()
	defer context.AfterFunc(ctx, func() {
		u.drafts.abandon()
		if o.Ended != nil {
			o.Ended()
		}
	})()
	err := u.all()
	u.report(true)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return u.totals, faultOf("", err)
	}
	return u.totals, nil
}

func oneAtATime(warn func(string)) func(string) {
	if warn == nil {
		return func(string) {}
	}
	var mu sync.Mutex
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		warn(text)
	}
}

type unpacker struct {
	r       *tar.Reader
	options UnpackOptions
	dest    string // for messages
	only    string // the name of a source that is no directory, in its directory
	folders *folders
	drafts  *drafts
	crew    *crew
	dirs    []directory // made by us, to be given their modes and times
	totals  Totals
	shown   time.Time
	buffer  []byte
}

// directory is what a directory gets when all is in it.
type directory struct {
	name  string
	mode  fs.FileMode
	at    time.Time
	attrs map[string]string
}

func (u *unpacker) all() error {
	h, err := u.next()
	if err != nil && (!u.options.Plain || !errors.Is(err, io.EOF)) {
		return noStream(err)
	}
	where, err := u.place(h)
	if err != nil {
		return err
	}
	u.dest = where.target()
	top, err := os.OpenRoot(where.dir)
	if err != nil {
		return faultOf(where.dir, err)
	}
	if u.folders, err = newFolders(top); err != nil {
		return faultOf(where.dir, err)
	}
	defer u.folders.close()
	u.only = where.base
	u.crew = newCrew(u)
	err = u.entries(h, where)
	return errors.Join(err, u.crew.end())
}

func noStream(err error) error {
	if errors.Is(err, io.EOF) {
		return &Fault{Kind: Broken, Problem: "there is nothing to unpack: the other side sent no file", Err: err}
	}
	return badStream(err)
}

func badStream(err error) error {
	var known *Fault
	if errors.As(err, &known) {
		return err
	}
	problem := "the archive cannot be read: " + because(err)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		problem = "the archive ends in the middle of a file"
	}
	return &Fault{Kind: Broken, Problem: problem, Err: err}
}

// next is the next header; nil and [io.EOF] at the end.
func (u *unpacker) next() (*tar.Header, error) {
	for {
		h, err := u.r.Next()
		if err != nil {
			return nil, err
		}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader: // means nothing here
			continue
		case tar.TypeGNUSparse:
			if !u.options.Plain { // we have a form of our own; this one can say that it is endless
				return nil, &Fault{Kind: Broken, Path: h.Name, Problem: "the archive has a sparse file of a foreign form"}
			}
		}
		return h, nil
	}
}

// place decides where the stream goes, by its first entry.
func (u *unpacker) place(h *tar.Header) (place, error) {
	if u.options.Plain {
		info, err := os.Stat(u.dest)
		if err == nil && !info.IsDir() {
			err = &Fault{Kind: Mismatch, Path: u.dest, Problem: "is not a directory, and an archive needs one"}
		}
		if err != nil {
			return place{}, faultOf(u.dest, err)
		}
		return place{dir: u.dest}, nil
	}
	if path.Clean(h.Name) != root {
		return place{}, &Fault{Kind: Broken, Path: h.Name, Problem: "the archive does not begin with what was asked for"}
	}
	if name := u.options.Name; name != "" && (filepath.Base(name) != name || name == "." || name == "..") {
		return place{}, &Fault{Kind: Broken, Path: name, Problem: "is not the name of a file"}
	}
	return choose(u.dest, u.options.Name, h.Typeflag == tar.TypeDir)
}

// entries makes everything, the one of header h first.
func (u *unpacker) entries(h *tar.Header, where place) error {
	for first := true; h != nil; first = false {
		name, err := u.name(h, first, where)
		if err != nil {
			return err
		}
		if err := u.entry(h, name, where); err != nil {
			return err
		}
		if err := u.crew.failure(); err != nil {
			return err
		}
		if h, err = u.next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return badStream(err)
		}
	}
	if err := u.crew.wait(); err != nil {
		return err
	}
	return u.finish("")
}

// name is where below the root an entry goes.
func (u *unpacker) name(h *tar.Header, first bool, where place) (string, error) {
	raw := h.Name
	if u.options.Plain {
		raw = strings.TrimLeft(raw, "/") // as other programs do
		if raw == "" {
			raw = root
		}
	}
	name, err := local(raw)
	if err != nil || u.options.Plain {
		return name, err
	}
	if first && where.base != "" {
		return where.base, nil
	}
	if where.base != "" || !first && name == root {
		return "", &Fault{Kind: Broken, Path: h.Name, Problem: "the archive has more than what was asked for"}
	}
	return name, nil
}

// shownName is an entry's path for messages.
func (u *unpacker) shownName(name string) string {
	switch {
	case name == root, u.only != "":
		return u.dest
	default:
		return filepath.Join(u.dest, filepath.FromSlash(name))
	}
}

func (u *unpacker) entry(h *tar.Header, name string, where place) error {
	if err := u.make(h, name, where); err != nil {
		return faultOf(u.shownName(name), err)
	}
	if h.Typeflag != tar.TypeDir {
		u.totals.Files++
	}
	u.report(false)
	return nil
}

func (u *unpacker) make(h *tar.Header, name string, where place) error {
	if h.Typeflag == tar.TypeDir {
		return u.directory(h, name, where)
	}
	if name == root {
		return &Fault{Kind: Broken, Path: h.Name, Problem: "the archive has a file without a name"}
	}
	f, err := u.parent(name)
	if err != nil {
		return err
	}
	defer u.folders.release(f)
	base := path.Base(name)
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return u.regular(h, f, name)
	case tar.TypeSymlink, tar.TypeLink, tar.TypeFifo:
		// What these are about may still be in the hands of the crew.
		if err := u.crew.wait(); err != nil {
			return err
		}
	case tar.TypeChar, tar.TypeBlock:
		u.options.Warn(Shown(u.shownName(name)) + " is a device, left out")
		u.totals.Files--
		return nil
	default:
		return &Fault{Kind: Broken, Path: h.Name, Problem: fmt.Sprintf("the archive has an entry of the unknown kind %q", h.Typeflag)}
	}
	switch h.Typeflag {
	case tar.TypeSymlink:
		return u.drafts.replace(f, base, func(draft string) error {
			if err := f.Symlink(h.Linkname, draft); err != nil {
				return err
			}
			return f.setTime(draft, h.ModTime)
		})
	case tar.TypeLink:
		return u.link(h, f, base)
	default:
		return u.pipe(h, f, base)
	}
}

func (u *unpacker) pipe(h *tar.Header, f *folder, base string) error {
	err := u.drafts.replace(f, base, func(draft string) error {
		if err := f.makePipe(draft, h.FileInfo().Mode()); err != nil {
			return err
		}
		return f.setTime(draft, h.ModTime)
	})
	if errors.Is(err, errors.ErrUnsupported) {
		u.options.Warn(Shown(u.shownName(base)) + " is a named pipe, which there are none of here: left out")
		u.totals.Files--
		return nil
	}
	return err
}

// mode is what a file gets.
func (u *unpacker) mode(h *tar.Header) fs.FileMode {
	mode := h.FileInfo().Mode()
	if u.options.Special {
		return mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	}
	return mode & (fs.ModePerm | fs.ModeSticky)
}

func (u *unpacker) report(last bool) {
	if u.options.Progress == nil {
		return
	}
	if now := time.Now(); last || now.Sub(u.shown) >= progressEvery {
		u.shown = now
		u.options.Progress(u.totals)
	}
}
