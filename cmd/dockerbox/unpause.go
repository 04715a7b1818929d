package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

func newUnpause(std streams, open opener) *cobra.Command {
	return &cobra.Command{
		Use:        "unpause NAME...",
		Short:      "Let paused sandboxes go on",
		SuggestFor: []string{"resume", "continue"},
		Long: `Let paused sandboxes go on, and print the name of each. One that is not paused is left
as it is; one that cannot go on does not keep the others.`,
		Args:        someName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return forEach(c.Context(), std, open, args, c.CommandPath(), func(ctx context.Context, p *provider.Provider, name string) error {
				return p.Unpause(ctx, name)
			})
		},
	}
}
