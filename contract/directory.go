package contract

import (
	"path"
	"regexp"
	"strings"
)

// Source of the rules in this file: sections 2 and 3 of the Hermes plugin contract (change #142225 and the 0.22.2 sources).

// HomeDirectory stands for each sandbox's own home, resolved inside the sandbox and never on the host.
const HomeDirectory = "~"

// legacyDefault is where a host without change #142225 starts every plugin backend, for want of a better idea.
const legacyDefault = "/root"

var windowsDrive = regexp.MustCompile(`^[A-Za-z]:[\\/]`)

// LooksLikeHostPath reports whether dir has a shape that belongs to the machine Hermes runs on: relative, a Windows drive or share,
// or macOS's /Users. /home is not among them here: inside a dockerbox sandbox /home/pn is an ordinary place.
func LooksLikeHostPath(dir string) bool {
	if dir == HomeDirectory || strings.HasPrefix(dir, "~/") {
		return false
	}
	return !strings.HasPrefix(dir, "/") || strings.HasPrefix(dir, "/Users/") || windowsDrive.MatchString(dir) || strings.HasPrefix(dir, `\\`)
}

// StartDirectory decides where the first command of a sandbox runs. requested is what the host asked for; home is the account's
// home inside the sandbox, absolute. An empty or host-looking request means home; "~" and "~/x" are below home.
func StartDirectory(requested, home string) string {
	switch {
	case requested == "" || requested == HomeDirectory || LooksLikeHostPath(requested):
		return home
	case strings.HasPrefix(requested, "~/"):
		return path.Join(home, requested[2:])
	default:
		return requested
	}
}

// CommandDirectory completes the directory of one command for a sandbox whose account has the given home. A host that predates
// change #142225 passes exactly /root when it has no better idea: an account that cannot enter it runs in its home instead, so the
// second value is the fallback; empty when dir must be honoured or refused.
func CommandDirectory(dir, home string) (string, string) {
	if dir == legacyDefault && home != legacyDefault {
		return dir, home
	}
	return dir, ""
}
