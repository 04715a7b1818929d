//go:build linux

package agent

import (
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

const (
	// gather is how long a little output waits for more, or for the end of the command to travel with.
	gather = 2 * time.Millisecond
	// gatherMost is how much waits at most.
	gatherMost = 16 << 10
)

// output carries a command's output to the host within the credit the host gives: what may not be sent is not read, so the command
// waits and nothing grows. Safe for concurrent use.
type output struct {
	id     uint32
	w      *wire.Writer
	way    *oneWay // what w writes to; nil when nothing is to be spliced
	visit  *visit  // set before anything is pumped
	prompt bool    // nothing is held back: whoever gets it may have to answer before more comes. Set before anything is pumped

	order    sync.Mutex // held while frames of this command are sent; taken before mu
	mu       sync.Mutex
	change   *sync.Cond // credit or stopped changed
	credit   int        // bytes that may still be read and sent; what a pump has reserved is taken off
	reserved int        // bytes that pumps may read and have not read yet
	starved  int        // pumps that wait for credit
	pending  []wire.Frame
	held     int   // bytes in pending
	shown    int64 // bytes that were read
	timer    *time.Timer
	stopped  bool // reserve gives nothing more
	closed   bool // put takes nothing more
	// moved holds a token when something was read or credit came: see settle.
	moved chan struct{}
}

func newOutput(id uint32, w *wire.Writer, way *oneWay) *output {
	o := &output{id: id, w: w, way: way, credit: wire.Window, moved: make(chan struct{}, 1)}
	o.change = sync.NewCond(&o.mu)
	return o
}

// pump moves one stream until its end, an error, or stop. A deadline on r ends a Read that stop alone cannot.
func (o *output) pump(r *os.File, kind wire.Type) (eof bool) {
	buf := wire.Buffer()
	defer wire.Recycle(buf)
	for {
		n := o.reserve(len(buf))
		if n == 0 {
			return false
		}
		got, err := r.Read(buf[:n])
		o.put(kind, buf[:got], n)
		if err != nil {
			return !os.IsTimeout(err)
		}
		if got >= gatherMost {
			break
		}
	}
	widen(r)
	o.visit.grow() // it has nothing short about it, and need not wait for itself
	return o.flood(r, kind, buf)
}

// flood is pump once there is a lot.
func (o *output) flood(r *os.File, kind wire.Type, buf []byte) (eof bool) {
	move := func(n int) error {
		got, err := r.Read(buf[:n])
		o.put(kind, buf[:got], n)
		return err
	}
	if s := newSplicer(r, o.way); s != nil {
		defer s.close()
		move = func(n int) error {
			got, err := s.take(n)
			o.pass(kind, s, got, n)
			return err
		}
	}
	for {
		o.visit.yield()
		n := o.reserve(len(buf))
		if n == 0 {
			return false
		}
		if err := move(n); err != nil {
			return !os.IsTimeout(err)
		}
	}
}

// reserve takes up to most bytes of credit, waiting for some. 0 means that it was stopped.
func (o *output) reserve(most int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.visit.company() {
		o.keepFew()
		most = min(most, inCompany)
	}
	o.starved++
	for o.credit == 0 && !o.stopped {
		o.change.Wait()
	}
	o.starved--
	if o.stopped {
		return 0
	}
	n := min(most, o.credit)
	o.credit -= n
	o.reserved += n
	return n
}

// keepFew waits until few bytes are under way, at most for youth: in which steps a host grants is up to the host. o.mu is held.
func (o *output) keepFew() {
	o.waitUntil(func() bool { return wire.Window-o.credit-o.reserved < inCompany }, youth)
}

// waitUntil waits for a change after which ok, at most for limit, and not when nothing more is read. o.mu is held, by ok too.
func (o *output) waitUntil(ok func() bool, limit time.Duration) {
	if ok() {
		return
	}
	late := false
	timer := time.AfterFunc(limit, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		late = true
		o.change.Broadcast()
	})
	defer timer.Stop()
	for !ok() && !late && !o.stopped {
		o.change.Wait()
	}
}

// put takes what was read and gives back what else was reserved for it. A little is held back for a moment.
func (o *output) put(kind wire.Type, data []byte, reserved int) {
	o.order.Lock()
	defer o.order.Unlock()
	if len(data) >= gatherMost && o.open(len(data), reserved) { // enough for a frame: nothing need be kept of it
		o.flush(wire.Frame{Type: kind, ID: o.id, Payload: data})
		return
	}
	if o.hold(kind, data, reserved) {
		o.flush()
	}
}

// pass is put for what s took.
func (o *output) pass(kind wire.Type, s *splicer, n, reserved int) {
	o.order.Lock()
	defer o.order.Unlock()
	if n > 0 && o.open(n, reserved) {
		o.flush()
		_ = s.give(o.w, kind, o.id, n) // a host that is gone is the connection's business
		return
	}
	o.hold(kind, nil, reserved)
}

// open accounts for output that is about to be sent, and reports whether the output still takes any.
func (o *output) open(read, reserved int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.release(read, reserved)
	o.signal()
	return true
}

// release ends a reservation and gives back the credit that was not used of it. o.mu is held.
func (o *output) release(read, reserved int) {
	o.reserved -= reserved
	if o.shown += int64(read); read > 0 {
		o.change.Broadcast() // see awaitShown
	}
	if unused := reserved - read; unused > 0 {
		o.credit += unused
		o.change.Broadcast()
	}
}

// total is how many bytes have been read.
func (o *output) total() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shown
}

// say puts a line of the agent's own where the command's stderr goes, before the command has begun.
func (o *output) say(split bool, line string) {
	kind := wire.TypeOutput
	if split {
		kind = wire.TypeErrors
	}
	n := o.reserve(len(line))
	o.put(kind, []byte(line[:n]), n)
}

// hold queues data and reports whether it is time to send.
func (o *output) hold(kind wire.Type, data []byte, reserved int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release(len(data), reserved)
	if len(data) == 0 || o.closed {
		return false
	}
	o.signal()
	if n := len(o.pending); n > 0 && o.pending[n-1].Type == kind && o.held+len(data) <= wire.MaxData {
		o.pending[n-1].Payload = append(o.pending[n-1].Payload, data...)
	} else {
		o.pending = append(o.pending, wire.Frame{Type: kind, ID: o.id, Payload: append([]byte(nil), data...)})
	}
	o.held += len(data)
	if o.prompt {
		return true
	}
	if o.held < gatherMost && o.timer == nil {
		o.timer = time.AfterFunc(gather, func() {
			o.order.Lock()
			defer o.order.Unlock()
			o.flush()
		})
	}
	return o.held >= gatherMost
}

// flush sends what is held, then last. A host that is gone is the connection's business. o.order is held, o.mu is not: a host that is
// slow to read must still be able to give credit.
func (o *output) flush(last ...wire.Frame) {
	o.mu.Lock()
	frames := slices.Concat(o.pending, last)
	o.pending, o.held = nil, 0
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	o.mu.Unlock()
	if len(frames) > 0 {
		_ = o.w.Write(frames...)
	}
}

// grant adds n bytes of credit. It reports false when the host gives more than any window is.
func (o *output) grant(n int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.credit += n; o.credit > wire.MaxFromHost {
		return false
	}
	o.change.Broadcast()
	o.signal()
	return true
}

func (o *output) signal() {
	select {
	case o.moved <- struct{}{}:
	default:
	}
}

// waiting reports whether the host's credit is what output waits for.
func (o *output) waiting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.starved > 0 && o.credit == 0
}

// finish sends what is held and then last, in one write, and closes the output.
func (o *output) finish(last ...wire.Frame) {
	o.order.Lock()
	defer o.order.Unlock()
	o.mu.Lock()
	closed := o.closed
	o.closed, o.stopped = true, true
	o.change.Broadcast()
	o.mu.Unlock()
	if !closed {
		o.flush(last...)
	}
}

// stop ends the pumps' reading. start undoes it for a second attempt at the same command.
func (o *output) stop() { o.setStopped(true) }

func (o *output) start() { o.setStopped(false) }

func (o *output) setStopped(stopped bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = stopped
	o.change.Broadcast()
}
