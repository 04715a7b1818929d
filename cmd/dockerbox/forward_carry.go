package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// mostForwards is how many connections are carried at a time; the next wait in the system's queue. It is less than an agent takes from one
// client.
const mostForwards = 1000

// carrier carries connections of this machine to ports of a sandbox.
type carrier struct {
	ctx    context.Context // ends what is carried
	cancel context.CancelFunc
	dialer contract.Dialer
	notes  forwardNotes

	carried sync.WaitGroup
	slots   chan struct{} // one for each that is carried
	freed   chan struct{} // holds a token when one has ended
}

func newCarrier(ctx context.Context, dialer contract.Dialer, name string, stderr io.Writer) *carrier {
	c := &carrier{
		dialer: dialer, notes: forwardNotes{w: stderr, name: name, refused: map[uint16]bool{}},
		slots: make(chan struct{}, mostForwards), freed: make(chan struct{}, 1),
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// end breaks off what is carried and waits until that is over.
func (c *carrier) end() {
	c.cancel()
	c.carried.Wait()
}

// accept carries what connects to l, until that is closed or the carrier ends.
func (c *carrier) accept(l listening) error {
	for {
		client, err := l.AcceptTCP()
		switch {
		case err == nil:
		case errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, syscall.ECONNABORTED): // it has gone again
			continue
		case len(c.slots) > 0: // what is used up comes back when a connection ends
			select {
			case <-c.freed:
			case <-c.ctx.Done():
			}
			continue
		default:
			return &contract.BackendError{
				Reason: fmt.Sprintf("connections to %s cannot be accepted: %s", l.Addr(), networkCause(err)),
				Hint:   "see how many files this user may have open: ulimit -n", Err: err,
			}
		}
		select {
		case c.slots <- struct{}{}:
			c.carried.Go(func() { c.carry(client, l.remote) })
		case <-c.ctx.Done():
			breakOff(client)
		}
	}
}

// carry connects client to a port and copies both ways. Each half ends as it does on the other side; what breaks off there, breaks off here.
func (c *carrier) carry(client *net.TCPConn, port uint16) {
	defer func() {
		<-c.slots
		select {
		case c.freed <- struct{}{}:
		default:
		}
	}()
	remote, err := c.dialer.Dial(c.ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		breakOff(client)
		if c.ctx.Err() == nil {
			c.notes.failed(port, err)
		}
		return
	}
	c.notes.reached(port)
	end := sync.OnceFunc(func() {
		_ = remote.Reset() // this and what follows fail only for what has ended
		breakOff(client)
	})
	stop := context.AfterFunc(c.ctx, end)
	var up sync.WaitGroup
	up.Go(func() {
		if !half(remote, client) {
			end()
		}
	})
	_, err = io.Copy(client, remote)
	if err == nil {
		err = client.CloseWrite()
	}
	if err != nil {
		end()
	}
	up.Wait()
	stop()
	_ = remote.Close() // both halves are at their end, or broken off
	_ = client.Close()
	if c.ctx.Err() == nil {
		c.notes.lost(err)
	}
}

// half copies one half and passes on its end.
func half(to contract.Conn, from io.Reader) bool {
	_, err := io.Copy(to, from)
	return err == nil && to.CloseWrite() == nil
}

// breakOff closes a connection so that its other side sees that not everything was said.
func breakOff(client *net.TCPConn) {
	_ = client.SetLinger(0) // both fail only for what is closed
	_ = client.Close()
}

// forwardNotes says once what many connections meet. Safe for concurrent use.
type forwardNotes struct {
	w    io.Writer
	name string // of the sandbox

	mu      sync.Mutex
	refused map[uint16]bool // ports that nothing listens on, and it was said
	trouble string          // with the sandbox, that was said; "" when it is reached
}

// failed notes why there is no connection to a port.
func (n *forwardNotes) failed(port uint16, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !errors.Is(err, contract.ErrRefused) {
		n.troubled(err)
		return
	}
	n.untroubled()
	if !n.refused[port] {
		n.refused[port] = true
		note(n.w, fmt.Sprintf("nothing listens on port %d in sandbox %q, so what connects is closed until something does, on 127.0.0.1 or on all addresses", port, n.name))
	}
}

// reached notes that there is a connection.
func (n *forwardNotes) reached(port uint16) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.untroubled()
	delete(n.refused, port)
}

// lost notes the end of a connection, if it ended because the way to the sandbox did.
func (n *forwardNotes) lost(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var backend *contract.BackendError
	if errors.As(err, &backend) && !errors.Is(err, contract.ErrReset) {
		n.troubled(err)
	}
}

// troubled says what keeps connections from the sandbox. n.mu is held.
func (n *forwardNotes) troubled(err error) {
	text := err.Error()
	var backend *contract.BackendError
	if errors.As(err, &backend) {
		text = backend.Reason + "; " + backend.Hint
	}
	if text != n.trouble {
		n.trouble = text
		note(n.w, text)
	}
}

// untroubled says that it is over. n.mu is held.
func (n *forwardNotes) untroubled() {
	if n.trouble != "" {
		n.trouble = ""
		note(n.w, fmt.Sprintf("sandbox %q is reached again", n.name))
	}
}
