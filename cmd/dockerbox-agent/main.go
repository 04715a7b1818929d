// Command dockerbox-agent is mounted read-only into every sandbox; see package agent for what it does there.
package main

import (
	"os"

	"github.com/hermes-dockerbox/dockerbox/internal/agent"
)

func main() { os.Exit(agent.Main(os.Args, os.Stdout, os.Stderr)) }
