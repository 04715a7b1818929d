//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

const (
	// connectLimit is how long a listener may take that does not accept; the host itself gives up later.
	connectLimit = 10 * time.Second
	// lingerLimit is how long what the host sent before it closed may take to be read by a peer that is in no hurry.
	lingerLimit = 5 * time.Second
)

// forward is one connection of a host to a port of the sandbox, from its Dial frame to its Exit. It costs two goroutines and, while
// nothing moves, no buffer: a browser keeps dozens open for hours.
type forward struct {
	conn   *conn
	id     uint32
	req    wire.Dial
	out    *output
	in     *input
	ctx    context.Context // ends with kill
	cancel context.CancelFunc
}

func newForward(c *conn, id uint32, req wire.Dial) *forward {
	f := &forward{conn: c, id: id, req: req, out: newOutput(id, c.w, nil), in: newInput(id, c.w)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.out.prompt = true
	return f
}

// kill implements [served].
func (f *forward) kill() { f.cancel() }

// flows implements [served].
func (f *forward) flows() (*output, *input) { return f.out, f.in }

// serve implements [served].
func (f *forward) serve() {
	defer f.cancel()
	defer func() {
		if fault := recover(); fault != nil { // in one connection, which is no reason to end the others
			f.finish(failure(fmt.Errorf("the agent failed: %v\n%s", fault, debug.Stack())))
		}
	}()
	// It is no command: commands need not wait for it, but it waits for them.
	f.out.visit = f.conn.agent.courtesy.guest()
	defer f.out.visit.over()
	p, err := f.connect()
	if err != nil {
		f.finish(failure(err))
		return
	}
	f.out.mark(wire.Encode(wire.TypeAnswer, f.id, wire.Answer{}))
	f.finish(f.carry(p))
}

func (f *forward) finish(x wire.Exit) {
	f.in.close()
	x.Text = x.Text[:min(len(x.Text), maxText)]
	f.conn.forget(f.id)
	f.out.finish(wire.Encode(wire.TypeExit, f.id, x))
}

// connect opens the connection to whoever listens.
func (f *forward) connect() (*peer, error) {
	if f.req.Network != "tcp" {
		return nil, fmt.Errorf("%.40q is not tcp", f.req.Network)
	}
	to, err := ownPort(f.req.Address)
	if err != nil {
		return nil, err
	}
	p, err := connectPeer(f.ctx, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if errors.Is(err, unix.ECONNREFUSED) { // some listen on [::1] alone, because localhost is that first
		if other, err := connectPeer(f.ctx, &unix.SockaddrInet6{Port: int(to.Port()), Addr: netip.IPv6Loopback().As16()}); err == nil {
			return other, nil
		}
	}
	if err != nil {
		return nil, &refusal{wire.ReasonRefused, reason(err)}
	}
	return p, nil
}

// carry copies both ways until both halves are at their end, the peer has broken off, or the host wants no more.
func (f *forward) carry(p *peer) wire.Exit {
	defer p.Close()
	stop := context.AfterFunc(f.ctx, func() { f.giveUp(p) })
	defer stop()
	fed := make(chan error, 1)
	go func() { fed <- f.feed(p) }() // if it fails, what the peer sent before it broke off can still be read, and that it did
	err := f.pump(p)
	if err != nil && f.ctx.Err() == nil { // else giveUp has seen to it
		f.in.close()
		_ = p.SetWriteDeadline(past) // ends a write under way
	}
	err = errors.Join(err, <-fed)
	switch {
	case f.ctx.Err() != nil:
		return wire.Exit{Killed: true}
	case err != nil:
		return wire.Exit{Reason: wire.ReasonReset, Text: reason(err)}
	}
	return wire.Exit{}
}

// giveUp makes what carry waits for end. Only what the host has sent to its end is still delivered: half a file must not look like one.
func (f *forward) giveUp(p *peer) {
	if f.in.over() {
		_ = p.SetWriteDeadline(time.Now().Add(lingerLimit)) // deadlines fail only for a connection that is closed
	} else {
		p.breakOff() // first: when neither half goes on, carry closes the connection
		_ = p.SetWriteDeadline(past)
		f.in.close()
	}
	f.out.stop()
	_ = p.SetReadDeadline(past)
}

// pump copies what comes from the peer until its end, and says that this is it.
func (f *forward) pump(p *peer) error {
	wide := false
	for {
		if wide {
			f.out.visit.yield()
		}
		n := f.out.reserve(wire.MaxData)
		if n == 0 {
			return nil
		}
		piece, err := p.next(n)
		if len(piece) >= gatherMost && !wide {
			wide = true
			f.out.visit.grow()
		}
		f.out.put(wire.TypeOutput, piece, n)
		wire.Recycle(piece)
		switch {
		case err != nil:
			return err // of a kill too, which carry knows of
		case len(piece) == 0:
			f.out.mark(wire.Frame{Type: wire.TypeEnd, ID: f.id})
			return nil
		}
	}
}

// feed copies what the host sends to the peer until its end, and passes that on.
func (f *forward) feed(p *peer) error {
	for {
		piece, ok := f.in.next()
		if !ok {
			break
		}
		_, err := p.Write(piece)
		wire.Recycle(piece)
		if err != nil {
			return err
		}
		if !f.in.consumed(len(piece)) {
			return nil
		}
	}
	if f.in.over() {
		return p.closeWrite()
	}
	return nil
}

// mark sends frames that are no output behind the output so far.
func (o *output) mark(frames ...wire.Frame) {
	o.order.Lock()
	defer o.order.Unlock()
	o.flush(frames...)
}
