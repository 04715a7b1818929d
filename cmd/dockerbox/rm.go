package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

func newRM(std streams, open opener) *cobra.Command {
	var o provider.RemoveOptions
	c := &cobra.Command{
		Use:        "rm [-f] [--keep-home] NAME...",
		Short:      "Remove sandboxes",
		SuggestFor: []string{"remove", "delete", "down"},
		Long: `Remove sandboxes with their homes, and print the name of each. One that cannot be
removed does not stop the others.`,
		Args:        someName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return forEach(c.Context(), std, open, args, c.CommandPath(), func(ctx context.Context, p *provider.Provider, name string) error {
				return p.Remove(ctx, name, o)
			})
		},
	}
	c.Flags().BoolVarP(&o.Force, "force", "f", false, "also running ones; one that does not exist is no failure")
	c.Flags().BoolVar(&o.KeepHome, "keep-home", false, "keep the home for the next sandbox of that name")
	return c
}
