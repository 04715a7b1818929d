package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// usualGrace is docker's.
const usualGrace = 10 * time.Second

func newStop(std streams, open opener) *cobra.Command {
	wait := grace(usualGrace)
	c := &cobra.Command{
		Use:   "stop [-t TIME] NAME...",
		Short: "Stop sandboxes",
		Long: `Stop sandboxes, and print the name of each. What runs in them is asked to end, and
ended when it has not after TIME. Homes and installed programs stay, variables and
directories of shells do not; the next command starts a stopped sandbox again. One
that cannot be stopped does not keep the others.`,
		Args:        someName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return forEach(c.Context(), std, open, args, c.CommandPath(), func(ctx context.Context, p *provider.Provider, name string) error {
				return p.Stop(ctx, name, time.Duration(wait))
			})
		},
	}
	c.Flags().VarP(&wait, "time", "t", "`TIME` to end in: seconds, or with a unit as in 1m30s; 0 asks nobody")
	return c
}

// grace is a time that a bare number gives in seconds, as docker's flag does.
type grace time.Duration

// Set implements pflag.Value.
func (g *grace) Set(text string) error {
	const most = 24 * time.Hour
	d, err := time.ParseDuration(text)
	if n, failed := strconv.ParseUint(text, 10, 31); failed == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d < 0 || d > most {
		return errors.New("must be " + valueOf(g.Type()))
	}
	*g = grace(d)
	return nil
}

// String implements pflag.Value.
func (g *grace) String() string { return time.Duration(*g).String() }

// Type implements pflag.Value.
func (g *grace) Type() string { return "time" }

// forEach does something to each sandbox and prints its name. One that fails is reported and does not keep the others; the status is that
// of the first.
func forEach(ctx context.Context, std streams, open opener, names []string, path string, do func(context.Context, *provider.Provider, string) error) error {
	p, err := open()
	if err != nil {
		return err
	}
	status := 0
	for _, name := range names {
		err := do(ctx, p, name)
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
