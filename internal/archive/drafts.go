package archive

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"strconv"
	"sync"
)

// drafts are files on their way: under a name of their own in the directory they are for, until they are whole. Safe for concurrent use.
type drafts struct {
	prefix string

	gate sync.RWMutex // held for writing when all are given up
	over bool         // guarded by gate

	mu    sync.Mutex
	count int
	names map[string]*folder // guarded by mu
}

// DraftPrefix begins the names of files that are not whole yet.
const DraftPrefix = ".dockerbox-"

func newDrafts() *drafts {
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails
	return &drafts{prefix: DraftPrefix + hex.EncodeToString(unique) + "-", names: map[string]*folder{}}
}

var errGivenUp = errors.New("the copy was given up")

// begin makes a draft in f with create, which is given its name.
func (d *drafts) begin(f *folder, create func(name string) error) (name string, err error) {
	d.gate.RLock()
	defer d.gate.RUnlock()
	if d.over {
		return "", errGivenUp
	}
	d.mu.Lock()
	d.count++
	name = d.prefix + strconv.Itoa(d.count)
	d.names[name] = f
	d.mu.Unlock()
	if err := create(name); err != nil {
		d.done(name)
		return "", err
	}
	return name, nil
}

// done says that there is nothing called name any more.
func (d *drafts) done(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, name)
}

// commit gives a draft its name. Whatever has that name goes, unless it is a directory.
func (d *drafts) commit(f *folder, draft, name string) error {
	err := f.Rename(draft, name)
	if err != nil {
		if info, statErr := f.Lstat(name); statErr == nil && info.IsDir() {
			err = &Fault{Kind: Mismatch, Problem: "is a directory, and a file cannot take its place", Err: err}
		}
		d.drop(f, draft)
		return err
	}
	d.done(draft)
	return nil
}

// drop removes a draft that came to nothing.
func (d *drafts) drop(f *folder, draft string) {
	_ = f.Remove(draft) // nobody is helped by hearing of this one too
	d.done(draft)
}

// replace puts what create makes in the place of name.
func (d *drafts) replace(f *folder, name string, create func(draft string) error) error {
	draft, err := d.begin(f, func(draft string) error {
		err := create(draft)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			_ = f.Remove(draft) // there may be none
		}
		return err
	})
	if err != nil {
		return err
	}
	// Two names of one file: a rename of one to the other does nothing, and would leave the draft.
	defer func() {
		if info, err := f.Lstat(draft); err == nil && info != nil {
			_ = f.Remove(draft)
		}
	}()
	return d.commit(f, draft, name)
}

// abandon removes all drafts and lets no more be made.
func (d *drafts) abandon() {
	d.gate.Lock()
	defer d.gate.Unlock()
	d.over = true
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, f := range d.names {
		_ = f.Remove(name) // what cannot be removed cannot be helped
	}
	clear(d.names)
}

// given is an error once all were given up.
func (d *drafts) given() error {
	d.gate.RLock()
	defer d.gate.RUnlock()
	if d.over {
		return errGivenUp
	}
	return nil
}
