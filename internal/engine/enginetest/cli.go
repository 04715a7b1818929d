//go:build linux

package enginetest

import (
	"fmt"
	"os"
	"strings"
)

// cli plays the docker CLI for the one thing an exec_prefix argv asks of it. A container that runs has a file that says how to get in.
const cli = `#!/bin/bash
# docker --config DIR exec [-i] [-u USER] ID WORD...: into a container of an engine in memory.
set -u
[[ $1 == --config && $3 == exec ]] || { echo "docker: this one only knows exec" >&2; exit 125; }
state=$2; shift 3
input=/dev/null user=
while :; do
  case $1 in
    -i) input=; shift ;;
    -u) user=$2; shift 2 ;;
    *) break ;;
  esac
done
entrance=$state/c/${1:0:12}/entrance
[[ -r $entrance ]] || { echo "docker: container $1 is not running" >&2; exit 1; }
. "$entrance"; shift
[[ -z $user || $user == "$account" ]] || { echo "docker: this one has no user $user" >&2; exit 126; }
[[ -z $input ]] || exec <"$input"
cd "$dir" && exec "${inside[@]}" "$@"
`

// CLIDir is a directory with a docker command in it that reaches this engine's containers; put it first in PATH.
func (e *Engine) CLIDir() string { return e.path("bin") }

// CLIArgs implements the provider's engine.
func (e *Engine) CLIArgs() []string { return []string{"--config", e.dir} }

func (e *Engine) writeCLI() error {
	const executable = 0o755
	return os.WriteFile(e.path("bin", "docker"), []byte(cli), executable)
}

func (e *Engine) entrance(b *box) string { return e.path("c", short(b.id), "entrance") }

// writeEntrance writes down the words that lead into a container.
func (e *Engine) writeEntrance(b *box) error {
	var inside []string
	if uid, gid := account(); uid != os.Geteuid() {
		inside = append(inside, "setpriv", fmt.Sprintf("--reuid=%d", uid), fmt.Sprintf("--regid=%d", gid), "--clear-groups", "--")
	}
	inside = append(append(append(inside, "env", "-i"), b.image.environ()...), b.config.Env...)
	for i, word := range inside {
		inside[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	dir := b.config.WorkingDir
	if dir == "" {
		dir = "/"
	}
	const everybody = 0o644
	text := fmt.Sprintf("account='%s'\ndir='%s'\ninside=(%s)\n", User(), dir, strings.Join(inside, " "))
	return os.WriteFile(e.entrance(b), []byte(text), everybody)
}
