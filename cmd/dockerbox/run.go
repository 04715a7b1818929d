package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

type runOptions struct {
	user, dir string
	env       []string
	timeout   time.Duration
	json      bool
}

func newRun(std streams, open opener) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run [OPTIONS] NAME [--] 'SHELL COMMAND'",
		Short: "Run a shell command as Hermes does",
		Long: `Run one shell command in the sandbox NAME exactly as Hermes does: the working
directory, exported variables, functions and aliases of earlier commands hold, and
what this one changes lasts. stdout and stderr come in order, on stdout. With --json
the middle of more than 4 MiB of output is left out, and "dropped" says how much.

Options stand before NAME. The command is one word: quote it.`,
		Args:        someName,
		Annotations: map[string]string{exitCodes: exitOfCommand},
		RunE: func(c *cobra.Command, args []string) error {
			words := afterDashes(args[1:])
			if len(words) != 1 {
				return oneWord(args[0], words)
			}
			return runRun(c.Context(), std, open, &o, args[0], words[0])
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	addCommandFlags(c, &o.user, &o.dir, &o.env, &o.timeout)
	f.BoolVar(&o.json, "json", false, "print JSON, output and all")
	return c
}

// oneWord explains what to do with several words. Joining them would undo the quotes the user's own shell took away.
func oneWord(name string, words []string) error {
	if len(words) == 0 {
		return &usageError{problem: "there is no command to run"}
	}
	return &usageError{
		problem: fmt.Sprintf("run takes the shell command as one word, not %d", len(words)),
		hint:    fmt.Sprintf("quote it: dockerbox run %s %s", name, quote(quoteAll(words))),
	}
}

// runAnswer is what run --json prints.
type runAnswer struct {
	Schema     int    `json:"schema"`
	Output     string `json:"output"`
	ReturnCode int    `json:"returncode"`
	Cwd        string `json:"cwd"`
	DurationMS int64  `json:"duration_ms"`
	Recreated  bool   `json:"environment_recreated"`
	Dropped    int64  `json:"dropped,omitempty"` // bytes left out of the middle of Output
}

// maxAnswer bounds the output in an answer, in bytes: it is held as a whole, and JSON makes up to six bytes of one.
const maxAnswer = 4 << 20

func runRun(ctx context.Context, std streams, open opener, o *runOptions, name, command string) error {
	req, err := request(o.user, o.dir, o.env, o.timeout)
	if err != nil {
		return err
	}
	if req.Command = command; command == "" { // nothing is a command for a shell, but none for the contract
		req.Command = ":"
	}
	out := &lastByte{w: std.out}
	if o.json {
		req.MaxOutput = maxAnswer
	} else {
		req.Stdout = out
	}
	res, err := execute(ctx, open, name, req)
	if err != nil {
		return err
	}
	if o.json {
		err = printJSON(std.out, runAnswer{schema, string(res.Output), res.ExitCode, res.Cwd, res.Duration.Milliseconds(), res.Recreated, res.Dropped})
	} else {
		err = sayKilled(out, res, o.timeout)
		if res.Recreated {
			note(std.err, "warning: the sandbox had to be started again; jobs and shell state before this command are gone")
		}
	}
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return statusError(res.ExitCode)
	}
	return nil
}

// sayKilled ends streamed output with the line that whole output ends with.
func sayKilled(out *lastByte, res contract.Result, limit time.Duration) error {
	var cause error
	switch {
	case res.TimedOut:
		cause = contract.ErrTimedOut
	case res.Interrupted:
		cause = contract.ErrInterrupted
	default:
		return nil
	}
	said := contract.Killed(contract.Result{Output: out.last}, cause, limit).Output[len(out.last):]
	return say(out, "%s\n", said)
}

// lastByte passes writes on and remembers the last byte, if any.
type lastByte struct {
	w    io.Writer
	last []byte
}

func (l *lastByte) Write(p []byte) (int, error) {
	n, err := l.w.Write(p)
	if n > 0 {
		l.last = []byte{p[n-1]}
	}
	return n, err
}
