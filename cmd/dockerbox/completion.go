package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// shells are those that a script can be written for, each with the line that makes it last.
var shells = []struct{ name, install string }{
	{"bash", "dockerbox completion bash >~/.local/share/bash-completion/completions/dockerbox"},
	{"zsh", `dockerbox completion zsh >"${fpath[1]}/_dockerbox"`},
	{"fish", "dockerbox completion fish >~/.config/fish/completions/dockerbox.fish"},
}

func newCompletion(std streams) *cobra.Command {
	var names, lines []string
	for _, s := range shells {
		names, lines = append(names, s.name), append(lines, "  "+s.install)
	}
	return &cobra.Command{
		Use:   "completion " + strings.Join(names, "|"),
		Short: "Print a script that completes command lines in a shell",
		Long: `Print a script for a shell: with it, the shell completes commands, flags and the names
of sandboxes. These lines install it, and a new shell has it:

` + strings.Join(lines, "\n"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && slices.Contains(names, args[0]) {
				return nil
			}
			return &usageError{problem: "completion needs the name of a shell: " + strings.Join(names, ", ")}
		},
		ValidArgs:   names,
		Annotations: map[string]string{exitCodes: exitOK + "\n" + exitUsage + "\n" + exitBackend},
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			switch root := c.Root(); args[0] {
			case "bash":
				err = root.GenBashCompletionV2(std.out, true)
			case "zsh":
				err = root.GenZshCompletion(std.out)
			default:
				err = root.GenFishCompletion(std.out, true)
			}
			if err != nil {
				return unwritten(err)
			}
			return nil
		},
	}
}

// completionPatience is how long a person who pressed a key waits for a daemon.
const completionPatience = 3 * time.Second

// completeNames completes the names of sandboxes for commands whose first word is one, or, with several, all of whose words are. A daemon
// that does not answer has none: a shell that completes shows no messages.
func completeNames(open opener, several bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !several {
			return nil, cobra.ShellCompDirectiveDefault
		}
		names, err := sandboxNames(c.Context(), open)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(names, func(word string) bool {
			name, _, _ := strings.Cut(word, "\t")
			return slices.Contains(args, name) || !strings.HasPrefix(word, begun)
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// sandboxNames lists all sandboxes as shells take them: a name, and its state to look at.
func sandboxNames(ctx context.Context, open opener) ([]string, error) {
	if ctx == nil { // of a command that was not run
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	p, err := open()
	if err != nil {
		return nil, err
	}
	list, err := p.List(ctx)
	if err = errors.Join(err, p.Close()); err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = fmt.Sprintf("%s\t%s, %s", s.Address(), s.State, s.Image)
	}
	return names, nil
}

// takesNames says which commands' words are sandboxes: the first alone, or all.
var takesNames = map[string]bool{
	"up": false, "exec": false, "run": false, "shell": false, "inspect": false, "logs": false, "prefix": false, "mcp": false,
	"desktop start": false, "desktop stop": false, "desktop status": false, "desktop screenshot": false, "forward": false,
	"stop": true, "start": true, "restart": true, "pause": true, "unpause": true, "stats": true, "rm": true,
}

// completesNames gives the commands below c that have no completion of their own that of sandboxes.
func completesNames(c *cobra.Command, open opener) {
	for _, sub := range c.Commands() {
		completesNames(sub, open)
		path := strings.TrimPrefix(sub.CommandPath(), c.Root().Name()+" ")
		if several, takes := takesNames[path]; takes && sub.ValidArgsFunction == nil {
			sub.ValidArgsFunction = completeNames(open, several)
		}
	}
}
