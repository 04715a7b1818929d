package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

type execOptions struct {
	interactive, tty bool
	user, dir        string
	env              []string
	timeout          time.Duration
}

// exitOfCommand ends the help of what runs commands.
const exitOfCommand = `  n    the status of the command
` + exitUsage + `
  124  the command ran out of time and was killed
` + exitBackend + `
  126  the command is not executable, or the directory cannot be entered
  127  there is no such command
  130  interrupted; the command was killed`

func newExec(std streams, open opener) *cobra.Command {
	var o execOptions
	c := &cobra.Command{
		Use:   "exec [OPTIONS] NAME [--] COMMAND [ARG...]",
		Short: "Run a program in a sandbox",
		Long: `Run a program in the sandbox NAME, word by word and without a shell, like docker
exec. Ending dockerbox by a signal ends the program and its children.

With -t the program has a terminal: it shows prompts, colours and full screens, and
its errors come where its output does. With -i as well, every key reaches it; that
needs a terminal to type at. The program takes it for the kind of terminal that TERM
names here; -e TERM=xterm helps one that does not know it.

Options stand before NAME.`,
		Args:        someName,
		Annotations: map[string]string{exitCodes: exitOfCommand},
		RunE: func(c *cobra.Command, args []string) error {
			words := afterDashes(args[1:])
			if len(words) == 0 || words[0] == "" {
				return &usageError{problem: "there is no command to run"}
			}
			return runExec(c.Context(), std, open, &o, args[0], words)
		},
	}
	f := c.Flags()
	f.SetInterspersed(false)
	f.BoolVarP(&o.interactive, "interactive", "i", false, "connect standard input")
	f.BoolVarP(&o.tty, "tty", "t", false, "give the program a terminal")
	addCommandFlags(c, &o.user, &o.dir, &o.env, &o.timeout)
	return c
}

// addCommandFlags adds what exec and run have in common.
func addCommandFlags(c *cobra.Command, user, dir *string, env *[]string, timeout *time.Duration) {
	addPlaceFlags(c, user, dir, env)
	c.Flags().DurationVar(timeout, "timeout", 0, "kill the command after `TIME`, such as 2s or 1m30s")
}

// addPlaceFlags adds who runs it, where, and with which variables.
func addPlaceFlags(c *cobra.Command, user, dir *string, env *[]string) {
	f := c.Flags()
	f.StringVarP(user, "user", "u", "", "`ACCOUNT` to run as, name or number with optional :group")
	f.StringVarP(dir, "workdir", "w", "", "`DIR` in the sandbox to run in; ~ is the account's home")
	f.StringArrayVarP(env, "env", "e", nil, "set `K=V` for this command alone; K takes the caller's value")
}

// afterDashes drops a "--" between NAME and the command.
func afterDashes(words []string) []string {
	if len(words) > 0 && words[0] == "--" {
		return words[1:]
	}
	return words
}

// request checks and translates the common flags.
func request(user, dir string, env []string, timeout time.Duration) (contract.Request, error) {
	if err := checkUser(user); err != nil {
		return contract.Request{}, err
	}
	if timeout < 0 {
		return contract.Request{}, &usageError{problem: fmt.Sprintf("timeout %s must not be negative", timeout)}
	}
	set, err := variables(env, nil, os.LookupEnv)
	return contract.Request{User: user, Dir: dir, Env: set, Timeout: timeout}, err
}

func runExec(ctx context.Context, std streams, open opener, o *execOptions, name string, words []string) error {
	req, err := request(o.user, o.dir, o.env, o.timeout)
	if err != nil {
		return err
	}
	req.Argv = words
	res, err := o.execute(ctx, std, open, name, req)
	if err != nil {
		return err
	}
	if res.TimedOut {
		note(std.err, fmt.Sprintf("the command was killed after %s", o.timeout))
	}
	if res.ExitCode != 0 {
		return statusError(res.ExitCode)
	}
	return nil
}

// execute joins req to the caller's streams, or to its terminal, and runs it.
func (o *execOptions) execute(ctx context.Context, std streams, open opener, name string, req contract.Request) (contract.Result, error) {
	if o.tty && o.interactive {
		if err := checkKeys(std, "leave out -t, or -i when there is nothing to type"); err != nil {
			return contract.Result{}, err
		}
	}
	if o.tty {
		return onTerminal(ctx, std, open, name, req, o.interactive)
	}
	req.Stdout, req.Stderr = std.out, std.err
	if o.interactive {
		req.Stdin = std.in
	}
	return execute(ctx, open, name, req)
}

// execute runs one request in a living sandbox. Standard input may still be waited for when it returns: the program's end is what
// ends that.
func execute(ctx context.Context, open opener, name string, req contract.Request) (contract.Result, error) {
	return attached(ctx, open, name, &req, func(ctx context.Context, env contract.Environment) (contract.Result, error) {
		return env.Execute(ctx, req)
	})
}

// attached has do run req in a living sandbox, with the variables that the sandbox wants from whoever runs something.
func attached(ctx context.Context, open opener, name string, req *contract.Request, do func(context.Context, contract.Environment) (contract.Result, error)) (contract.Result, error) {
	p, err := open()
	if err != nil {
		return contract.Result{}, err
	}
	env, err := p.Attach(ctx, name)
	if err != nil {
		return contract.Result{}, errors.Join(err, p.Close())
	}
	req.Env = forward(env.Info().ForwardEnv, req.Env, os.LookupEnv)
	res, err := do(ctx, env)
	return res, errors.Join(err, p.Close())
}
