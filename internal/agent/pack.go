//go:build linux

package agent

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/internal/archive"
)

// What pack, unpack and remove say on stderr, one thing a line: warnings, at the end how much there was, and the failure: a path, which may be
// empty, a tab, and what is wrong with it.
const (
	saidWarning = "warning: "
	saidFailure = "failure: "
	saidTotals  = "totals: "
)

// pack writes a file or a tree of the sandbox to stdout.
func pack(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("pack", flag.ContinueOnError)
	flags.SetOutput(stderr)
	recursive := flags.Bool("r", false, "directories too")
	plain := flags.Bool("tar", false, "an archive for other programs")
	if flags.Parse(args) != nil || flags.NArg() != 1 {
		fmt.Fprintln(stderr, usage)
		return exitUsage
	}
	source := place(flags.Arg(0))
	totals, err := archive.Pack(stdout, source, archive.PackOptions{
		Tree: *recursive, Plain: *plain, Name: archive.Name(source),
		Warn: func(text string) { fmt.Fprintln(stderr, saidWarning+text) },
	})
	return copied(totals, err, stderr)
}

// copied says how a copy ended, and returns the status for it.
func copied(totals archive.Totals, err error, stderr io.Writer) int {
	fmt.Fprintf(stderr, "%s%d %d\n", saidTotals, totals.Files, totals.Bytes)
	if err == nil {
		return 0
	}
	var fault *archive.Fault
	if !errors.As(err, &fault) {
		fault = &archive.Fault{Kind: archive.Other, Problem: err.Error()}
	}
	path := ""
	if fault.Path != "" {
		path = archive.Shown(fault.Path)
	}
	fmt.Fprintf(stderr, "%s%s\t%s\n", saidFailure, path, fault.Problem)
	return int(fault.Kind)
}

// place is where a path of a copy is: "~" is the account's home, and what is not absolute begins at the root, as docker cp has it.
func place(name string) string {
	if rest, is := strings.CutPrefix(name, "~"); is && (rest == "" || rest[0] == '/') {
		name = os.Getenv("HOME") + rest
	}
	if !path.IsAbs(name) {
		name = "/" + name
	}
	return name
}
