package main

import (
	"context"

	"github.com/spf13/cobra"
)

type shellOptions struct {
	user, dir string
	env       []string
}

func newShell(std streams, open opener) *cobra.Command {
	var o shellOptions
	c := &cobra.Command{
		Use:        "shell [OPTIONS] NAME",
		Short:      "Work in a sandbox, at a shell of its own",
		SuggestFor: []string{"ssh", "login", "bash", "enter", "attach"},
		Long: `Open a login shell (bash) in the sandbox NAME, in the account's home, on the terminal
that dockerbox was called from. Every key reaches it, and the terminal is as it was
afterwards. What it changes is its own: lasting shell state is that of "run".

The shell and what runs in it end with dockerbox, but for what it left to the
background and was not hung up (nohup, disown) when the shell itself ended.`,
		Args: oneName,
		Annotations: map[string]string{exitCodes: `  n    the status of the shell
` + exitUsage + `
` + exitBackend + `
  126  the directory cannot be entered
  127  there is no bash
  130  interrupted; the shell was ended`},
		RunE: func(c *cobra.Command, args []string) error {
			return runShell(c.Context(), std, open, &o, args[0])
		},
	}
	addPlaceFlags(c, &o.user, &o.dir, &o.env)
	return c
}

func runShell(ctx context.Context, std streams, open opener, o *shellOptions, name string) error {
	req, err := request(o.user, o.dir, o.env, 0)
	if err != nil {
		return err
	}
	if err := checkKeys(std, "a shell is for somebody at a terminal; dockerbox exec -i NAME bash reads commands from anywhere"); err != nil {
		return err
	}
	req.Argv = []string{"bash", "-l"}
	res, err := onTerminal(ctx, std, open, name, req, true)
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return statusError(res.ExitCode)
	}
	return nil
}
