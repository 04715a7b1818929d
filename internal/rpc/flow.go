package rpc

import (
	"errors"
	"io"
	"math"
	"sync"
)

// inbox takes output off the reading goroutine and writes it to a consumer that may be slow. The server's window bounds it.
type inbox struct {
	w    io.Writer
	over chan struct{} // closed when run ended

	mu       sync.Mutex
	changed  sync.Cond
	chunks   [][]byte // guarded by mu
	size     int      // bytes that arrived and were not consumed
	finished bool
	failed   error // of w
}

func newInbox(w io.Writer) *inbox {
	in := &inbox{w: w, over: make(chan struct{})}
	in.changed.L = &in.mu
	return in
}

// put queues a chunk without blocking. A server that sends more than the window is broken.
func (in *inbox) put(chunk []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.size += len(chunk); in.size > clientWindow {
		return errors.New("server sent more output than it had credit for")
	}
	in.chunks = append(in.chunks, chunk)
	in.changed.Signal()
	return nil
}

// run writes chunks in order and tells credit how much was consumed. When the consumer fails the rest is lost and end is called, once.
func (in *inbox) run(credit func(n int), end func()) {
	defer close(in.over)
	for {
		in.mu.Lock()
		for len(in.chunks) == 0 && !in.finished {
			in.changed.Wait()
		}
		if len(in.chunks) == 0 {
			in.mu.Unlock()
			return
		}
		chunk, failed := in.chunks[0], in.failed
		in.chunks = in.chunks[1:]
		in.mu.Unlock()
		if failed == nil {
			if _, failed = in.w.Write(chunk); failed != nil {
				end()
			}
		}
		in.mu.Lock()
		in.size -= len(chunk)
		in.failed = failed
		in.mu.Unlock()
		credit(len(chunk))
	}
}

// finish waits until all that arrived is written, and returns the consumer's failure.
func (in *inbox) finish() error {
	in.mu.Lock()
	in.finished = true
	in.changed.Signal()
	in.mu.Unlock()
	<-in.over
	return in.failed // run has ended
}

// allowance is how much input may still be sent.
type allowance struct {
	mu      sync.Mutex
	changed sync.Cond
	left    int64 // guarded by mu
	over    bool  // guarded by mu
}

func newAllowance(n int64) *allowance {
	a := &allowance{left: n}
	a.changed.L = &a.mu
	return a
}

// take waits for credit and takes at most limit of it; 0 when there is nothing more to send to.
func (a *allowance) take(limit int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.left == 0 && !a.over {
		a.changed.Wait()
	}
	if a.over {
		return 0
	}
	n := min(int64(limit), a.left)
	a.left -= n
	return int(n)
}

func (a *allowance) grant(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > 0 && a.left <= math.MaxInt64-n {
		a.left += n
	}
	a.changed.Signal()
}

func (a *allowance) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.changed.Signal()
}
