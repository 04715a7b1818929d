//go:build linux

package agent

import (
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// account is one user's side of the sandbox: its shell state, and a shell that waits for the next command. It lives as long as the
// agent, so state outlives connections.
type account struct {
	agent *Agent
	// ready is closed when the login profile has been read, or given up.
	ready chan struct{}
	// spawning is held while a warm shell is being started, so that a command which comes meanwhile gets it instead of a second one.
	spawning sync.Mutex

	mu       sync.Mutex
	id       identity  // as last asked for; the waiting shell is made for it
	base     *snapshot // after login; what commands given as words start with. Set before ready is closed.
	now      *snapshot // lasting state
	cwd      string    // lasting directory
	oldpwd   string
	reported map[string]bool // directories this agent has named to the host
	gone     string          // reported directory whose loss the user has been told of
	warm     *shell
}

// maxReported bounds the memory of reported directories. When it is reached all but the newest are forgotten: a directory named so long
// ago then counts as a wrong one.
const maxReported = 4096

// account finds or makes the runtime side of user. Its login begins now if it is new. The identity is the one to use for what user asked:
// "pn" and "1000:1000" share their state, but not their groups.
func (a *Agent) account(user string) (*account, identity, error) {
	if user == "" {
		user = a.defaultUser
	}
	id, err := a.files.resolve(user, a.env["HOME"])
	if err != nil {
		return nil, id, err
	}
	key := [2]int{id.uid, id.gid}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, id, errClosed
	}
	acc := a.accounts[key]
	if acc == nil {
		acc = &account{agent: a, ready: make(chan struct{}), id: id, reported: map[string]bool{}}
		a.accounts[key] = acc
		a.wait.Go(func() {
			acc.login()
			acc.prewarm()
		})
		return acc, id, nil
	}
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.id = id
	return acc, id, nil
}

// entry returns what a command that starts now is given.
func (acc *account) entry() (now *snapshot, cwd, oldpwd string) {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	return acc.now, acc.cwd, acc.oldpwd
}

// expand completes dir: "" is what whenEmpty says, "~" and "~/x" are below the home. ok is false for what no directory can be.
func (id identity) expand(dir, whenEmpty string) (full string, ok bool) {
	if dir == "" {
		dir = whenEmpty
	}
	if dir == "~" || strings.HasPrefix(dir, "~/") {
		dir = id.home + dir[1:]
	}
	return path.Clean(dir), path.IsAbs(dir) && !strings.Contains(dir, "\x00")
}

// how says what to do when dir cannot be entered: one the host knows from us has been deleted since, any other is wrong.
func (acc *account) how(dir string) string {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	switch {
	case !acc.reported[dir] && dir != acc.cwd && dir != acc.id.home:
		return howStrict
	case dir == acc.gone:
		return howQuiet
	default:
		return howNote
	}
}

// learn takes over what an ended command reported. dir is where it was to run, before what it started with, private its own
// variables. It returns the directory to tell the host, empty when the command reported none.
func (acc *account) learn(r report, dir, oldpwd string, before *snapshot, private passing) string {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	switch {
	case r.moved:
		acc.gone = dir
	case dir == acc.gone && r.refused == "":
		acc.gone = ""
	}
	if len(r.states) == 0 {
		return ""
	}
	d := r.states[len(r.states)-1]
	d.snapshot.keep(before, private)
	acc.now = acc.now.merge(before, d.snapshot)
	if d.oldpwd != oldpwd {
		acc.oldpwd = d.oldpwd
	}
	if !path.IsAbs(d.cwd) || len(d.cwd) >= unix.PathMax { // no directory; the command wrote the report itself
		return ""
	}
	if d.pwd != dir { // it changed directory; one that did not must not undo another's cd
		acc.cwd = d.cwd
	}
	acc.report(d.cwd)
	return d.cwd
}

func (acc *account) report(dir string) {
	if len(acc.reported) >= maxReported {
		clear(acc.reported)
	}
	acc.reported[dir] = true
}

// shell returns a shell in state now: the warm one if it is still right, else a new one.
func (acc *account) shell(id identity, now *snapshot, split bool) (*shell, error) {
	if !split {
		acc.spawning.Lock()
		acc.mu.Lock()
		warm := acc.warm
		acc.warm = nil
		acc.mu.Unlock()
		acc.spawning.Unlock()
		if warm != nil && warm.from == now && warm.id.equal(id) && !warm.ended() {
			return warm, nil
		}
		if warm != nil {
			warm.discard()
		}
	}
	return newShell(id, acc.agent.bash(), now, split)
}

// prewarm starts the shell for the next command, unless a right one waits already. Failing costs only time: the next command starts
// its own, and says why when that fails too.
func (acc *account) prewarm() {
	if isGuest() {
		return
	}
	acc.spawning.Lock()
	defer acc.spawning.Unlock()
	acc.mu.Lock()
	id, now := acc.id, acc.now
	old := acc.warm
	if old != nil && old.from == now && old.id.equal(id) && !old.ended() {
		acc.mu.Unlock()
		return
	}
	acc.dropWarm()
	acc.mu.Unlock()
	s, err := newShell(id, acc.agent.bash(), now, false)
	if err != nil {
		return
	}
	acc.mu.Lock()
	acc.warm = s
	acc.mu.Unlock()
	acc.agent.warmed(acc)
}

// dropWarm ends the waiting shell, if any. acc.mu is held.
func (acc *account) dropWarm() {
	if acc.warm != nil {
		acc.warm.discard()
		acc.warm = nil
	}
}

// login makes the first state: the agent's own environment as the account sees it, then what the profile makes of it.
func (acc *account) login() {
	defer close(acc.ready)
	first := newSnapshot()
	for name, value := range acc.agent.env {
		if lasts(name) {
			first.vars[name] = variable{value: value}
		}
	}
	acc.mu.Lock()
	id := acc.id
	acc.mu.Unlock()
	bash := acc.agent.bash()
	for name, value := range map[string]string{"HOME": id.home, "USER": id.name, "LOGNAME": id.name, "SHELL": id.loginShell(bash)} {
		first.vars[name] = variable{value: value}
	}
	if _, set := first.vars["PATH"]; !set {
		first.vars["PATH"] = variable{value: defaultPath}
	}
	state, cwd := first, ""
	if bash != "" {
		state, cwd = acc.agent.readProfile(id, bash, first)
	}
	keepPath(first, state)
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.base, acc.now, acc.cwd = state, state, cwd
	if cwd == "" {
		acc.cwd = id.home
	}
	acc.report(acc.cwd)
	acc.report(id.home)
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// loginShell is $SHELL: what passwd says, unless that refuses logins; programs start it.
func (id identity) loginShell(bash string) string {
	switch path.Base(id.shell) {
	case "nologin", "false", ".", "/":
		return bash
	}
	return id.shell
}

// keepPath puts the directories of the image's PATH that the profile dropped in front again: an image that says ENV PATH=/opt/t/bin:…
// means it, and Debian's /etc/profile starts from nothing.
func keepPath(image, state *snapshot) {
	now := strings.Split(state.vars["PATH"].value, ":")
	var dropped []string
	for _, dir := range strings.Split(image.vars["PATH"].value, ":") {
		if dir != "" && !slices.Contains(now, dir) && !slices.Contains(dropped, dir) { // "" is the current directory
			dropped = append(dropped, dir)
		}
	}
	v := state.vars["PATH"]
	if len(dropped) > 0 && v.declaration == "" {
		v.value = strings.Join(append(dropped, now...), ":")
		state.vars["PATH"] = v
	}
}
