package main

import (
	"context"
	"errors"

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
			return runRM(c.Context(), std, open, o, args, c.CommandPath())
		},
	}
	c.Flags().BoolVarP(&o.Force, "force", "f", false, "also running ones; one that does not exist is no failure")
	c.Flags().BoolVar(&o.KeepHome, "keep-home", false, "keep the home for the next sandbox of that name")
	return c
}

func runRM(ctx context.Context, std streams, open opener, o provider.RemoveOptions, names []string, path string) error {
	p, err := open()
	if err != nil {
		return err
	}
	status := 0
	for _, name := range names {
		err := p.Remove(ctx, name, o)
		if err == nil {
			err = say(std.out, "%s\n", name)
		}
		if s := conclude(ctx, std.err, path, err); status == 0 {
			status = s
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := p.Close(); err != nil {
		return errors.Join(err)
	}
	if status != 0 {
		return statusError(status)
	}
	return nil
}
