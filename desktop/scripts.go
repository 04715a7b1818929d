package desktop

import (
	"embed"
	"strings"
)

// sandbox holds the shell scripts that run inside. They are shell because the image has bash and the agent runs as root only in part of
// the sandboxes, and because all but the launcher must look the same from Hermes's side.
//
//go:embed sandbox/*.sh
var sandbox embed.FS

// The scripts as bash -c takes them.
var (
	startScript    = script("start.sh")
	stopScript     = script("stop.sh")
	statusScript   = script("status.sh")
	launcherScript = script("launcher.sh")
)

// script reads one, with the one that it sources in place of the line that does.
func script(name string) string {
	text, err := sandbox.ReadFile("sandbox/" + name)
	if err != nil { // it is embedded
		panic(err)
	}
	before, after, sources := strings.Cut(string(text), "\n. ./common.sh\n")
	if !sources {
		return string(text)
	}
	return before + "\n" + script("common.sh") + after
}

// Statuses of the scripts, see common.sh.
const (
	exitForeign = 71
	exitLacking = 72
	exitStale   = 73
	exitTaken   = 74
	exitFailed  = 75
)
