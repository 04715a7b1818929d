package environment

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// Divided is a container in which each account has an agent of its own, because none can become another: a hardened one.
type Divided interface {
	Container
	// AttachAs opens a stream to the agent of user, as [Container.Attach] does to that of the sandbox's own account.
	AttachAs(ctx context.Context, user string) (Stream, error)
}

// others are the connections to agents of other accounts than the sandbox's own, by the user that was asked for.
type others struct {
	mu    sync.Mutex // held while connecting
	conns map[string]*conn
	boots map[string]string // of the agent that holds the user's shell state
}

// liveAs is live for a command of user.
func (e *Environment) liveAs(ctx context.Context, user string) (*conn, error) {
	c, err := e.live(ctx)
	if err != nil || user == e.opts.Account {
		return c, err
	}
	divided, ok := e.currentContainer().(Divided)
	if !ok {
		return c, nil
	}
	limited, cancel := context.WithTimeout(ctx, accountLimit)
	defer cancel()
	answer, err := c.query(limited, wire.Query{Op: wire.OpAccount, User: user})
	if err != nil {
		return nil, err
	}
	if answer.Reason != wire.ReasonAccount {
		return c, nil // its own account by another name, or nobody: the agent says so
	}
	if who, _, _ := strings.Cut(user, ":"); who == strconv.Itoa(wire.AttachUID) {
		return nil, &contract.BackendError{
			Reason: fmt.Sprintf("the account %d of a hardened sandbox is that of its connections", wire.AttachUID),
			Hint:   "choose another number with --user",
		}
	}
	return e.other(ctx, divided, user)
}

func (e *Environment) other(ctx context.Context, container Divided, user string) (*conn, error) {
	e.others.mu.Lock()
	defer e.others.mu.Unlock()
	if c := e.others.conns[user]; c != nil && c.alive() {
		return c, nil
	}
	stream, err := container.AttachAs(ctx, user)
	if err != nil {
		return nil, err
	}
	c, err := handshake(ctx, stream, e.opts.Version, e.opts.Looks)
	if err != nil {
		return nil, err
	}
	if e.others.conns == nil {
		e.others.conns, e.others.boots = map[string]*conn{}, map[string]string{}
	}
	boot := e.others.boots[user]
	e.others.conns[user], e.others.boots[user] = c, c.hello.Boot
	e.mu.Lock()
	defer e.mu.Unlock()
	if boot != "" && boot != c.hello.Boot {
		e.recreated = true // that account's state is gone
	}
	return c, nil
}

// hangUp ends the connections.
func (o *others) hangUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.conns {
		c.close()
	}
	o.conns = nil
}
