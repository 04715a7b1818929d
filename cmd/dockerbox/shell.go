package main

import (
	"context"

	"github.com/spf13/cobra"
)

// loginShell becomes a login bash that finds what the image's PATH names, as everything else in the sandbox does: Debian's /etc/profile starts
// from nothing. What it dropped is put in front again before the first prompt; a shell whose own files replace PROMPT_COMMAND keeps the PATH
// they made.
const loginShell = `export DOCKERBOX_PATH=$PATH DOCKERBOX_PROMPT='
PATH=$(IFS=:; set -f; for d in $DOCKERBOX_PATH; do [[ :$PATH: == *":$d:"* ]] || printf %s: "$d"; done; printf %s "$PATH")
PROMPT_COMMAND=${PROMPT_COMMAND/"$DOCKERBOX_PROMPT"}
export -n PROMPT_COMMAND
[[ $PROMPT_COMMAND ]] || unset PROMPT_COMMAND
unset DOCKERBOX_PATH DOCKERBOX_PROMPT
'
export PROMPT_COMMAND=$DOCKERBOX_PROMPT$PROMPT_COMMAND
exec bash -l`

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

What it left in the background goes on when the shell itself has ended ("exit"). If
dockerbox ends first, or loses the connection, all that runs in the shell is ended.`,
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
	req.Argv = []string{"bash", "-c", loginShell}
	res, err := onTerminal(ctx, std, open, name, req, true)
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return statusError(res.ExitCode)
	}
	return nil
}
