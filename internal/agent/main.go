//go:build linux

package agent

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// Names the agent's own binary goes by in argv[0] when it stands in front of a program it is about to become.
const (
	shellShim = "dockerbox-shell"
	execShim  = "dockerbox-exec"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

const usage = `dockerbox-agent runs inside a sandbox and is started by dockerbox, not by hand:
  attach [--user USER | --first]
                         connect stdin and stdout to the resident agent of this account, or to that of the first process
  fetch PATH MAX         copy a regular file of at most MAX bytes (0: any size) to stdout
  pack [-r] [--tar] PATH write a file, with -r a tree, to stdout as an archive
  unpack [--name NAME] [--tar] [--parents] DEST
                         make files of the archive on stdin
  remove DIR             remove the files below DIR that stdin names
  realpath PATH          print PATH without links; its last part need not exist
  dial unix PATH | dial tcp 127.0.0.1:PORT
                         join stdin and stdout to a socket that something in the sandbox listens on
  housekeep              remove what display servers and buses left that live no more
  first                  be the container's first process and its account's resident agent
  idle                   keep a container alive until it is told to stop
  version                print the version`

// Main is the whole program. args includes the program's name. The result is the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case shellShim:
			return becomeShell(args[1:])
		case execShim:
			return becomeProgram(args[1:])
		}
	}
	if len(args) < 2 {
		fmt.Fprintln(stderr, usage)
		return exitUsage
	}
	switch verb, rest := args[1], args[2:]; {
	case verb == "attach":
		flags := flag.NewFlagSet("attach", flag.ContinueOnError)
		flags.SetOutput(stderr)
		user := flags.String("user", "", "account of commands that name none")
		toFirst := flags.Bool("first", false, "the agent is the container's first process")
		if err := flags.Parse(rest); errors.Is(err, flag.ErrHelp) {
			return 0
		} else if err != nil {
			return exitUsage
		}
		if flags.NArg() > 0 {
			break
		}
		return attach(*user, *toFirst, stdout, stderr)
	case verb == "resident" && len(rest) == 0:
		return resident(stderr)
	case verb == "first" && len(rest) == 0:
		return first(stderr)
	case verb == "idle" && len(rest) == 0:
		return idle()
	case verb == "fetch" && len(rest) == 2:
		return fetch(rest[0], rest[1], stdout, stderr)
	case verb == "pack":
		return pack(rest, stdout, stderr)
	case verb == "unpack":
		return unpack(rest, standardInput, stderr)
	case verb == "remove" && len(rest) == 1:
		return remove(rest[0], standardInput, stderr)
	case verb == "realpath" && len(rest) == 1:
		return printRealpath(rest[0], stdout, stderr)
	case verb == "dial" && len(rest) == 2:
		return dial(rest[0], rest[1], stderr)
	case verb == "housekeep" && len(rest) == 0:
		return complain(keepHouse(systemHouse), stderr)
	case verb == "version" && len(rest) == 0:
		fmt.Fprintln(stdout, Version)
		return 0
	}
	fmt.Fprintln(stderr, usage)
	return exitUsage
}
