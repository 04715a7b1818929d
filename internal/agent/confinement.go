//go:build linux

package agent

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// confinement asks the kernel what holds for this process and all it starts.
func confinement() (*wire.Confinement, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	c, err := parseConfinement(status)
	if err != nil {
		return nil, err
	}
	var root unix.Statfs_t
	if err := unix.Statfs("/", &root); err != nil {
		return nil, fmt.Errorf("statfs /: %w", err)
	}
	c.ReadOnly = root.Flags&unix.ST_RDONLY != 0
	return &c, nil
}

// parseConfinement reads what /proc/PID/status says. A line that is missing says that nothing keeps the process from anything: kernels leave
// out what they were built without.
func parseConfinement(status []byte) (wire.Confinement, error) {
	c := wire.Confinement{Capabilities: ^uint64(0)}
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		text := string(bytes.TrimSpace(value))
		var err error
		switch string(name) {
		case "NoNewPrivs":
			c.NoNewPrivileges = text == "1"
		case "Seccomp":
			const filter = "2"
			c.Filtered = text == filter
		case "CapBnd":
			c.Capabilities, err = strconv.ParseUint(text, 16, 64)
		}
		if err != nil {
			return c, fmt.Errorf("/proc/self/status: %w", err)
		}
	}
	return c, nil
}
