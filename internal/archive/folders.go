package archive

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// maxOpen is how many directories are kept open. A tree may be deeper than a process may have files.
const maxOpen = 128

// folders opens directories below a root by their slash-separated paths, which may be longer than the system takes at once, and keeps those that
// were used last. Safe for concurrent use.
type folders struct {
	mu   sync.Mutex
	open map[string]*folder
	used []string // from the one used longest ago; has the keys of open but the root's
}

// folder is an open directory. It stays open until whoever got it let go of it.
type folder struct {
	*os.Root

	path string
	own  any // what the system's own calls need; see folder_unix.go
	refs int // guarded by folders.mu; one is the cache's
}

func newFolders(top *os.Root) (*folders, error) {
	f, err := opened(root, top)
	if err != nil {
		return nil, err
	}
	return &folders{open: map[string]*folder{root: f}}, nil
}

func opened(name string, r *os.Root) (*folder, error) {
	f := &folder{Root: r, path: name, refs: 1}
	if err := f.prepare(); err != nil {
		_ = r.Close() // the error at hand says more
		return nil, err
	}
	return f, nil
}

// get opens the directory called name; release it. Links in its path are followed as far as they stay below the root.
func (s *folders) get(name string) (*folder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	above := name // the nearest that is open
	for s.open[above] == nil {
		above = above[:max(0, strings.LastIndexByte(above, '/'))]
		if above == "" {
			above = root
		}
	}
	from := s.open[above]
	for from.path != name {
		rest := name
		if from.path != root {
			rest = name[len(from.path)+1:]
		}
		part, _, _ := strings.Cut(rest, "/")
		r, err := from.OpenRoot(filepath.FromSlash(part))
		if err == nil {
			next := part
			if from.path != root {
				next = from.path + "/" + part
			}
			from, err = opened(next, r)
		}
		if err != nil {
			return nil, err
		}
		s.keep(from)
	}
	s.touch(name)
	from.refs++
	return from, nil
}

// keep takes a newly opened directory in, and lets go of the one used longest ago. s.mu is held.
func (s *folders) keep(f *folder) {
	s.open[f.path] = f
	s.used = append(s.used, f.path)
	if len(s.used) > maxOpen {
		oldest := s.open[s.used[0]]
		delete(s.open, s.used[0])
		s.used = s.used[1:]
		oldest.unref()
	}
}

// touch makes name the one used last. s.mu is held.
func (s *folders) touch(name string) {
	for i, other := range s.used {
		if other == name {
			copy(s.used[i:], s.used[i+1:])
			s.used[len(s.used)-1] = name
			return
		}
	}
}

// release lets go of a directory from get.
func (s *folders) release(f *folder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.unref()
}

// close lets go of all.
func (s *folders) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.open {
		f.unref()
	}
	s.open, s.used = nil, nil
}

func (f *folder) unref() {
	if f.refs--; f.refs == 0 {
		f.finish()
		_ = f.Close() // a directory that was only looked at
	}
}
