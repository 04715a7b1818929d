//go:build linux

package agent

import (
	"os"
	"strconv"
	"strings"
)

// An empty screen runs a dozen programs and does nothing. They are jobs, because a sandbox that is made anew loses its screen; but they are
// nobody's work, and would keep a sandbox that everybody has left for ever. A program that somebody opened there is a job like any other, and
// so is the way by which somebody watches.

// furniture are the programs that come up with a screen, by the kernel's names for them: 15 bytes at most.
var furniture = map[string]bool{
	"Xvnc": true, "dbus-run-sessio": true, "dbus-daemon": true, "xfwm4": true, "xfsettingsd": true, "xfce4-panel": true, "xfdesktop": true,
	"xfconfd": true, "wrapper-2.0": true, "at-spi-bus-laun": true, "at-spi2-registr": true, "dconf-service": true, "xfce4-notifyd": true,
	"gvfsd": true, "tumblerd": true,
}

// isFurniture reports whether a job is part of an empty screen: a program of that name in the session of a screen's launcher.
func isFurniture(p procInfo) bool {
	return isLauncher(p.session) && (furniture[nameOf(p.pid)] || isLauncher(p.pid))
}

// isLauncher reports whether a process is the script that a screen is started by, or a shell of it.
func isLauncher(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return false // it has ended
	}
	const program, script = 0, 1
	words := strings.Split(string(line), "\x00")
	return len(words) > script && (words[program] == "bash" || strings.HasSuffix(words[program], "/bash")) &&
		(words[script] == "launcher.sh" || strings.HasSuffix(words[script], "/launcher.sh"))
}
