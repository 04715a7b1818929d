package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/plugin"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

func newPlugin(std streams) *cobra.Command {
	c := &cobra.Command{
		Use:         "plugin",
		Short:       "Put the Hermes plugin in place",
		Args:        noArgs,
		Annotations: map[string]string{exitCodes: exitOK + "\n" + exitUsage},
		RunE:        func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPluginInstall(std), newPluginPath(std))
	return c
}

const homeFlag = "Hermes home `DIR` (default HERMES_HOME, else ~/.hermes)"

func newPluginInstall(std streams) *cobra.Command {
	var home string
	c := &cobra.Command{
		Use:   "install [--home DIR]",
		Short: "Install the plugin into the Hermes home",
		Long: `Write the plugin of this version into plugins/dockerbox below the Hermes home, in
place of one that is there, let it run this very executable, and print the commands
that make Hermes use it. It needs plugins.isolation: in_process, Hermes's default.`,
		Args:        noArgs,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE:        func(*cobra.Command, []string) error { return runPluginInstall(std, home) },
	}
	c.Flags().StringVar(&home, "home", "", homeFlag)
	return c
}

func newPluginPath(std streams) *cobra.Command {
	var (
		home   string
		asJSON bool
	)
	c := &cobra.Command{
		Use:         "path [--home DIR] [--json]",
		Short:       "Print where the plugin is installed, or would be",
		Args:        noArgs,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE:        func(*cobra.Command, []string) error { return runPluginPath(std.out, home, asJSON) },
	}
	c.Flags().StringVar(&home, "home", "", homeFlag)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// pluginPath is the plugin's directory for a Hermes home as the flag gives it.
func pluginPath(home string) (string, error) {
	if home == "" {
		home = os.Getenv("HERMES_HOME")
	}
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", &contract.BackendError{Reason: "the home directory is not known", Hint: "name the Hermes home with --home DIR", Err: err}
		}
		home = filepath.Join(user, ".hermes")
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return "", fmt.Errorf("find the Hermes home: %w", err)
	}
	return filepath.Join(home, "plugins", provider.Name), nil
}

// pathAnswer is what plugin path --json prints.
type pathAnswer struct {
	Schema    int    `json:"schema"`
	Path      string `json:"path"`
	Installed bool   `json:"installed"`
}

func runPluginPath(out io.Writer, home string, asJSON bool) error {
	path, err := pluginPath(home)
	if err != nil {
		return err
	}
	if !asJSON {
		return say(out, "%s\n", path)
	}
	_, err = os.Stat(filepath.Join(path, "plugin.yaml"))
	return printJSON(out, pathAnswer{schema, path, err == nil})
}

func runPluginInstall(std streams, home string) error {
	path, err := pluginPath(home)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return &contract.BackendError{Reason: "the path of this executable is not known: " + cause(err), Hint: "call dockerbox by its absolute path", Err: err}
	}
	if err := installPlugin(path, self); err != nil {
		hint := "make the directory writable for you, or choose another Hermes home with --home DIR"
		if errors.Is(err, syscall.ENOSPC) {
			hint = "make room there, or choose another Hermes home with --home DIR"
		}
		return &contract.BackendError{Reason: fmt.Sprintf("the plugin could not be installed into %s: %s", path, cause(err)), Hint: hint, Err: err}
	}
	note(std.err, "installed the Hermes plugin into "+path+"; these commands make Hermes use it:")
	return say(std.out, "hermes plugins enable %s\nhermes config set terminal.backend %s\n", provider.Name, provider.Name)
}

// installPlugin puts the embedded plugin at path. A plugin that is there stays as it is until the new one is whole, and comes back
// when that fails.
func installPlugin(path, binary string) (err error) {
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	staging, err := os.MkdirTemp(parent, ".dockerbox-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	fresh, old := filepath.Join(staging, "new"), filepath.Join(staging, "old")
	files, err := fs.Sub(plugin.FS, plugin.Root)
	if err != nil {
		return err
	}
	if err := os.CopyFS(fresh, files); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, plugin.BinaryRecord), []byte(binary+"\n"), 0o644); err != nil {
		return err
	}
	switch err := os.Rename(path, old); {
	case errors.Is(err, fs.ErrNotExist):
		return os.Rename(fresh, path)
	case err != nil:
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return errors.Join(err, os.Rename(old, path))
	}
	return nil
}
