package main

import (
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/internal/rpc"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

func newVersion(std streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:         "version [--json]",
		Short:       "Print the version, the revision and the protocols it speaks",
		Args:        noArgs,
		Annotations: map[string]string{exitCodes: exitOK + "\n" + exitUsage},
		RunE:        func(*cobra.Command, []string) error { return runVersion(std.out, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// versionAnswer is what version --json prints.
type versionAnswer struct {
	Schema    int       `json:"schema"`
	Version   string    `json:"version"`
	Revision  string    `json:"revision"`
	Protocols protocols `json:"protocols"`
}

// protocols are those of docs/protocol.md: with a host such as Hermes, and with the agent in a sandbox.
type protocols struct {
	Host  int `json:"host"`
	Agent int `json:"agent"`
}

func runVersion(out io.Writer, asJSON bool) error {
	v, r := buildVersion()
	if asJSON {
		return printJSON(out, versionAnswer{schema, v, r, protocols{rpc.Protocol, wire.Protocol}})
	}
	return say(out, "dockerbox %s\nrevision %s\nprotocols: host %d, agent %d\n", v, r, rpc.Protocol, wire.Protocol)
}

// buildVersion is what the linker was told, else what the Go build recorded, else "dev" and "unknown".
func buildVersion() (v, r string) {
	v, r = version, revision
	if info, ok := debug.ReadBuildInfo(); ok {
		if v == "" && info.Main.Version != "(devel)" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			if r == "" && s.Key == "vcs.revision" {
				r = s.Value
			}
		}
	}
	if v == "" {
		v = "dev"
	}
	if r == "" {
		r = "unknown"
	}
	return v, r
}
