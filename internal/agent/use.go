//go:build linux

package agent

import (
	"errors"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// use is who uses the agent, and when somebody last did. Hosts that only look do not count. A resident that was started a moment ago does
// not know what was before it, and says that it is in use: whoever removes what is idle may come again later.
type use struct {
	mu      sync.Mutex
	clients int       // connections that have not said that they only look
	last    time.Time // a command or such a connection began or ended
	retired time.Time // no connection is taken before
}

// retirement is how long a host has to stop the container of an agent that it has retired. After that, it is taken to have died.
const retirement = 5 * time.Second

var errRetired = errors.New("the sandbox is being removed, for nobody used it")

// arrive counts a connection that begins.
func (u *use) arrive() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Now().Before(u.retired) {
		return errRetired
	}
	u.clients++
	return nil
}

// leave undoes arrive. used says that it was more than a look.
func (u *use) leave(used bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.clients--
	if used {
		u.last = time.Now()
	}
}

// touch says that something is used now.
func (u *use) touch() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = time.Now()
}

func (u *use) answer() *wire.Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	return &wire.Use{IdleMS: time.Since(u.last).Milliseconds(), Clients: u.clients}
}

// claim lets nobody in from now on, if nobody is there and nothing was used for idle.
func (u *use) claim(idle time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if u.clients > 0 || now.Sub(u.last) < idle || now.Before(u.retired) {
		return false
	}
	u.retired = now.Add(retirement)
	return true
}

// release takes a claim back.
func (u *use) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retired = time.Time{}
}

// retire answers OpRetire. The door is closed before it is looked who is in: what comes after that look does not come in.
func (a *Agent) retire(idle time.Duration) wire.Answer {
	claimed := a.use.claim(idle)
	answer := a.look()
	answer.Retired = claimed && answer.Error == "" && answer.Jobs <= answer.Screen
	switch {
	case answer.Retired:
		a.journal.say("nobody has used the sandbox for %s: it is given up", idle)
	case claimed:
		a.use.release()
	}
	return answer
}

// look answers OpJobs.
func (a *Agent) look() wire.Answer {
	answer := answerJobs(jobs())
	answer.Use = a.use.answer()
	return answer
}
