package main

import (
	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// exitCodes is the annotation whose text ends a command's help.
const exitCodes = "exit codes"

// helpTemplate is cobra's, with the exit codes at the end.
const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}{{with index .Annotations "` + exitCodes + `"}}
Exit codes:
{{.}}
{{end}}`

// The exit codes that commands share, one line each.
const (
	exitOK      = "  0    it worked"
	exitUsage   = "  2    the command line is wrong"
	exitBackend = "  125  dockerbox, the daemon or the sandbox failed; stderr says how and what to do next"
	exitPlain   = exitOK + "\n" + exitUsage + "\n" + exitBackend
)

// rootOptions are the flags of every command.
type rootOptions struct {
	host, context string
}

// newRoot builds the command tree. started is set when a command line was understood and its command begins.
func newRoot(std streams, started *bool) *cobra.Command {
	var o rootOptions
	root := &cobra.Command{
		Use:   "dockerbox",
		Short: "Sandboxes for Hermes out of Docker containers",
		Long: `dockerbox makes sandboxes out of Docker containers, runs commands in them and is
the terminal backend "dockerbox" of Hermes.`,
		Args:               noArgs,
		RunE:               func(c *cobra.Command, _ []string) error { return c.Help() },
		Annotations:        map[string]string{exitCodes: exitOK + "\n" + exitUsage},
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true,
		CompletionOptions:  cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if o.host != "" && o.context != "" {
				return &usageError{problem: "--host and --context name two daemons", hint: "use one of the two (in Hermes, terminal.backends.dockerbox.host and .context)"}
			}
			*started = true
			return nil
		},
	}
	root.SetHelpTemplate(helpTemplate)
	root.PersistentFlags().StringVar(&o.host, "host", "", "daemon `URL`, such as unix:///var/run/docker.sock or ssh://me@there")
	root.PersistentFlags().StringVar(&o.context, "context", "", "docker context `NAME` that chooses the daemon")
	open := func(options ...provider.Option) (*provider.Provider, error) {
		v, _ := buildVersion()
		options = append([]provider.Option{provider.WithVersion(v)}, options...)
		return provider.New(provider.Endpoint{Host: o.host, Context: o.context}, options...)
	}
	root.AddCommand(
		newUp(std, open), newExec(std, open), newShell(std, open), newRun(std, open), newCP(std, open), newPS(std, open), newInspect(std, open),
		newLogs(std, open), newStats(std, open),
		newStop(std, open), newStart(std, open), newRestart(std, open), newPause(std, open), newUnpause(std, open), newRM(std, open), newPrune(std, open),
		newPrefix(std, open), newForward(std, open), newDesktop(std, open), newMCP(std, open), newImage(std, open), newPlugin(std), newServe(std, open), newDoctor(std, open), newConformance(std, open), newCompletion(std), newVersion(std),
	)
	root.SetHelpCommand(newHelp(root))
	completesNames(root, open)
	ownUsage(root)
	return root
}

// ownUsage keeps cobra from adding "[flags]" to usage lines that say it better.
func ownUsage(c *cobra.Command) {
	c.DisableFlagsInUseLine = true
	for _, sub := range c.Commands() {
		ownUsage(sub)
	}
}
