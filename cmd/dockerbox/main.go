// Command dockerbox makes sandboxes out of Docker containers, runs commands in them and serves them to Hermes.
//
// The rules of its user interface: stdout carries the answer and nothing else. stderr carries progress and notes, and for a failure two
// lines, "dockerbox: error: …" and "dockerbox: hint: …". A mistake in the command line is status 2, a failure of dockerbox itself 125;
// every other status belongs to the command that was run.
package main

import (
	"context"
	"io"
	"os"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// Set by the linker; [buildVersion] knows what to do when they are not.
var (
	version  = ""
	revision = ""
)

func main() {
	ctx, stop := interruptible(context.Background(), func(status int) {
		restoreTerminal()
		os.Exit(status)
	})
	status := run(ctx, streams{os.Stdin, os.Stdout, os.Stderr}, os.Args[1:])
	stop()
	os.Exit(status)
}

// streams are the three every command is given.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// opener makes the provider for the daemon that the persistent flags choose. Only commands that need one call it: making it reads
// docker's configuration.
type opener func(options ...provider.Option) (*provider.Provider, error)

// run executes one command line and returns the exit status.
func run(ctx context.Context, std streams, args []string) int {
	started := false
	root := newRoot(std, &started) //nolint:contextcheck // cobra hands the context to the command that runs
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !started { // the command line was not understood
		err = asUsage(err)
	}
	return conclude(ctx, std.err, command.CommandPath(), err)
}
