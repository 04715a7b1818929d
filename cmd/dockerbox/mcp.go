package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/desktop"
)

func newMCP(std streams, open opener) *cobra.Command {
	var client string
	c := &cobra.Command{
		Use:   "mcp [--print-config CLIENT] NAME",
		Short: "Serve the screen of a sandbox to an MCP client",
		Long: `Run cua-driver's MCP server in the sandbox NAME and connect it to stdin and stdout:
an MCP client that starts this command sees the sandbox's windows, clicks and types.
The screen is started if need be, and stays. The server ends with its client.

--print-config starts nothing. It prints what makes a client start this command, and
on stderr the file where that goes.`,
		Args:        oneName,
		Annotations: map[string]string{exitCodes: exitPlain + "\n  130  interrupted; the server was ended"},
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed(printConfig) {
				return printMCPConfig(std, open, client, args[0])
			}
			return withSandbox(c.Context(), open, args[0], func(ctx context.Context, env contract.Environment) error {
				return serveMCP(ctx, std, env, profileOf(args[0]))
			})
		},
	}
	c.Flags().StringVar(&client, printConfig, "", "print the configuration for a `CLIENT`: "+strings.Join(mcpClientNames(), ", "))
	_ = c.RegisterFlagCompletionFunc(printConfig, cobra.FixedCompletions(mcpClientNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}

// mcpGrace is how long a server may take to end after its client has closed stdin. It may have an answer to finish.
const mcpGrace = 5 * time.Second

// errClientGone ends a server that outlives its client.
var errClientGone = errors.New("the client closed the connection")

func serveMCP(ctx context.Context, std streams, env contract.Environment, profile string) error {
	screen, err := desktop.Start(ctx, env, desktop.Options{Profile: profile})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in := &endOf{Reader: std.in, tell: func() { time.AfterFunc(mcpGrace, func() { cancel(errClientGone) }) }}
	res, err := env.Execute(ctx, contract.Request{
		Argv: []string{"cua-driver", "mcp", "--no-overlay"}, User: screen.Account, Env: screen.Env,
		Stdin: in, Stdout: std.out, Stderr: std.err,
	})
	switch {
	case err != nil:
		return err
	case errors.Is(context.Cause(ctx), errClientGone):
		return nil
	case res.ExitCode == contract.ExitNotFound:
		return &contract.BackendError{
			Reason: "image " + env.Info().Image + " has no cua-driver, the program that serves MCP",
			Hint:   "dockerbox/desktop:latest has it; dockerbox up --image dockerbox/desktop:latest --recreate keeps the home",
		}
	case res.ExitCode != 0:
		return statusError(res.ExitCode)
	}
	return nil
}

// endOf tells when a reader is at its end, once.
type endOf struct {
	io.Reader
	tell func()
}

func (e *endOf) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if err != nil && e.tell != nil {
		e.tell()
		e.tell = nil
	}
	return n, err
}
