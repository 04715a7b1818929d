//go:build linux

package agent

import (
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// courtesy lets a command that has just begun go before those that flood. A flood keeps all cores busy, from the command over the daemon to the
// host, and the one stream to the host full: beside it a `true` took 2.5 to 3.6 times as long as alone, and now takes 1.0 to 1.3 times
// (docs/benchmarks.md). Safe for concurrent use; the zero value is ready.
type courtesy struct {
	mu    sync.Mutex
	live  int           // commands that run
	young int           // those that have just begun
	grown chan struct{} // closed when young becomes 0; nil while it is
	met   time.Time     // when a command last began beside another
}

const (
	// youth is how long a command counts as having just begun: most take less. It is also the longest that a flood waits for each of its
	// frames, so that it goes on beside any number of short commands.
	youth = 10 * time.Millisecond
	// companyFor is how long a flood takes into account that commands begin beside it. What it has under way when one does cannot be
	// taken back, so it must be little before.
	companyFor = 2 * time.Second
	// inCompany is how many bytes a flood has under way then, and sends at a time. The host grants in steps of this size or less.
	inCompany = wire.Window / 8
)

// visit is one command's part in a courtesy.
type visit struct {
	*courtesy
	// grow ends its youth and over its life, each once. Both may be called again, and over without grow, but not grow after over.
	grow, over func()
}

// begin counts a command in.
func (c *courtesy) begin() *visit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live++; c.live > 1 {
		c.met = time.Now()
	}
	if c.young++; c.grown == nil {
		c.grown = make(chan struct{})
	}
	grow := sync.OnceFunc(c.leaveYoung)
	timer := time.AfterFunc(youth, grow)
	return &visit{c, grow, sync.OnceFunc(func() {
		timer.Stop()
		grow()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.live--
	})}
}

// guest counts in what is no command, such as a connection to a port. It has no youth, and is company only once it floods: most wait all day.
func (c *courtesy) guest() *visit {
	flooding := false
	return &visit{c, sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.live++
		flooding = true
	}), sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if flooding {
			c.live--
		}
	})}
}

func (c *courtesy) leaveYoung() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young--; c.young == 0 {
		close(c.grown)
		c.grown = nil
	}
}

// yield waits until no command is young, at most for youth.
func (c *courtesy) yield() {
	c.mu.Lock()
	grown := c.grown
	c.mu.Unlock()
	if grown == nil {
		return
	}
	timer := time.NewTimer(youth)
	defer timer.Stop()
	select {
	case <-grown:
	case <-timer.C:
	}
}

// company reports whether commands begin beside others these seconds.
func (c *courtesy) company() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.met.IsZero() && time.Since(c.met) < companyFor
}
