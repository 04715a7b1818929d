package environment

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// dialed is a connection to a port in the sandbox: a call whose output is read and whose input is written. It has no goroutine of its own
// and, while nothing moves, no buffer.
type dialed struct {
	conn *conn
	call *call
	name string // of the sandbox
	port uint16

	reading sync.Mutex // held by a reader; guards rest and at
	rest    []piece    // taken from the call and not yet read
	at      int        // bytes of rest[0] that were

	writing sync.Mutex // held by whoever sends frames of this connection

	// Guarded by call.mu.
	closed, ended   bool // Close or Reset, CloseWrite
	readBy, writeBy deadline
}

// deadline is one of a connection's two. Guarded by the call's mu.
type deadline struct {
	timer  *time.Timer
	passed bool
}

// next waits for something to read. The slice is empty only with an error. d.reading is held.
func (d *dialed) next() ([]piece, error) {
	for {
		pieces, err := d.take()
		if len(pieces) > 0 || err != nil {
			return pieces, err
		}
		<-d.call.wake // d.reading is held, so nobody else takes this token
	}
}

func (d *dialed) take() (pieces []piece, err error) {
	k := d.call
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case d.closed:
		return nil, net.ErrClosed
	case d.readBy.passed:
		return nil, os.ErrDeadlineExceeded
	case len(d.rest) > 0:
		return d.rest, nil
	case len(k.pending) > 0:
		d.rest, k.pending = k.pending, nil
		return d.rest, nil
	case k.eof:
		return nil, io.EOF
	case k.over:
		return nil, d.broken()
	}
	return nil, nil
}

// broken is why a connection ended that neither side had closed. The call's mu is held.
func (d *dialed) broken() error {
	x, err := d.call.exit, d.call.err
	switch {
	case err != nil:
		return d.because(err)
	case x.Reason == "" || x.Reason == wire.ReasonReset:
		return fmt.Errorf("port %d in sandbox %q: %w", d.port, d.name, contract.ErrReset)
	}
	return &contract.BackendError{
		Reason: fmt.Sprintf("the connection to port %d in sandbox %q failed: %s", d.port, d.name, clean(x.Text)),
		Hint:   "connect again", Err: contract.ErrReset,
	}
}

// done lets the agent send as much again as was read of the first piece, which nobody uses any more.
func (d *dialed) done() {
	n := d.call.consumed(d.rest[:1])
	d.rest, d.at = d.rest[1:], 0
	if n > 0 {
		_ = d.conn.out.Write(wire.Credit(d.call.id, n)) // a broken stream ends the call anyway
	}
}

// Read implements [net.Conn].
func (d *dialed) Read(p []byte) (int, error) {
	d.reading.Lock()
	defer d.reading.Unlock()
	pieces, err := d.next()
	if err != nil || len(p) == 0 {
		return 0, d.op("read", err)
	}
	n := copy(p, pieces[0].data[d.at:])
	if d.at += n; d.at == len(pieces[0].data) {
		d.done()
	}
	return n, nil
}

// WriteTo implements [io.WriterTo]: what arrived is written from where it is.
func (d *dialed) WriteTo(w io.Writer) (n int64, err error) {
	d.reading.Lock()
	defer d.reading.Unlock()
	for {
		pieces, err := d.next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, d.op("read", err)
		}
		wrote, err := w.Write(pieces[0].data[d.at:])
		n += int64(wrote)
		if d.at += wrote; err != nil {
			return n, err
		}
		d.done()
	}
}

// Write implements [net.Conn].
func (d *dialed) Write(p []byte) (n int, err error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	for {
		room, err := d.room(len(p) - n)
		if err != nil {
			return n, d.op("write", err)
		}
		if room > 0 {
			if err := d.conn.out.Write(wire.Frame{Type: wire.TypeInput, ID: d.call.id, Payload: p[n : n+room]}); err != nil {
				d.conn.fail(err)
				<-d.conn.ended // the reader settles the call
				continue
			}
		}
		if n += room; n == len(p) {
			return n, nil
		}
	}
}

// room waits until some of most bytes may be sent, and takes what may. 0 of none is no reason to wait.
func (d *dialed) room(most int) (int, error) {
	k := d.call
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		switch {
		case d.closed || d.ended:
			return 0, net.ErrClosed
		case k.over:
			return 0, d.broken()
		case d.writeBy.passed:
			return 0, os.ErrDeadlineExceeded
		case most == 0:
			return 0, nil
		case k.credit > 0:
			n := min(most, k.credit, wire.MaxData)
			k.credit -= n
			return n, nil
		}
		k.inputOK.Wait()
	}
}

// ReadFrom implements [io.ReaderFrom]. Most connections carry little at a time and wait for long: only one that carries much has a large
// buffer, while it does.
func (d *dialed) ReadFrom(r io.Reader) (n int64, err error) {
	const little = 4 << 10
	small := make([]byte, little)
	buf := small
	defer func() { wire.Recycle(buf) }()
	for {
		got, err := r.Read(buf)
		if got > 0 {
			wrote, err := d.Write(buf[:got])
			n += int64(wrote)
			if err != nil {
				return n, err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		case got == little && len(buf) == little:
			buf = wire.Buffer()
		case got < little && len(buf) > little:
			wire.Recycle(buf)
			buf = small
		}
	}
}

// CloseWrite implements [contract.Conn].
func (d *dialed) CloseWrite() error {
	d.call.mu.Lock()
	before := d.closed || d.ended
	d.ended = true
	d.call.inputOK.Broadcast() // for a Write that waits
	d.call.mu.Unlock()
	if before {
		return d.op("close", net.ErrClosed)
	}
	d.send(wire.TypeEnd)
	return nil
}

// Close implements [net.Conn].
func (d *dialed) Close() error { return d.close(wire.TypeEnd, wire.TypeKill) }

// Reset implements [contract.Conn].
func (d *dialed) Reset() error { return d.close(wire.TypeKill) }

// close ends the connection for this side. It does not wait: the other side may be slow to take what was written.
func (d *dialed) close(how ...wire.Type) error {
	k := d.call
	k.mu.Lock()
	before, ended := d.closed, d.ended
	d.closed = true
	k.discard = true
	k.pending = nil
	for _, by := range []*deadline{&d.readBy, &d.writeBy} {
		by.stop()
	}
	k.inputOK.Broadcast()
	k.signal()
	k.mu.Unlock()
	switch {
	case before:
		return d.op("close", net.ErrClosed)
	case ended:
		how = how[len(how)-1:]
	}
	d.send(how...)
	return nil
}

// send sends frames without a payload behind all that was written, if there is still somebody to hear them.
func (d *dialed) send(types ...wire.Type) {
	d.writing.Lock()
	defer d.writing.Unlock()
	if d.call.isOver() {
		return
	}
	frames := make([]wire.Frame, len(types))
	for i, t := range types {
		frames[i] = wire.Frame{Type: t, ID: d.call.id}
	}
	_ = d.conn.out.Write(frames...) // a broken stream ends the call anyway
}

// op words an error as package net does. Errors that callers compare stay as they are.
func (d *dialed) op(what string, err error) error {
	var backend *contract.BackendError
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, &backend) {
		return err
	}
	return &net.OpError{Op: what, Net: "tcp", Addr: d.RemoteAddr(), Err: err}
}

// LocalAddr implements [net.Conn]. The agent's port is nobody's business.
func (d *dialed) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// RemoteAddr implements [net.Conn]: the port inside the sandbox.
func (d *dialed) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(d.port)}
}

// SetDeadline implements [net.Conn].
func (d *dialed) SetDeadline(t time.Time) error {
	return errors.Join(d.SetReadDeadline(t), d.SetWriteDeadline(t))
}

// SetReadDeadline implements [net.Conn].
func (d *dialed) SetReadDeadline(t time.Time) error { return d.set(&d.readBy, t, d.call.signal) }

// SetWriteDeadline implements [net.Conn].
func (d *dialed) SetWriteDeadline(t time.Time) error {
	return d.set(&d.writeBy, t, d.call.inputOK.Broadcast)
}

// set arms one deadline. wake makes whoever waits look at it.
func (d *dialed) set(by *deadline, t time.Time, wake func()) error {
	mu := &d.call.mu
	mu.Lock()
	defer mu.Unlock()
	if d.closed {
		return d.op("set", net.ErrClosed)
	}
	by.stop()
	left := time.Until(t)
	switch {
	case t.IsZero():
		return nil
	case left <= 0: // at once: a timer would take a moment
		by.passed = true
		wake()
		return nil
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		mu.Lock()
		defer mu.Unlock()
		if by.timer == timer { // else another has taken its place
			by.passed = true
			wake()
		}
	})
	by.timer = timer
	return nil
}

func (by *deadline) stop() {
	if by.timer != nil {
		by.timer.Stop()
	}
	by.timer, by.passed = nil, false
}
