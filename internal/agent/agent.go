//go:build linux

package agent

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Agent is the resident side: accounts with their shell state, and the connections that use them. Make one with New.
type Agent struct {
	files       files
	env         map[string]string // what the agent itself was started with: the container's own environment
	bash        func() string     // where bash is now, "" when the image has none: a command may install it
	boot        string            // see wire.Hello
	defaultUser string
	loginLimit  time.Duration
	helloLimit  time.Duration
	courtesy    courtesy

	use     use
	journal journal // of what its owner should know; the zero value drops it

	// relieved is how many processes relieve ended that nobody has been told of.
	relieved atomic.Int64

	// wait counts goroutines that belong to no connection: logins, warm-ups, leftovers.
	wait    sync.WaitGroup
	closing chan struct{}

	mu        sync.Mutex
	closed    bool
	accounts  map[[2]int]*account
	warmOrder []*account // accounts with a waiting shell, the longest unused first
	conns     map[*conn]func()
	leftovers map[*os.File]bool
}

var errClosed = errors.New("the agent is being closed")

// maxWarm bounds the shells that wait, one per account: each costs a few megabytes.
const maxWarm = 8

// New makes an agent for the calling process, which becomes the one that orphans of its commands fall to, and must not run children
// by other means beside it. environ is the container's environment, as os.Environ gives it.
func New(environ []string) (*Agent, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	var id [8]byte
	if _, err := unix.Getrandom(id[:], 0); err != nil {
		return nil, fmt.Errorf("random id: %w", err)
	}
	a := &Agent{
		files: systemFiles, env: environment(environ), boot: hex.EncodeToString(id[:]), defaultUser: ownUser(),
		loginLimit: loginLimit, helloLimit: helloLimit, closing: make(chan struct{}),
		use: use{last: time.Now()}, accounts: map[[2]int]*account{}, conns: map[*conn]func(){}, leftovers: map[*os.File]bool{},
	}
	groups, err := os.Getgroups()
	if err != nil {
		return nil, fmt.Errorf("ask for the container's groups: %w", err)
	}
	// Docker's --group-add: the agent was started as "0:0", which has no groups of its own, so these are the container's.
	a.files.everybody = slices.DeleteFunc(groups, func(gid int) bool { return gid == os.Getegid() })
	a.bash = func() string { return findBash(a.env["PATH"]) }
	return a, nil
}

// ownUser is the account the agent runs as. When it cannot switch, its group is part of it: the container may have been given another than
// passwd has, and the agent cannot change it.
func ownUser() string {
	uid := strconv.Itoa(os.Geteuid())
	if canSwitch() {
		return uid
	}
	return uid + ":" + strconv.Itoa(os.Getegid())
}

func findBash(search string) string {
	for _, file := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"} {
		if unix.Access(file, unix.X_OK) == nil {
			return file
		}
	}
	for _, dir := range strings.Split(search, ":") {
		if file := dir + "/bash"; unix.Access(file, unix.X_OK) == nil {
			return file
		}
	}
	return ""
}

// admit registers a connection; false when the agent is being closed.
func (a *Agent) admit(c *conn, hangUp func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.conns[c] = hangUp
		a.wait.Add(1)
	}
	return !a.closed
}

func (a *Agent) dismiss(c *conn) {
	a.mu.Lock()
	delete(a.conns, c)
	a.mu.Unlock()
	a.wait.Done()
}

// warmed notes that acc has a waiting shell and ends those of accounts that have gone unused for longest.
func (a *Agent) warmed(acc *account) {
	a.mu.Lock()
	a.warmOrder = append(slices.DeleteFunc(a.warmOrder, func(x *account) bool { return x == acc }), acc)
	var surplus []*account
	if n := len(a.warmOrder) - maxWarm; n > 0 {
		surplus = append(surplus, a.warmOrder[:n]...)
		a.warmOrder = a.warmOrder[n:]
	}
	closed := a.closed
	a.mu.Unlock()
	if closed {
		surplus = append(surplus, acc)
	}
	for _, x := range surplus {
		x.mu.Lock()
		x.dropWarm()
		x.mu.Unlock()
	}
}

// Close ends all connections with their commands, and the waiting shells, and returns when everything the agent started itself is over.
// Background jobs go on. Idempotent.
func (a *Agent) Close() {
	a.mu.Lock()
	if !a.closed {
		a.closed = true
		close(a.closing)
	}
	for _, hangUp := range a.conns {
		hangUp()
	}
	for f := range a.leftovers {
		_ = f.Close() // ends its reader
	}
	accounts := make([]*account, 0, len(a.accounts))
	for _, acc := range a.accounts {
		accounts = append(accounts, acc)
	}
	a.mu.Unlock()
	a.wait.Wait()
	for _, acc := range accounts {
		acc.mu.Lock()
		acc.dropWarm()
		acc.mu.Unlock()
	}
}
