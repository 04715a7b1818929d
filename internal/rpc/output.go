package rpc

import (
	"io"
	"sync"
	"time"
)

const (
	// holdFor is how long the first output waits for the command's end. A short command then costs one line, its result; a long
	// one is late once, by less than a person or a screen notices.
	holdFor = 2 * time.Millisecond
	// maxReleased is how much of what a killed command still says is kept for the result.
	maxReleased = 1 << 20
)

// output is the standard output of one command with a window. Write fills a buffer; a goroutine of its own sends from it, so that
// writes which come faster than lines go out travel together. The goroutine starts when output was held for holdFor or a
// chunk is full: most commands never need it.
type output struct {
	send func(chunk []byte) (flush func() error) // encodes at once, sends when called
	most int                                     // bytes of a chunk; twice that may wait: one on its way and one filling up

	mu       sync.Mutex
	changed  sync.Cond
	pending  []byte // guarded by mu, like all below
	window   int64  // most that may be under way
	credit   int64  // what may still be sent
	hold     *time.Timer
	pumped   chan struct{} // closed when the goroutine ended; nil before it started
	released bool          // Write must not wait any more
	finished bool
	dropped  int64
}

func newOutput(window int64, most int, send func([]byte) func() error) *output {
	o := &output{send: send, most: most, window: window, credit: window}
	o.changed.L = &o.mu
	return o
}

// Write takes p, waiting while the client has neither consumed nor cancelled. It fails only after finish.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rest := p; len(rest) > 0; {
		limit := 2 * o.most
		if o.released {
			limit = maxReleased
		}
		room := limit - len(o.pending)
		switch {
		case o.finished:
			return len(p) - len(rest), io.ErrClosedPipe
		case room > 0:
			n := min(room, len(rest))
			o.pending = append(o.pending, rest[:n]...)
			rest = rest[n:]
			o.wake()
		case o.released:
			o.dropped += int64(len(rest))
			rest = nil
		default:
			o.changed.Wait()
		}
	}
	return len(p), nil
}

// wake sees to it that pending is sent, now or when the hold is over. Called with the lock.
func (o *output) wake() {
	switch {
	case o.pumped != nil:
		o.changed.Broadcast()
	case len(o.pending) >= o.most:
		o.start()
	case o.hold == nil:
		o.hold = time.AfterFunc(holdFor, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.pumped == nil && !o.finished {
				o.start()
			}
		})
	}
}

// start runs the sending goroutine; finish waits for it. Called with the lock.
func (o *output) start() {
	o.pumped = make(chan struct{})
	go o.pump()
}

func (o *output) pump() {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer close(o.pumped)
	for {
		for !o.finished && (len(o.pending) == 0 || o.credit == 0) {
			o.changed.Wait()
		}
		if o.finished {
			return
		}
		n := int(min(int64(len(o.pending)), o.credit, int64(o.most)))
		flush := o.send(o.pending[:n])
		o.pending = o.pending[:copy(o.pending, o.pending[n:])]
		o.credit -= int64(n)
		o.changed.Broadcast()
		o.mu.Unlock()
		err := flush()
		o.mu.Lock()
		if err != nil { // the client is gone: the connection ends and with it the command
			o.released = true
			o.changed.Broadcast()
			return
		}
	}
}

// grant gives credit back. A client cannot raise its window by granting what it never got.
func (o *output) grant(n int64) {
	if n <= 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.credit = min(o.credit+min(n, o.window), o.window)
	o.changed.Broadcast()
}

// release lets Write go on without credit, because the command is to be killed and its end must not wait for the client.
func (o *output) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.released = true
	o.changed.Broadcast()
}

// finish ends the stream after the last Write and returns what was not sent.
func (o *output) finish() (rest []byte, dropped int64) {
	o.mu.Lock()
	o.finished = true
	if o.hold != nil {
		o.hold.Stop()
	}
	o.changed.Broadcast()
	pumped := o.pumped
	o.mu.Unlock()
	if pumped != nil {
		<-pumped
	}
	return o.pending, o.dropped
}
