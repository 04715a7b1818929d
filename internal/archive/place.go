package archive

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// place is where a stream goes: the entry named "." becomes base in dir, or dir itself when base is empty.
type place struct {
	dir, base string
	// fresh says that dir was made for this, so that it gets the source's mode.
	fresh bool
}

// target is the path of what is made.
func (p place) target() string { return filepath.Join(p.dir, p.base) }

// choose decides by the rules of docker cp where a source goes. name is what it is called where it comes from, "" when it has no name or only
// its contents are meant.
func choose(dest, name string, directory bool) (place, error) {
	real, err := follow(dest)
	if err != nil {
		return place{}, err
	}
	info, err := os.Stat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !directory && Folder(dest) {
			return place{}, &Fault{Kind: Missing, Path: dest, Problem: "there is no such directory"}
		}
		return missing(dest, real, directory)
	case err != nil:
		return place{}, faultOf(dest, err)
	case info.IsDir():
		return within(dest, real, name, directory)
	case Folder(dest):
		return place{}, &Fault{Kind: Mismatch, Path: dest, Problem: "is not a directory"}
	case directory:
		return place{}, &Fault{Kind: Mismatch, Path: dest, Problem: "is not a directory, and a directory cannot take its place"}
	case !info.Mode().IsRegular():
		return place{}, &Fault{Kind: Mismatch, Path: dest, Problem: "is neither a file nor a directory, and nothing can be copied onto it"}
	}
	return place{dir: filepath.Dir(real), base: filepath.Base(real)}, nil
}

// within places a source in a directory that exists.
func within(dest, real, name string, directory bool) (place, error) {
	if name == "" {
		if !directory {
			return place{}, &Fault{Kind: Mismatch, Path: dest, Problem: "is a directory, and what is to be copied has no name in it"}
		}
		return place{dir: real}, nil
	}
	target := filepath.Join(real, name)
	info, err := os.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(target, target, directory)
	case err != nil:
		return place{}, faultOf(target, err)
	case directory && info.IsDir():
		return place{dir: target}, nil
	case directory:
		return place{}, &Fault{Kind: Mismatch, Path: target, Problem: "is not a directory, and a directory cannot take its place"}
	case info.IsDir():
		return place{}, &Fault{Kind: Mismatch, Path: target, Problem: "is a directory, and a file cannot take its place"}
	}
	return place{dir: real, base: name}, nil
}

// missing places a source where nothing is.
func missing(dest, real string, directory bool) (place, error) {
	parent := filepath.Dir(real)
	if info, err := os.Stat(parent); err != nil {
		return place{}, faultOf(parent, err)
	} else if !info.IsDir() {
		return place{}, &Fault{Kind: Mismatch, Path: parent, Problem: "is not a directory"}
	}
	if !directory {
		return place{dir: parent, base: filepath.Base(real)}, nil
	}
	const private = 0o700 // until all is there
	if err := os.Mkdir(real, private); err != nil {
		return place{}, faultOf(dest, err)
	}
	return place{dir: real, fresh: true}, nil
}

// follow resolves links at the end of a path, also one to nothing: what is copied goes to where it points.
func follow(path string) (string, error) {
	const most = 40 // links, as the kernel's limit
	real := filepath.Clean(path)
	for range most {
		info, err := os.Lstat(real)
		if err != nil || info.Mode().Type() != fs.ModeSymlink {
			return real, nil //nolint:nilerr // what is wrong with it is found by whoever uses it
		}
		to, err := os.Readlink(real)
		if err != nil {
			return "", faultOf(path, err)
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(real) + string(filepath.Separator) + to
		}
		real = to
	}
	return "", &Fault{Kind: Other, Path: path, Problem: "too many levels of symbolic links"}
}

// maxName is how long a name in an archive may be, in bytes: eight times what a system call takes, and little enough that a stranger cannot keep
// us busy with names of nothing but slashes.
const maxName = 32 << 10

// local checks the name of an entry and returns it without what means nothing. What does not stay below the root is refused.
func local(name string) (string, error) {
	if len(name) > maxName {
		return "", &Fault{Kind: Broken, Path: name[:64] + "…", Problem: "the archive has a name that is too long"}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", &Fault{Kind: Broken, Path: name, Problem: "the archive has a name that leads out of the destination"}
		}
	}
	clean := path.Clean(name)
	if strings.HasPrefix(name, "/") || name == "" || strings.ContainsRune(name, 0) || !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", &Fault{Kind: Broken, Path: name, Problem: "the archive has a name that no file below the destination can have"}
	}
	return clean, nil
}

// Name is what a source is called at its destination: "" when only its contents are meant, as behind "/.", or when it has no name, as the root.
// Links are not followed.
func Name(source string) string {
	slashed := filepath.ToSlash(source)
	if slashed == root || strings.HasSuffix(slashed, "/.") {
		return ""
	}
	if abs, err := filepath.Abs(source); err == nil { // else what is asked about fails too
		source = abs
	}
	name := filepath.Base(source)
	if name == string(filepath.Separator) || name == root {
		return ""
	}
	return name
}

// MakeParents makes the directories above a path, as far as they are missing; above "d/." that is d. Only their owner may enter them.
func MakeParents(path string) error {
	parent := filepath.Dir(path)
	const private = 0o700
	if err := os.MkdirAll(parent, private); err != nil {
		return faultOf(parent, err)
	}
	return nil
}
