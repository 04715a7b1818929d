package archive

import (
	"archive/tar"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// PackOptions say what is packed and who hears of it.
type PackOptions struct {
	// Tree allows a directory as the source.
	Tree bool
	// Plain makes an archive for other programs: names begin with Name, holes are zeros.
	Plain bool
	// Name is the first part of the names of a plain archive; "" or "." for none.
	Name string
	// Progress is told now and then how much was packed, from the calling goroutine. It may be nil.
	Progress func(Totals)
	// Warn is told of what was left out, in a sentence. It may be nil.
	Warn func(string)
}

// Pack writes source, a path of this machine, to w. A link is packed as a link unless a slash follows it. What cannot be read is complained
// about to Warn and left out, and leads to a Fault of kind Partial at the end; so does nothing else. What is no file, directory, link or
// named pipe is warned about and left out. It reads files and writes to w; errors are [*Fault].
func Pack(w io.Writer, source string, o PackOptions) (Totals, error) {
	p := newPacker(w, o)
	p.display = source
	if p.options.Warn == nil {
		p.options.Warn = func(string) {}
	}
	if o.Plain {
		p.prefix = cmp.Or(o.Name, root)
	}
	err := p.source(source)
	if err == nil {
		err = p.finish()
	}
	p.report(true)
	if err != nil {
		return p.totals, faultOf("", err)
	}
	return p.totals, nil
}

func newPacker(w io.Writer, o PackOptions) *packer {
	b := bufio.NewWriterSize(w, packBuffer) // is w itself if that is one; an archive is written in many small pieces
	return &packer{b: b, w: tar.NewWriter(b), prefix: root, options: o, linked: map[fileID]string{}}
}

// finish ends the stream and returns what was left out.
func (p *packer) finish() error {
	if err := errors.Join(p.w.Close(), p.b.Flush()); err != nil {
		return err
	}
	if p.failed == nil {
		return nil
	}
	if more := p.missing - 1; more > 0 {
		p.failed.Problem += fmt.Sprintf("; so are %d others", more)
	}
	return p.failed
}

type packer struct {
	b       *bufio.Writer
	w       *tar.Writer // writes to b
	options PackOptions
	prefix  string
	display string // the source, for messages
	linked  map[fileID]string
	totals  Totals
	shown   time.Time
	failed  *Fault // the first of what was left out although it should not have been
	missing int    // how many that are
	alone   bool   // the source is no directory: without it there is nothing
	buffer  []byte
}

func (p *packer) source(source string) error {
	// A slash behind a link asks for what it points to, as for any other program.
	stat := os.Lstat
	if Folder(source) {
		stat = os.Stat
	}
	info, err := stat(source)
	if err != nil {
		return faultOf(source, err)
	}
	if !info.IsDir() {
		if Folder(source) {
			return &Fault{Kind: Mismatch, Path: source, Problem: "is not a directory"}
		}
		return p.single(source, info)
	}
	if !p.options.Tree {
		return &Fault{Kind: Directory, Path: source, Problem: "is a directory"}
	}
	top, err := os.OpenRoot(source)
	if err != nil {
		return faultOf(source, err)
	}
	all, err := newFolders(top)
	if err != nil {
		return faultOf(source, err)
	}
	defer all.close()
	return p.walk(all, info)
}

// Folder reports whether a path is written as a directory's.
func Folder(path string) bool {
	path = filepath.ToSlash(path)
	return strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.") || path == "." || path == ".." || strings.HasSuffix(path, "/..")
}

// single packs a source that is no directory.
func (p *packer) single(source string, info fs.FileInfo) error {
	e := entry{info: info, rel: root, open: func() (*os.File, error) { return os.OpenFile(source, os.O_RDONLY|quiet, 0) }}
	if info.Mode().Type() == fs.ModeSymlink {
		var err error
		if e.link, err = os.Readlink(source); err != nil {
			return faultOf(source, err)
		}
	}
	if why := unsupported(info.Mode()); why != "" {
		return &Fault{Kind: Mismatch, Path: source, Problem: why + " and cannot be copied"}
	}
	p.alone = true
	if err := p.add(e); err != nil || p.failed == nil {
		return err
	}
	return p.failed
}

// unsupported is why a kind of file is not copied, "" if it is.
func unsupported(mode fs.FileMode) string {
	switch mode.Type() {
	case 0, fs.ModeDir, fs.ModeSymlink, fs.ModeNamedPipe:
		return ""
	case fs.ModeSocket:
		return "is a socket"
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		return "is a device"
	default:
		return "is no file of a known kind"
	}
}

// entry is a file on its way into the stream.
type entry struct {
	info fs.FileInfo
	rel  string // below the source
	link string // of a link
	open func() (*os.File, error)
}

// waiting is a directory whose turn comes.
type waiting struct {
	rel  string
	info fs.FileInfo
}

// walk packs the directory and all below it, each directory right before what is in it, for readers that give it its time as soon as something
// else comes. The one looked at last comes next, so that what [folders] keeps open is what is near.
func (p *packer) walk(all *folders, top fs.FileInfo) error {
	turns := []waiting{{root, top}}
	for len(turns) > 0 {
		next := turns[len(turns)-1]
		turns = turns[:len(turns)-1]
		if err := p.directory(all, next.rel, next.info); err != nil {
			return err
		}
		below, err := p.contents(all, next.rel)
		if err != nil {
			return err
		}
		slices.Reverse(below)
		turns = append(turns, below...)
	}
	return nil
}

// contents packs what is in a directory but the directories, which it returns.
func (p *packer) contents(all *folders, name string) (below []waiting, err error) {
	f, err := all.get(name)
	if err != nil {
		p.leaveOut(name, err)
		return nil, nil
	}
	defer all.release(f)
	names, err := f.names()
	if err != nil {
		p.leaveOut(name, err)
	}
	slices.Sort(names)
	for _, base := range names {
		rel := base
		if name != root {
			rel = name + "/" + base
		}
		if len(p.named(rel)) >= maxName { // a directory's gets a slash
			p.leaveOut(rel[:64]+"…", errors.New("the path is too long"))
			continue
		}
		info, err := f.Lstat(base)
		if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
			continue
		}
		if err != nil {
			p.leaveOut(rel, err)
			continue
		}
		if info.IsDir() {
			below = append(below, waiting{rel, info})
			continue
		}
		if err := p.file(f, base, rel, info); err != nil {
			return nil, err
		}
	}
	return below, nil
}

func (p *packer) file(f *folder, base, rel string, info fs.FileInfo) error {
	if why := unsupported(info.Mode()); why != "" {
		p.options.Warn(Shown(p.shownName(rel)) + " " + why + ", left out")
		return nil
	}
	e := entry{info: info, rel: rel, open: func() (*os.File, error) { return f.OpenFile(base, os.O_RDONLY|quiet, 0) }}
	if info.Mode().Type() == fs.ModeSymlink {
		var err error
		if e.link, err = f.Readlink(base); err != nil {
			p.leaveOut(rel, err)
			return nil
		}
	}
	return p.add(e)
}

// leaveOut complains about what cannot be read, and goes on.
func (p *packer) leaveOut(rel string, err error) {
	f := faultOf(p.shownName(rel), err)
	if p.missing++; p.alone {
		p.failed = f
		return
	}
	p.options.Warn(f.Error() + ", left out")
	if p.failed == nil {
		p.failed = &Fault{Kind: Partial, Path: f.Path, Problem: f.Problem + ", left out", Err: err}
	}
}

func (p *packer) shownName(rel string) string {
	if rel == root {
		return p.display
	}
	return filepath.ToSlash(filepath.Clean(p.display)) + "/" + rel
}

// named is a path below the source as the stream has it.
func (p *packer) named(rel string) string {
	switch {
	case rel == root:
		return p.prefix
	case p.prefix == root:
		return rel
	default:
		return p.prefix + "/" + rel
	}
}

func (p *packer) header(rel string, info fs.FileInfo) *tar.Header {
	uid, gid := owner(info)
	return &tar.Header{
		Typeflag: tar.TypeReg, Name: p.named(rel), Mode: modeBits(info.Mode()), ModTime: info.ModTime(), Uid: uid, Gid: gid, Format: tar.FormatPAX,
	}
}

// modeBits is a mode as archives have it.
func modeBits(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	for _, special := range specials {
		if mode&special.mode != 0 {
			bits |= special.bit
		}
	}
	return bits
}

var specials = []struct {
	mode fs.FileMode
	bit  int64
}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}}

func (p *packer) directory(all *folders, rel string, info fs.FileInfo) error {
	h := p.header(rel, info)
	h.Typeflag = tar.TypeDir
	h.Name += "/"
	if f, err := all.get(rel); err == nil { // else contents complains
		h.PAXRecords = f.attributes()
		all.release(f)
	}
	return p.w.WriteHeader(h)
}

// add packs one thing that is no directory.
func (p *packer) add(e entry) error {
	h := p.header(e.rel, e.info)
	id, several := identity(e.info)
	switch e.info.Mode().Type() {
	case fs.ModeSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
	case fs.ModeNamedPipe:
		h.Typeflag = tar.TypeFifo
	default:
		if first, packed := p.linked[id]; several && packed {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			break
		}
		packed, err := p.regular(h, e)
		if err != nil || !packed {
			return err
		}
		if several {
			p.linked[id] = h.Name
		}
		p.totals.Files++
		p.report(false)
		return nil
	}
	if err := p.w.WriteHeader(h); err != nil {
		return err
	}
	p.totals.Files++
	p.report(false)
	return nil
}

func (p *packer) report(last bool) {
	if p.options.Progress == nil {
		return
	}
	if now := time.Now(); last || now.Sub(p.shown) >= progressEvery {
		p.shown = now
		p.options.Progress(p.totals)
	}
}
