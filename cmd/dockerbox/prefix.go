package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

type prefixOptions struct {
	user                string
	noInteractive, json bool
}

func newPrefix(std streams, open opener) *cobra.Command {
	var o prefixOptions
	c := &cobra.Command{
		Use:   "prefix [OPTIONS] NAME",
		Short: "Print the words that run a command in a sandbox",
		Long: `Print the words of a command line that runs what is put behind them in the sandbox
NAME, each quoted for a shell:

  eval "$(dockerbox prefix default) ls -l"

It reaches the same daemon with nothing but PATH in its environment. What runs that
way sees the sandbox's configuration, but neither its lasting shell state nor secrets.
A single word ends at 128 KiB, which is the system's limit.`,
		Args:        oneName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return runPrefix(c.Context(), std.out, open, &o, args[0])
		},
	}
	f := c.Flags()
	f.StringVarP(&o.user, "user", "u", "", "`ACCOUNT` to run as, name or number with optional :group")
	f.BoolVar(&o.noInteractive, "no-interactive", false, "leave standard input unconnected")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// prefixAnswer is what prefix --json prints.
type prefixAnswer struct {
	Schema int      `json:"schema"`
	Argv   []string `json:"argv"`
}

func runPrefix(ctx context.Context, out io.Writer, open opener, o *prefixOptions, name string) error {
	if err := checkUser(o.user); err != nil {
		return err
	}
	p, err := open()
	if err != nil {
		return err
	}
	argv, err := p.ExecPrefix(ctx, name, o.user, !o.noInteractive)
	if err = errors.Join(err, p.Close()); err != nil {
		return err
	}
	if o.json {
		return printJSON(out, prefixAnswer{schema, argv})
	}
	return say(out, "%s\n", quoteAll(argv))
}

// quoteAll writes words as a command line.
func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

// quote writes a word so that a POSIX shell reads it back.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
