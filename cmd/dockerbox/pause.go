package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

func newPause(std streams, open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "pause NAME...",
		Short: "Stop sandboxes where they are",
		Long: `Pause running sandboxes, and print the name of each: their processes keep their memory
and get no processor until "unpause". Commands fail meanwhile. One that is paused
is left as it is; one that cannot be paused does not keep the others.`,
		Args:        someName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return forEach(c.Context(), std, open, args, c.CommandPath(), func(ctx context.Context, p *provider.Provider, name string) error {
				return p.Pause(ctx, name)
			})
		},
	}
}
