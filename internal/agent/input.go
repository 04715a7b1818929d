//go:build linux

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// creditStep is how much consumed input is gathered before the host hears of it. Until then it may still send three times as much.
const creditStep = wire.Window / 4

// input queues what the host sends for a command's standard input; the window bounds it. Safe for concurrent use.
type input struct {
	id uint32
	w  *wire.Writer

	mu     sync.Mutex
	change *sync.Cond
	queue  [][]byte
	credit int  // bytes the host may still send
	owed   int  // bytes consumed and not yet granted again
	taken  bool // a piece was handed out
	ended  bool // End came
	closed bool // the command is over
}

func newInput(id uint32, w *wire.Writer) *input {
	in := &input{id: id, w: w, credit: wire.Window}
	in.change = sync.NewCond(&in.mu)
	return in
}

// keep is a copy of data. Only what fills half a buffer gets one: the queue may hold many pieces.
func keep(data []byte) []byte {
	if len(data) > wire.MaxData/2 {
		return append(wire.Buffer()[:0], data...)
	}
	return bytes.Clone(data)
}

// add queues a copy of data. An error means that the host broke the window.
func (in *input) add(data []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(data) > in.credit {
		return fmt.Errorf("%d bytes of input with %d granted", len(data), in.credit)
	}
	if in.ended {
		return errors.New("input after its end")
	}
	if in.credit -= len(data); len(data) > 0 {
		in.queue = append(in.queue, keep(data))
		in.change.Signal()
	}
	return nil
}

// end marks the end of input; what is queued still goes out.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	in.change.Signal()
}

// close makes feed return. To end a write under way, close its file too.
func (in *input) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.change.Signal()
}

// reopen undoes close for a second attempt at the same command, which is possible while nothing was handed out.
func (in *input) reopen() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = in.taken
	return !in.taken
}

// next waits for a piece. ok is false at the end of input and after close.
func (in *input) next() (piece []byte, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.queue) == 0 && !in.ended && !in.closed {
		in.change.Wait()
	}
	if in.closed || len(in.queue) == 0 {
		return nil, false
	}
	in.taken = true
	piece, in.queue = in.queue[0], in.queue[1:]
	return piece, true
}

// feed writes the queue to f until the end of input or close, and closes f. When the command has closed its side, the rest is dropped
// and granted all the same: not reading everything is no fault.
func (in *input) feed(f io.WriteCloser) {
	defer f.Close()
	unread, wide := false, false
	for {
		piece, ok := in.next()
		if !ok {
			return
		}
		if pipe, ok := f.(*os.File); ok && len(piece) == wire.MaxData && !wide {
			widen(pipe)
			wide = true
		}
		if !unread {
			_, err := f.Write(piece)
			unread = err != nil
		}
		wire.Recycle(piece)
		if !in.consumed(len(piece)) {
			return
		}
	}
}

// consumed lets the host send n more bytes, sooner or later. It reports false when nothing more is wanted.
func (in *input) consumed(n int) bool {
	in.mu.Lock()
	in.owed += n
	give := in.owed
	if in.closed || give < creditStep {
		defer in.mu.Unlock()
		return !in.closed // if it is, the number is about to be over, or is
	}
	in.credit += give
	in.owed = 0
	in.mu.Unlock()
	_ = in.w.Write(wire.Credit(in.id, give)) // a host that is gone is the connection's business
	return true
}

// over reports whether the host has sent all it will.
func (in *input) over() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ended
}
