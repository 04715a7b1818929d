package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

func newRestart(std streams, open opener) *cobra.Command {
	wait := grace(usualGrace)
	c := &cobra.Command{
		Use:   "restart [-t TIME] NAME...",
		Short: "Stop and start sandboxes",
		Long: `Stop sandboxes as "stop" does and start them again, stopped ones too, and print the
name of each. One that fails does not keep the others. Whoever is connected, Hermes
for one, is told with the next command that the sandbox was started anew.`,
		Args:        someName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return forEach(c.Context(), std, open, args, c.CommandPath(), func(ctx context.Context, p *provider.Provider, name string) error {
				return p.Restart(ctx, name, time.Duration(wait))
			})
		},
	}
	c.Flags().VarP(&wait, "time", "t", "`TIME` to end in: seconds, or with a unit as in 1m30s; 0 asks nobody")
	return c
}
