package main

import (
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/moby/term"
	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/desktop"
)

func newDesktop(std streams, open opener) *cobra.Command {
	c := &cobra.Command{
		Use:   "desktop",
		Short: "The screen of a sandbox",
		Long: `A sandbox has one screen, with an Xfce desktop on it: display :20. Hermes's Bot
Desktop and this command start the same one, and each takes the other's.`,
		Args:        noArgs,
		RunE:        func(c *cobra.Command, _ []string) error { return c.Help() },
		Annotations: map[string]string{exitCodes: exitPlain},
	}
	c.AddCommand(newDesktopStart(std, open), newDesktopStop(std, open), newDesktopStatus(std, open), newDesktopScreenshot(std, open))
	return c
}

// desktopAnswer is what start and status print.
type desktopAnswer struct {
	Schema  int              `json:"schema"`
	Running bool             `json:"running"`
	Profile string           `json:"profile,omitempty"`
	Display string           `json:"display,omitempty"`
	Width   int              `json:"width,omitempty"`
	Height  int              `json:"height,omitempty"`
	Since   string           `json:"since,omitempty"` // RFC 3339
	Account string           `json:"account,omitempty"`
	Socket  string           `json:"socket,omitempty"`
	Windows []desktop.Window `json:"windows,omitempty"`
}

func newDesktopStart(std streams, open opener) *cobra.Command {
	var o desktop.Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "start [OPTIONS] NAME",
		Short: "Start the screen, or take the one that runs",
		Long: `Start the screen of the sandbox NAME and wait until its desktop is there. One that
runs is taken as it is, whoever started it.`,
		Args:        oneName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			o.Profile = profileOf(args[0])
			return withSandbox(c.Context(), open, args[0], func(ctx context.Context, env contract.Environment) error {
				st, err := desktop.Start(ctx, env, o)
				if err != nil {
					return err
				}
				return sayDesktop(std.out, st, asJSON, time.Now())
			})
		},
	}
	c.Flags().StringVar(&o.Geometry, "geometry", "1440x900", "size of a new screen in pixels, `WxH`")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// profileOf is the Hermes profile that an address names, "" when it names none.
func profileOf(address string) string {
	profile, _, ok := strings.Cut(address, "/")
	if !ok {
		return ""
	}
	return profile
}

func newDesktopStop(std streams, open opener) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:         "stop [OPTIONS] NAME",
		Short:       "End the screen and what runs on it",
		Args:        oneName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return withSandbox(c.Context(), open, args[0], func(ctx context.Context, env contract.Environment) error {
				stopped, err := desktop.Stop(ctx, env)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(std.out, struct {
						Schema  int  `json:"schema"`
						Stopped bool `json:"stopped"`
					}{schema, stopped})
				}
				if !stopped {
					note(std.err, fmt.Sprintf("sandbox %q had no screen running", args[0]))
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newDesktopStatus(std streams, open opener) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:         "status [OPTIONS] NAME",
		Short:       "Say whether the screen runs, and what is on it",
		Args:        oneName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return withSandbox(c.Context(), open, args[0], func(ctx context.Context, env contract.Environment) error {
				st, err := desktop.Look(ctx, env)
				if err != nil {
					return err
				}
				return sayDesktop(std.out, st, asJSON, time.Now())
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// sayDesktop prints what start and status found.
func sayDesktop(w io.Writer, st desktop.Status, asJSON bool, now time.Time) error {
	if asJSON {
		a := desktopAnswer{
			Schema: schema, Running: st.Running, Profile: st.Profile, Display: st.Display, Width: st.Size.X, Height: st.Size.Y,
			Account: st.Account, Socket: st.Socket, Windows: st.Windows,
		}
		if !st.Since.IsZero() {
			a.Since = st.Since.UTC().Format(time.RFC3339)
		}
		return printJSON(w, a)
	}
	if !st.Running {
		return say(w, "not running\n")
	}
	text := fmt.Sprintf("display   %s\nsize      %dx%d\nprofile   %s\naccount   %s\nsince     %s ago\n",
		st.Display, st.Size.X, st.Size.Y, st.Profile, st.Account, units.HumanDuration(max(now.Sub(st.Since), 0)))
	for _, win := range st.Windows {
		text += fmt.Sprintf("window    %s: %s\n", win.Class, win.Title)
	}
	return say(w, "%s", text)
}

func newDesktopScreenshot(std streams, open opener) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "screenshot [OPTIONS] NAME",
		Short: "Write a picture of the screen to a PNG file",
		Long: `Write what the screen of the sandbox NAME shows to a PNG file and print the file's
name. "-o -" writes the picture itself to stdout.`,
		Args:        oneName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			if _, terminal := term.GetFdInfo(std.out); terminal && file == "-" {
				return &usageError{problem: "a picture is nothing for a terminal", hint: "name a file with -o, or send stdout into one"}
			}
			return withSandbox(c.Context(), open, args[0], func(ctx context.Context, env contract.Environment) error {
				return screenshot(ctx, std, env, file, args[0], time.Now())
			})
		},
	}
	c.Flags().StringVarP(&file, "output", "o", "", "`FILE` to write, or - for stdout (default NAME-DATE-TIME.png)")
	return c
}

func screenshot(ctx context.Context, std streams, env contract.Environment, file, name string, now time.Time) error {
	picture, err := desktop.Screenshot(ctx, env)
	if err != nil {
		return err
	}
	if file == "" {
		file = strings.ReplaceAll(name, "/", "-") + now.Format("-20060102-150405") + ".png"
	}
	encode := func(w io.Writer) error { return (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, picture) }
	if file == "-" {
		if err := encode(std.out); err != nil {
			return fmt.Errorf("write the picture: %w", err)
		}
		return nil
	}
	if err := writeWhole(file, encode); err != nil {
		return &contract.BackendError{Reason: "the picture cannot be written: " + err.Error(), Hint: "name another file with -o", Err: err}
	}
	return say(std.out, "%s\n", file)
}

// writeWhole makes a file that appears with all of its content or not at all.
func writeWhole(file string, write func(io.Writer) error) error {
	if st, err := os.Stat(file); err == nil && !st.Mode().IsRegular() { // a pipe or a device is written to, not replaced
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	const mode = 0o666 // less the umask, as for any file
	part := file + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, file); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// withSandbox calls do with a sandbox that exists, started if it stood still.
func withSandbox(ctx context.Context, open opener, name string, do func(context.Context, contract.Environment) error) error {
	p, err := open()
	if err != nil {
		return err
	}
	env, err := p.Attach(ctx, name)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	return errors.Join(do(ctx, env), p.Close())
}
