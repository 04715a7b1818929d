//go:build linux

package agent

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/archive"
)

// exitEnded is the status of an unpack that a signal ended.
const exitEnded = 128 + int(unix.SIGTERM)

// unpack makes a file or a tree of what comes on stdin. A signal that ends it, which also comes when the connection is lost, has it remove what is
// not whole first.
func unpack(args []string, stdin io.Reader, stderr io.Writer) int {
	flags := flag.NewFlagSet("unpack", flag.ContinueOnError)
	flags.SetOutput(stderr)
	name := flags.String("name", "", "what the source is called in a directory that exists")
	plain := flags.Bool("tar", false, "an archive of another program")
	parents := flags.Bool("parents", false, "make the directories above")
	if flags.Parse(args) != nil || flags.NArg() != 1 {
		fmt.Fprintln(stderr, usage)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	defer stop()
	dest := place(flags.Arg(0))
	if *parents {
		below := dest
		if *plain { // what is below comes from the archive
			below += "/."
		}
		if err := archive.MakeParents(below); err != nil {
			return copied(archive.Totals{}, err, stderr)
		}
	}
	type outcome struct {
		totals archive.Totals
		err    error
	}
	done := make(chan outcome, 1)
	clean := make(chan struct{})
	go func() {
		totals, err := archive.Unpack(ctx, stdin, dest, archive.UnpackOptions{
			Name: *name, Plain: *plain, Special: true, Ended: func() { close(clean) },
			Warn: func(text string) { fmt.Fprintln(stderr, saidWarning+text) },
		})
		done <- outcome{totals, err}
	}()
	select {
	case o := <-done:
		return copied(o.totals, o.err, stderr)
	case <-clean: // the reading of stdin cannot be ended
		return exitEnded
	}
}

// standardInput is where unpack reads from.
var standardInput io.Reader = os.Stdin
