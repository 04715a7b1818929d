//go:build linux

package agent

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// loginLimit is how long the profile may take, all files together. A profile that loops costs this once, and is then gone without.
const (
	loginLimit = 5 * time.Second
	loginGrace = 500 * time.Millisecond
)

// stages are the login profile's parts. Each is followed by a report, so that one which exits, execs or never ends loses only itself
// and, if it never ends, what would follow. .bashrc is left out when the user's profile names it, or it would be read twice.
func stages(profile string) []string {
	const user = `if [[ -r ~/.bash_profile ]]; then REPLY=~/.bash_profile; elif [[ -r ~/.bash_login ]]; then REPLY=~/.bash_login; ` +
		`elif [[ -r ~/.profile ]]; then REPLY=~/.profile; else REPLY=; fi; `
	return []string{
		``,
		`[[ ! -r ` + profile + ` ]] || builtin . ` + profile + `; `,
		user + `[[ -z $REPLY ]] || builtin . "$REPLY"; `,
		user + `MAPFILE=(); [[ -z $REPLY ]] || builtin mapfile -t <"$REPLY"; ` +
			`[[ ${MAPFILE[*]-} == *bashrc* || ! -r ~/.bashrc ]] || builtin . ~/.bashrc; `,
	}
}

// loginScript runs the stages from number first on. One line, see boot. The EXIT trap reports the stage that ends the shell; it is set
// anew each time, because a profile may have set its own, and so are the options, because set -eu would end the next stage.
func loginScript(profile string, first int) string {
	report := `{ ` + clearTraps + reportState + `} >/dev/null 2>&1; `
	settle := `{ builtin set +eux; builtin trap ` + quote(unaliased(report)) + ` EXIT; } 2>/dev/null; `
	b := `builtin shopt -u expand_aliases; { builtin eval -- "${MAPFILE[1]}"; } >/dev/null 2>&1; exec 248<&-; ` +
		`builtin unset MAPFILE; builtin cd; builtin shopt -s expand_aliases; `
	for _, stage := range stages(quote(profile))[first:] {
		b += settle + stage + report
	}
	return b + `{ builtin trap - EXIT; } 2>/dev/null; builtin exit 0`
}

// readProfile runs the login profile as id and returns the state it made of first, with the directory a login starts in. It always
// returns a state: first itself when nothing could be learnt.
func (a *Agent) readProfile(id identity, bash string, first *snapshot) (state *snapshot, cwd string) {
	state = first
	deadline := time.Now().Add(a.loginLimit)
	for done := 0; done < len(stages("")); {
		states, inTime := a.loginShell(id, bash, state, done, deadline)
		if len(states) > 0 {
			state = states[len(states)-1].snapshot
			if done == 0 {
				cwd = states[0].cwd
			}
		}
		if !inTime {
			a.journal.say("the login profile of user %s was ended, for it did not end within %s; commands run without what it had left to do", id.name, a.loginLimit)
			break
		}
		done += max(1, len(states)) // the stage that gave no report is not tried again
	}
	return state, cwd
}

// loginShell runs the stages from first on in one shell. inTime is false when it could not be started or had to be ended.
func (a *Agent) loginShell(id identity, bash string, from *snapshot, first int, deadline time.Time) (states []dump, inTime bool) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, false
	}
	defer null.Close()
	env, prelude := from.prelude()
	load, err := memfd(loginScript(a.files.profile, first) + "\x00" + prelude)
	if err != nil {
		return nil, false
	}
	defer load.Close()
	mine, theirs, err := pipes(id.uid, id.gid, true)
	if err != nil {
		return nil, false
	}
	c := child{mark: nextMark(), status: mine[0]}
	defer c.close()
	argv := append([]string{shellShim, strconv.FormatUint(c.mark, 10), bash}, shellArgs(loader)...)
	c.process, err = id.launch(argv, env, map[int]*os.File{0: null, 1: null, 2: null, fdStatus: theirs[0], fdPrelude: load})
	closeAll(theirs)
	if err != nil {
		return nil, false
	}
	reports := collect(c.status)
	inTime = true
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-c.done:
	case <-a.closing:
		inTime = false
	case <-timer.C:
		inTime = false
	}
	if !inTime {
		c.kill(loginGrace)
	}
	<-c.done
	r, err := parseReport(reports.finish(), from)
	if err != nil && len(r.states) == 0 {
		return nil, inTime
	}
	return r.states, inTime
}

// environment reads a list of NAME=VALUE, later ones winning.
func environment(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, kv := range list {
		if name, value, found := strings.Cut(kv, "="); found && name != "" {
			env[name] = value
		}
	}
	return env
}
