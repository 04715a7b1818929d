//go:build !linux

package agent

import (
	"fmt"
	"io"
)

// Main says that the agent is for Linux and returns the exit status 2. The parameters are those of the Linux build.
func Main(_ []string, _ io.Writer, stderr io.Writer) int {
	fmt.Fprintln(stderr, "dockerbox-agent: runs inside a Linux container only")
	return 2
}
