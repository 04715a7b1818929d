// Package transfer copies files and trees between this machine and a sandbox. It runs the sandbox's agent on the far side, as any command is
// run, so that a copy sees what the account sees: memory file systems, mounts and permissions. It knows nothing of containers.
//
// Where things go is decided as docker cp does it. The far side is not trusted: whatever it sends, nothing outside the destination is
// written.
package transfer

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/archive"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// Totals is how much was copied.
type Totals = archive.Totals

// Sandbox is what a copy needs of a [contract.Environment].
type Sandbox interface {
	Execute(ctx context.Context, req contract.Request) (contract.Result, error)
}

// Options are what a copy may be told. The zero value copies one file as the sandbox's own account.
type Options struct {
	// User is the account in the sandbox, as in [contract.Request].
	User string
	// Tree allows directories.
	Tree bool
	// Parents makes the directories above the destination in the sandbox.
	Parents bool
	// Progress is told now and then how much was copied, from one goroutine at a time. It may be nil.
	Progress func(Totals)
	// Warn is told, in a sentence, of what could not be copied as it is, from one goroutine at a time. What is from the sandbox in it is not
	// cleaned. It may be nil.
	Warn func(string)
}

// pieceSize is how much is moved at once, in bytes: what one frame carries.
const pieceSize = wire.MaxData

// Out copies source in the sandbox to dest on this machine. Errors are [*contract.BackendError]; then each file is there whole, as it was
// before, or not at all.
func Out(ctx context.Context, box Sandbox, source, dest string, o Options) (Totals, error) {
	o = o.synchronized()
	r, far := o.receive(ctx, box, o.packWords(source, false))
	totals, err := archive.Unpack(ctx, bufio.NewReaderSize(r, pieceSize), dest, archive.UnpackOptions{
		Name: archive.Name(sandboxPath(source)), Progress: o.Progress, Warn: o.Warn,
	})
	if err == nil {
		err = far.rest()
	}
	return totals, far.conclude(ctx, err)
}

// OutArchive writes source in the sandbox to w as a tar archive whose names begin with the source's.
func OutArchive(ctx context.Context, box Sandbox, source string, w io.Writer, o Options) (Totals, error) {
	o = o.synchronized()
	o.Tree = true
	r, far := o.receive(ctx, box, o.packWords(source, true))
	counted := &counter{report: o.Progress}
	buffer := make([]byte, pieceSize)
	_, err := io.CopyBuffer(io.MultiWriter(unbuffered{w}, counted), r, buffer)
	if err != nil {
		var there *farError
		if !errors.As(err, &there) {
			err = unwritten(err)
		}
	}
	err = far.conclude(ctx, err)
	return far.totals(), err
}

// In copies source on this machine to dest in the sandbox. Errors and what they leave are as for Out.
func In(ctx context.Context, box Sandbox, source, dest string, o Options) (Totals, error) {
	o = o.synchronized()
	return o.send(ctx, box, o.unpackWords(dest, archive.Name(source), false), false, func(w io.Writer) (Totals, error) {
		return archive.Pack(w, source, archive.PackOptions{Tree: o.Tree, Progress: o.Progress, Warn: o.Warn})
	})
}

// InArchive unpacks the tar archive r in dest, a directory in the sandbox. A Read of r that blocks is not waited for when the copy is over, so
// the goroutine that reads may outlive the call until r returns.
func InArchive(ctx context.Context, box Sandbox, r io.Reader, dest string, o Options) (Totals, error) {
	o = o.synchronized()
	counted := &counter{report: o.Progress}
	defer counted.stop()
	return o.send(ctx, box, o.unpackWords(dest, "", true), true, func(w io.Writer) (Totals, error) {
		_, err := io.Copy(w, io.TeeReader(r, counted))
		return Totals{}, err
	})
}

// File is one of several on their way: Source on this machine, Name its path below the destination, with slashes.
type File = archive.File

// Deliver copies files of this machine to paths below dest in the sandbox, and makes the directories they need. limit is how many bytes one
// may have, 0 any.
func Deliver(ctx context.Context, box Sandbox, files []File, dest string, limit int64, o Options) (Totals, error) {
	o = o.synchronized()
	o.Parents = true
	return o.send(ctx, box, o.unpackWords(dest, "", true), false, func(w io.Writer) (Totals, error) {
		return archive.PackFiles(w, files, limit)
	})
}

// Remove removes files below dir in the sandbox by their slash-separated paths, and returns how many there were.
func Remove(ctx context.Context, box Sandbox, dir string, names []string, o Options) (int64, error) {
	o = o.synchronized()
	totals, err := o.send(ctx, box, []string{wire.AgentPath, "remove", dir}, false, func(w io.Writer) (Totals, error) {
		_, err := io.WriteString(w, strings.Join(names, "\x00")+"\x00")
		return Totals{}, err
	})
	return totals.Files, err
}

// unbuffered hides a writer's ReadFrom, for which a pipe's pieces would be read in sizes of its own.
type unbuffered struct{ io.Writer }

// counter counts bytes that pass. Safe for concurrent use.
type counter struct {
	mu     sync.Mutex
	report func(Totals) // nil once nobody is to hear more
	n      int64
	shown  time.Time
}

func (c *counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += int64(len(p))
	const every = 50 * time.Millisecond
	if now := time.Now(); c.report != nil && now.Sub(c.shown) >= every {
		c.shown = now
		c.report(Totals{Bytes: c.n})
	}
	return len(p), nil
}

func (c *counter) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report = nil
}
