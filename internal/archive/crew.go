package archive

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"runtime"
	"sync"
	"time"
)

// Making a file is a handful of system calls, and a tree has many files. So whoever reads the stream leaves small ones to a crew; larger
// ones it writes itself.

// smallFile is up to how many bytes a file is left to the crew.
const smallFile = 256 << 10

// queued is how many files wait for the crew at most.
const queued = 32

// crew makes small files. Its methods are for the goroutine that reads the stream.
type crew struct {
	u       *unpacker
	jobs    chan job
	members sync.WaitGroup
	open    sync.WaitGroup // jobs that are not done
	buffers sync.Pool

	mu      sync.Mutex
	pending map[string]bool // guarded by mu
	err     error           // guarded by mu, the first
}

// job is a file whose content was read.
type job struct {
	f    *folder
	name string
	file draftFile
	data []byte
}

// draftFile is what a file gets besides its content.
type draftFile struct {
	mode    os.FileMode
	at      time.Time
	records map[string]string
}

func newCrew(u *unpacker) *crew {
	c := &crew{u: u, jobs: make(chan job, queued), pending: map[string]bool{}}
	for range max(2, min(runtime.GOMAXPROCS(0), 4)) {
		c.members.Go(c.work)
	}
	return c
}

func (c *crew) work() {
	for j := range c.jobs {
		if c.failure() == nil {
			if err := c.u.small(j); err != nil {
				c.fail(faultOf(c.u.shownName(j.name), err))
			}
		}
		c.u.folders.release(j.f)
		c.giveBack(j.data)
		c.mu.Lock()
		delete(c.pending, j.name)
		c.mu.Unlock()
		c.open.Done()
	}
}

func (c *crew) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *crew) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// has reports whether a file of that name is under way.
func (c *crew) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending[name]
}

// hand gives the crew a file.
func (c *crew) hand(j job) error {
	if c.has(j.name) { // the later one of two has to win
		if err := c.wait(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.pending[j.name] = true
	c.mu.Unlock()
	c.open.Add(1)
	c.jobs <- j
	return nil
}

// wait waits until nothing is under way.
func (c *crew) wait() error {
	c.open.Wait()
	return c.failure()
}

// end waits until the crew has gone home.
func (c *crew) end() error {
	close(c.jobs)
	c.members.Wait()
	return c.failure()
}

func (c *crew) buffer(size int64) []byte {
	if b, pooled := c.buffers.Get().(*[]byte); pooled && int64(cap(*b)) >= size {
		return (*b)[:size]
	}
	const least = 64 << 10
	return make([]byte, size, max(size, least))
}

func (c *crew) giveBack(b []byte) { c.buffers.Put(&b) }

// regular makes a file, or has it made. It is the only one who reads content from the stream.
func (u *unpacker) regular(h *tar.Header, f *folder, name string) error {
	file := draftFile{mode: u.mode(h), at: h.ModTime, records: h.PAXRecords}
	holes, sparse := h.PAXRecords[holesRecord]
	if u.options.Plain {
		sparse = false
	}
	foreign := h.Typeflag == tar.TypeGNUSparse || h.PAXRecords["GNU.sparse.major"] != "" || h.PAXRecords["GNU.sparse.map"] != ""
	if foreign && !u.options.Plain {
		return &Fault{Kind: Broken, Path: h.Name, Problem: "the archive has a sparse file of a foreign form"}
	}
	if sparse || foreign || h.Size > smallFile {
		if u.crew.has(name) { // the later one of two has to win
			if err := u.crew.wait(); err != nil {
				return err
			}
		}
		return u.write(f, path.Base(name), file, func(w *os.File) error {
			switch {
			case sparse:
				return u.pieces(w, holes, h.Size)
			case foreign:
				return u.copy(&gapWriter{file: w}, h.Size)
			default:
				return u.copy(w, h.Size)
			}
		})
	}
	data := u.crew.buffer(h.Size)
	if _, err := io.ReadFull(u.r, data); err != nil {
		return badStream(err)
	}
	u.totals.Bytes += h.Size
	f, err := u.folders.get(f.path) // one for the crew
	if err != nil {
		return err
	}
	return u.crew.hand(job{f, name, file, data})
}

// small makes a file of content that is at hand.
func (u *unpacker) small(j job) error {
	return u.write(j.f, path.Base(j.name), j.file, func(w *os.File) error {
		_, err := w.Write(j.data)
		return err
	})
}

// write makes a file with what fill writes.
func (u *unpacker) write(f *folder, base string, file draftFile, fill func(*os.File) error) error {
	const private = 0o600 // until it is whole
	var w *os.File
	draft, err := u.drafts.begin(f, func(name string) (err error) {
		w, err = f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
		return err
	})
	if err != nil {
		return err
	}
	err = fill(w)
	if err == nil {
		if name := setAttributes(w, file.records); name != "" {
			u.options.Warn(Shown(u.shownName(base)) + " could not be given the attribute " + Shown(name))
		}
		err = w.Chmod(file.mode)
	}
	err = errors.Join(err, w.Close())
	if err == nil {
		err = f.setTime(draft, file.at)
	}
	if err != nil {
		u.drafts.drop(f, draft)
		return err
	}
	return u.drafts.commit(f, draft, base)
}

// copy takes the next n bytes of content from the stream.
func (u *unpacker) copy(w io.Writer, n int64) error {
	if u.buffer == nil {
		u.buffer = make([]byte, packBuffer)
	}
	for n > 0 {
		got, err := io.ReadFull(u.r, u.buffer[:min(n, packBuffer)])
		if err != nil {
			return badStream(err)
		}
		if _, err := w.Write(u.buffer[:got]); err != nil {
			return err
		}
		n -= int64(got)
		u.totals.Bytes += int64(got)
		u.report(false)
		if err := u.drafts.given(); err != nil {
			return err
		}
	}
	return nil
}

// pieces fills a sparse file.
func (u *unpacker) pieces(w *os.File, holes string, content int64) error {
	size, data, err := decodePieces(holes, content)
	if err != nil {
		return &Fault{Kind: Broken, Problem: err.Error(), Err: err}
	}
	if err := w.Truncate(size); err != nil {
		return err
	}
	for _, d := range data {
		if _, err := w.Seek(d.at, io.SeekStart); err != nil {
			return err
		}
		if err := u.copy(w, d.size); err != nil {
			return err
		}
	}
	return nil
}

// gapWriter leaves out blocks of zeros.
type gapWriter struct {
	file *os.File
	at   int64
}

var zeros [4096]byte

func (g *gapWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), len(zeros)-int(g.at%int64(len(zeros))))
		if string(rest[:n]) != string(zeros[:n]) {
			if _, err := g.file.WriteAt(rest[:n], g.at); err != nil {
				return 0, err
			}
		}
		g.at += int64(n)
		rest = rest[n:]
	}
	return len(p), g.file.Truncate(max(g.at, 0))
}
