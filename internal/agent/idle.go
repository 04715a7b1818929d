//go:build linux

package agent

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// idle is a sandbox's first process and keeps it alive: the image need not have a program that sleeps, or an init. Being the first, it is
// out of reach of kill -9 -1 and of every signal from inside that it has no handler for, although it belongs to the sandbox's account;
// so it has none, and ends by SIGKILL from outside. Ignoring SIGCHLD makes the kernel collect the orphans that fall to it.
func idle() int {
	signal.Ignore()
	for {
		_ = unix.Pause() // returns only if a signal came all the same
	}
}
