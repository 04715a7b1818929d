package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The parser's own sentences count "arg(s)" and show Go's conversion errors; these say what a command wants.

// noArgs is for commands that take no words. In a group of commands a word is one that does not exist.
func noArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case c.HasSubCommands():
		return unknownCommand(c, args[0])
	default:
		return &usageError{problem: fmt.Sprintf("%s takes no names or other words, such as %.60q", c.Name(), args[0])}
	}
}

// unknownCommand names what was probably meant, if anything.
func unknownCommand(group *cobra.Command, word string) error {
	e := &usageError{problem: fmt.Sprintf("there is no command %.60q", word), hint: group.CommandPath() + " --help lists all"}
	const letters = 1 // that may be wrong: the names are so short that two would make everything near
	group.SuggestionsMinimumDistance = letters
	if near := group.SuggestionsFor(word); len(near) > 0 {
		slices.Sort(near)
		e.hint = fmt.Sprintf("is it %s? %s", strings.Join(slices.Compact(near), " or "), e.hint)
	}
	return e
}

// oneName is for commands about one sandbox.
func oneName(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return &usageError{problem: fmt.Sprintf("%s needs the name of one sandbox, and got %d", c.Name(), len(args))}
}

// someName is for commands with a sandbox first.
func someName(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return &usageError{problem: c.Name() + " needs the name of a sandbox"}
}

// perhapsName is for commands with a default sandbox.
func perhapsName(c *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return &usageError{problem: fmt.Sprintf("%s takes one name at a time, and got %d", c.Name(), len(args))}
}

// asUsage makes a mistake in the command line out of what the flag parser says.
func asUsage(err error) error {
	var (
		usage *usageError
		value *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &usage):
		return err
	case errors.As(err, &value):
		f := value.GetFlag()
		return &usageError{problem: fmt.Sprintf("--%s: %.40q must be %s", f.Name, value.GetValue(), valueOf(f.Value.Type()))}
	default:
		return &usageError{problem: err.Error()}
	}
}

// valueOf describes the values of a flag that are not any text.
func valueOf(flagType string) string {
	switch flagType {
	case "float64":
		return "a number, such as 2 or 0.5"
	case "int64":
		return "a whole number"
	case "time":
		return "a number of seconds, or a time with its unit such as 1m30s, at most a day"
	case "lines":
		return "a number of lines, or all"
	case "moment":
		return "a time ago such as 90s or 10m, or a date such as 2026-11-30 or 2026-11-30T12:00:00Z"
	case "duration":
		return "a time with its unit, such as 2s or 1m30s"
	default:
		return "a " + flagType
	}
}

// newHelp is cobra's help command, except that a command that does not exist is a mistake and not a reason to show another help.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:         "help [COMMAND]",
		Short:       "Help about any command",
		Annotations: map[string]string{exitCodes: exitOK + "\n" + exitUsage},
		RunE: func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil {
				return asUsage(err)
			}
			if len(rest) > 0 {
				return unknownCommand(about, rest[0])
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
