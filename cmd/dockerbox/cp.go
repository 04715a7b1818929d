package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/go-units"
	"github.com/moby/term"
	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/transfer"
)

type cpOptions struct {
	transfer.Options

	json bool
}

func newCP(std streams, open opener) *cobra.Command {
	var o cpOptions
	c := &cobra.Command{
		Use:        "cp [-r] [-u ACCOUNT] [--json] NAME:PATH PATH | PATH NAME:PATH",
		Short:      "Copy files and directories into or out of a sandbox",
		SuggestFor: []string{"copy", "scp", "push", "fetch"},
		Long: `Copy a file, or with -r a directory, between this machine and a sandbox. It is done
in the sandbox as its account, so the files there are that account's, and it sees
what the account sees, /tmp and mounts included; out here they are yours.

As with docker cp: what exists and is a directory is copied into; SRC/. stands for
what is in SRC; a directory never takes the place of a file, nor the other way
round; PATH in the sandbox begins at /, or at ~, its home. Modes, times, links, holes
and attributes are kept; setuid and setgid of files do not come out.

A dash for the PATH of this machine is a tar archive: of standard input, unpacked in
a directory of the sandbox, or on standard output. A path of this machine with a
colon in it begins with / or ./ so that it is no sandbox's.

A copy that is ended leaves no half file: each is there whole, as it was before, or
not at all.`,
		Args: func(_ *cobra.Command, args []string) error {
			const fromTo = 2
			if len(args) != fromTo {
				return &usageError{problem: fmt.Sprintf("cp takes two paths, from and to, and got %d", len(args))}
			}
			return nil
		},
		ValidArgsFunction: completePaths(open),
		Annotations:       map[string]string{exitCodes: exitPlain + "\n  130  interrupted"},
		RunE: func(c *cobra.Command, args []string) error {
			return runCP(c.Context(), std, open, o, args[0], args[1])
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.Tree, "recursive", "r", false, "also directories, with all that is in them")
	f.StringVarP(&o.User, "user", "u", "", "`ACCOUNT` in the sandbox, name or number with optional :group")
	f.BoolVar(&o.json, "json", false, "print JSON: how many files and bytes were copied")
	return c
}

// cpAnswer is what cp --json prints.
type cpAnswer struct {
	Schema int   `json:"schema"`
	Files  int64 `json:"files"`
	Bytes  int64 `json:"bytes"`
}

// split takes NAME:PATH apart. name is "" of a path on this machine. A sandbox's name may have a slash and colons of its own: it ends before the
// first colon that / or ~ follows. Without such a colon it ends at the first, and a slash before that one makes all of it a path.
func split(word string) (name, path string) {
	at := strings.Index(word, ":")
	if at <= 0 || filepath.IsAbs(word) || strings.HasPrefix(word, ".") {
		return "", word
	}
	sure := len(word) // where a colon is followed by what only a path begins with
	for _, begin := range []string{":/", ":~"} {
		if i := strings.Index(word, begin); i > 0 {
			sure = min(sure, i)
		}
	}
	switch {
	case sure < len(word):
		at = sure
	case strings.Contains(word[:at], "/"):
		return "", word
	}
	return word[:at], word[at+1:]
}

func runCP(ctx context.Context, std streams, open opener, o cpOptions, src, dst string) error {
	from, source := split(src)
	to, dest := split(dst)
	if err := o.check(std, from, source, to, dest); err != nil {
		return err
	}
	if from == "" && source != "-" && !o.Tree {
		if info, err := os.Stat(source); err == nil && info.IsDir() {
			if link, err := os.Lstat(source); err == nil && link.IsDir() || strings.HasSuffix(source, "/") {
				return &usageError{problem: shown(source) + " is a directory", hint: "add -r to copy a directory with all that is in it"}
			}
		}
	}
	p, err := open()
	if err != nil {
		return err
	}
	env, err := p.Attach(ctx, from+to)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	line := newCopyProgress(std.err)
	o.Progress, o.Warn = line.report, line.warn
	var totals transfer.Totals
	switch {
	case source == "-" && from == "":
		totals, err = transfer.InArchive(ctx, env, std.in, dest, o.Options)
	case from == "":
		totals, err = transfer.In(ctx, env, source, dest, o.Options)
	case dest == "-":
		totals, err = transfer.OutArchive(ctx, env, source, std.out, o.Options)
	default:
		totals, err = transfer.Out(ctx, env, source, dest, o.Options)
	}
	line.done()
	if err = errors.Join(err, p.Close()); err != nil {
		return err
	}
	if o.json {
		return printJSON(std.out, cpAnswer{schema, totals.Files, totals.Bytes})
	}
	note(std.err, fmt.Sprintf("copied %s, %s", plural(totals.Files, "file"), units.HumanSize(float64(totals.Bytes))))
	return nil
}

// check finds what is wrong with the command line.
func (o *cpOptions) check(std streams, from, source, to, dest string) error {
	const hint = "one of the two is NAME:PATH, the other a path here: dockerbox cp NAME:/etc/hosts . copies out"
	_, terminal := term.GetFdInfo(std.out)
	switch {
	case from == "" && to == "":
		return &usageError{problem: "both paths are on this machine", hint: hint}
	case from != "" && to != "":
		return &usageError{problem: "both paths are in a sandbox", hint: "copy to this machine first, or connect two with -: dockerbox cp A:/dir - | dockerbox cp - B:/dir"}
	case from != "" && source == "" || to != "" && dest == "":
		return &usageError{problem: "there is no path behind the sandbox's name", hint: fmt.Sprintf("%s:~ is its home", from+to)}
	case from == "" && source == "" || to == "" && dest == "":
		return &usageError{problem: "a path is empty"}
	case dest == "-" && to == "" && terminal:
		return &usageError{problem: "an archive is nothing for a terminal", hint: "send it into a file or a program: dockerbox cp NAME:/dir - | tar -tv"}
	case dest == "-" && to == "" && o.json:
		return &usageError{problem: "--json and an archive cannot both be on standard output"}
	}
	return checkUser(o.User)
}

// completePaths completes the names of sandboxes up to their colon; what begins like a path, or like no sandbox, is left to the shell.
func completePaths(open opener) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if strings.HasPrefix(begun, ".") || strings.HasPrefix(begun, "/") || strings.Contains(begun, ":") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		names, directive := completeNames(open, true)(c, nil, begun)
		if len(names) == 0 || len(args) > 1 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		for i, word := range names {
			name, about, _ := strings.Cut(word, "\t")
			names[i] = name + ":\t" + about
		}
		return names, directive&^cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// plural counts things.
func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// copyProgress shows how a copy goes: one line that is drawn again and again on a terminal, nothing elsewhere. Not safe for concurrent use.
type copyProgress struct {
	w      io.Writer
	redraw bool
	drawn  bool
}

func newCopyProgress(w io.Writer) *copyProgress {
	_, terminal := term.GetFdInfo(w)
	return &copyProgress{w: w, redraw: terminal}
}

func (b *copyProgress) report(t transfer.Totals) {
	if !b.redraw {
		return
	}
	_, _ = fmt.Fprintf(b.w, "\r\x1b[Kcopying: %s, %s", plural(t.Files, "file"), units.HumanSize(float64(t.Bytes)))
	b.drawn = true
}

func (b *copyProgress) warn(text string) {
	b.done()
	note(b.w, "warning: "+text)
}

// done leaves the terminal's cursor on a line of its own.
func (b *copyProgress) done() {
	if b.drawn {
		_, _ = fmt.Fprint(b.w, "\r\x1b[K")
		b.drawn = false
	}
}

var _ transfer.Sandbox = contract.Environment(nil)
