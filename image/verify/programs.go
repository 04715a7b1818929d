package verify

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// program is one that has to be on PATH. Its package is Debian's unless it says otherwise.
type program struct{ name, pkg, use string }

// needed are those that Hermes's Bot Desktop, computer_use and browser run, those of this repository's own launcher, and those that people
// expect in an agent's terminal.
var needed = []program{
	{"bash", "bash", "the shell of every command"},
	{"base64", "coreutils", "Hermes sends files through it"},
	{"setsid", "util-linux", "starts the screen"},
	{"flock", "util-linux", "sees to it that there is one screen"},
	{"pgrep", "procps", "finds the screen's processes"},
	{"xargs", "findutils", "ends the screen's processes"},
	{"find", "findutils", "finds Chromium"},
	{"Xvnc", "tigervnc-standalone-server", "the screen itself"},
	{"xfwm4", "xfwm4", "its window manager"},
	{"xfce4-panel", "xfce4-panel", "its panel"},
	{"xfdesktop", "xfdesktop4", "its desktop"},
	{"xfsettingsd", "xfce4-settings", "its fonts and themes"},
	{"dbus-run-session", "dbus-daemon", "its message bus"},
	{"xauth", "xauth", "its key"},
	{"xdpyinfo", "x11-utils", "Hermes waits for the screen with it"},
	{"xprop", "x11-utils", "lists the windows"},
	{"setxkbmap", "x11-xkb-utils", "sets the layout of the keyboard"},
	{"xset", "x11-xserver-utils", "keeps the screen from being blanked"},
	{"xfce4-terminal", "xfce4-terminal", "a terminal on the screen"},
	{"thunar", "thunar", "a file manager on the screen"},
	{"mousepad", "mousepad", "an editor on the screen"},
	{"xclip", "xclip", "the clipboard of the screen"},
	{"cua-driver", "cua-driver of PyPI", "drives the screen for computer_use"},
	{"agent-browser", "agent-browser of npm", "drives Chromium for the browser tool"},
	{"fc-match", "fontconfig", "finds fonts"},
	{"python3", "python3", "Hermes's pictures and streams are made by it"},
	{"node", "nodejs", "expected in a terminal"},
	{"npm", "npm", "expected in a terminal"},
	{"sudo", "sudo", "lets the account install packages"},
	{"git", "git", "expected in a terminal"},
	{"curl", "curl", "expected in a terminal"},
	{"jq", "jq", "expected in a terminal"},
	{"rg", "ripgrep", "expected in a terminal"},
	{"fd", "fd-find", "expected in a terminal"},
	{"tmux", "tmux", "expected in a terminal"},
	{"rsync", "rsync", "expected in a terminal"},
	{"ssh", "openssh-client", "expected in a terminal"},
	{"unzip", "unzip", "expected in a terminal"},
}

// programs checks that none of the needed ones is absent.
func (r *Report) programs(absent []string) {
	for _, p := range needed {
		r.expect(!slices.Contains(absent, p.name), "program "+p.name, "not on PATH", fmt.Sprintf("%s (package %s)", p.use, p.pkg))
	}
}

// usualPath is where programs are looked for when an image does not say.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func searchPath(env []string) []string {
	list, _ := lookup(env, "PATH")
	var dirs []string
	for _, dir := range strings.Split(or(list, usualPath), ":") {
		if path.IsAbs(dir) {
			dirs = append(dirs, path.Clean(dir))
		}
	}
	return dirs
}

// candidates are all the places where a needed program may be.
func candidates(env []string) []string {
	var all []string
	for _, p := range needed {
		for _, dir := range searchPath(env) {
			all = append(all, path.Join(dir, p.name))
		}
	}
	return all
}

// absent are the needed programs that are in none of their places, when these are missing.
func absent(env, missing []string) []string {
	is := map[string]bool{}
	for _, place := range missing {
		is[place] = true
	}
	var all []string
	for _, p := range needed {
		if !slices.ContainsFunc(searchPath(env), func(dir string) bool { return !is[path.Join(dir, p.name)] }) {
			all = append(all, p.name)
		}
	}
	return all
}

// unreachable asks bash which of the needed programs the account cannot run. known is false where there is no bash to ask.
func (s *sandbox) unreachable(ctx context.Context) (all []string, known bool, err error) {
	argv := []string{"bash", "-c", `for name do [[ -x $(type -P -- "$name") ]] || printf '%s\n' "$name"; done`, "bash"}
	for _, p := range needed {
		argv = append(argv, p.name)
	}
	said, status, err := s.run(ctx, contract.Request{Argv: argv})
	return strings.Fields(said), status == 0, err
}
