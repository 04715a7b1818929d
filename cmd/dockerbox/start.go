package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

func newStart(std streams, open opener) *cobra.Command {
	return &cobra.Command{
		Use:   "start NAME...",
		Short: "Start stopped sandboxes",
		Long: `Start sandboxes that were stopped, and print the name of each. One that runs already
is left as it is; one that cannot be started does not keep the others. "up" makes
those that do not exist.`,
		Args:        someName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return forEach(c.Context(), std, open, args, c.CommandPath(), func(ctx context.Context, p *provider.Provider, name string) error {
				return p.Start(ctx, name)
			})
		},
	}
}
