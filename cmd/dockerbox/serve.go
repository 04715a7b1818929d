package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moby/term"
	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/internal/rpc"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

func newServe(std streams, open opener) *cobra.Command {
	var stdio bool
	c := &cobra.Command{
		Use:   "serve --stdio",
		Short: "Speak the JSON-RPC of the Hermes plugin on standard input and output",
		Long: `Serve sandboxes to another program over standard input and output: JSON-RPC 2.0,
one message a line, as docs/protocol.md describes. The end of standard input ends it;
commands that still run are killed, persistent sandboxes keep running. An image
that is missing is pulled in the background, and who needs it is told how far it is.`,
		Args:        noArgs,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, _ []string) error {
			if !stdio {
				return &usageError{problem: "serve needs --stdio, the one way it can speak"}
			}
			return runServe(c.Context(), std, open)
		},
	}
	c.Flags().BoolVar(&stdio, "stdio", false, "speak on standard input and output")
	return c
}

func runServe(ctx context.Context, std streams, open opener) error {
	if _, terminal := term.GetFdInfo(std.in); terminal {
		return &usageError{
			problem: "serve speaks JSON-RPC with another program, such as the Hermes plugin; standard input is a terminal",
			hint:    "dockerbox run NAME 'SHELL COMMAND' is for people",
		}
	}
	v, _ := buildVersion()
	server := &rpc.Server{Version: v}
	p, err := open(
		provider.WithLogf(func(format string, args ...any) { note(std.err, fmt.Sprintf(format, args...)) }),
		provider.WithBackgroundPull(pullPatience),
		provider.WithProgress(func(step provider.Progress) {
			if text, ok := pullWarning(step); ok { // a host shows nothing while it has no sandbox, so its log should
				server.Warn(text)
			}
		}),
	)
	if err != nil {
		return err
	}
	server.Provider = p
	return errors.Join(server.Serve(ctx, std.in, std.out), p.Close())
}

// pullPatience is how long whoever asks for a sandbox waits for its image: as long as nobody wonders, so that a small one just works, and an
// agent that asks again and again does so at this pace.
const pullPatience = 5 * time.Second

// pullWarning is the sentence for the log of whoever is served: at the beginning and at the end of a pull.
func pullWarning(step provider.Progress) (text string, ok bool) {
	switch {
	case step.First:
		return "pulling image " + step.Image, true
	case step.Whole.Done:
		return "image " + step.Image + " is there", true
	default:
		return "", false
	}
}
