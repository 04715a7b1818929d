package environment

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

var _ contract.Dialer = (*Environment)(nil)

// dialLimit is how long an agent may take to say what became of a dial. Its own limit is shorter.
const dialLimit = pingLimit

// Dial implements [contract.Dialer]. The agent itself connects: no process starts, and nothing of the image is needed.
func (e *Environment) Dial(ctx context.Context, network, address string) (contract.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if network != "tcp" || err != nil || to.Port() == 0 || to.Addr() != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
		return nil, &contract.BackendError{
			Reason: fmt.Sprintf("%s %s is not a port of the sandbox, such as tcp 127.0.0.1:8080", clean(network), clean(address)),
			Hint:   "this is a fault in the caller, not in the sandbox",
		}
	}
	for attempt := 0; ; attempt++ {
		c, err := e.live(ctx)
		if err != nil {
			return nil, err
		}
		d := &dialed{conn: c, call: newCall(), name: e.Info().Name, port: to.Port()}
		err = e.connectTo(ctx, d, wire.Dial{Network: network, Address: to.String()})
		if err == nil {
			return d, nil
		}
		if !isLost(err) || attempt > 0 { // else nothing has come of it that a second try could double
			return nil, err
		}
	}
}

// connectTo asks d's agent for the connection and waits until it stands.
func (e *Environment) connectTo(ctx context.Context, d *dialed, dial wire.Dial) error {
	c, k := d.conn, d.call
	if !slices.Contains(c.hello.Features, wire.FeatureDial) {
		return &contract.BackendError{
			Reason: "the agent in the sandbox is of an older version, which connects to no ports",
			Hint:   "dockerbox up --recreate NAME gives the sandbox a new one and keeps its home",
		}
	}
	answer := make(chan wire.Answer, 1)
	if _, err := c.begin(k, answer, func(id uint32) wire.Frame { return wire.Encode(wire.TypeDial, id, dial) }); err != nil {
		return d.because(err)
	}
	look, limit := time.NewTicker(pingEvery), time.NewTimer(dialLimit)
	defer look.Stop()
	defer limit.Stop()
	for {
		var err error
		select {
		case _, stands := <-answer:
			if stands {
				return nil
			}
			<-c.ended
			return d.because(k.err)
		case <-k.wake:
			if !k.isOver() || len(answer) > 0 { // it may have ended as soon as it stood
				continue
			}
			c.forget(k)
			return d.refused()
		case <-ctx.Done():
			err = &contract.BackendError{
				Reason: fmt.Sprintf("port %d in sandbox %q was not connected to when its caller gave up", d.port, d.name),
				Hint:   "try again", Err: context.Cause(ctx),
			}
		case <-look.C:
			if !e.paused(ctx) {
				continue
			}
			err = e.pausedError() // what is connected already goes on when the sandbox does
		case <-limit.C:
			c.fail(errSilent)
			<-c.ended
			return d.because(k.err)
		}
		c.forget(k)
		_ = d.Reset() // nobody has it
		return err
	}
}

// forget stops waiting for the answer to k.
func (c *conn) forget(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.answers, k.id)
}

// refused is why a connection never stood.
func (d *dialed) refused() error {
	d.call.mu.Lock()
	x, err := d.call.exit, d.call.err
	d.call.mu.Unlock()
	text := clean(x.Text)
	switch {
	case err != nil:
		return d.because(err)
	case x.Reason == wire.ReasonRefused && text == contract.ErrRefused.Error():
		return &contract.BackendError{
			Reason: fmt.Sprintf("nothing listens on port %d in sandbox %q", d.port, d.name),
			Hint:   "start what should; it has to listen on 127.0.0.1 or on all addresses", Err: contract.ErrRefused,
		}
	}
	return &contract.BackendError{
		Reason: fmt.Sprintf("port %d in sandbox %q cannot be connected to: %s", d.port, d.name, text),
		Hint:   "see whether what listens there still accepts connections", Err: errors.New(x.Reason),
	}
}

// because words the loss of the stream for a connection. Why that ended does not change once somebody was told that it did.
func (d *dialed) because(err error) error {
	if !isLost(err) {
		return err
	}
	return &contract.BackendError{
		Reason: fmt.Sprintf("the connection to sandbox %q was lost: %s", d.name, d.conn.why()),
		Hint:   "connect again; dockerbox ps shows whether the sandbox still runs", Err: errLost,
	}
}
