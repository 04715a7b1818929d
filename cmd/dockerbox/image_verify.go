package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/image/verify"
)

// exitFaulty is the status of an image with faults.
const exitFaulty = 1

func newImageVerify(std streams, open opener) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify [--json] IMAGE",
		Short: "List everything that an image lacks for a sandbox with a desktop",
		Long: `Hold an image that the daemon has to what Hermes, its Bot Desktop, computer_use and
its browser need: what the image says of itself, the programs in it, and whether
account, sudo, fonts, browser and screen work in a sandbox. All faults are listed,
each with what is wanted in its place.

The sandbox is made for this, has no network and is gone at the end.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return &usageError{problem: fmt.Sprintf("verify needs one image, and got %d", len(args))}
		},
		Annotations: map[string]string{exitCodes: "  0    the image is right\n  1    it has the faults that are listed\n" + exitUsage + "\n" + exitBackend},
		RunE: func(c *cobra.Command, args []string) error {
			return runImageVerify(c.Context(), std.out, open, args[0], asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// verifyAnswer is what image verify --json prints.
type verifyAnswer struct {
	Schema     int            `json:"schema"`
	Image      string         `json:"image"`
	ID         string         `json:"id"`
	Checks     int            `json:"checks"`
	Faults     []verify.Fault `json:"faults"`
	DurationMS int64          `json:"duration_ms"`
}

func runImageVerify(ctx context.Context, out io.Writer, open opener, ref string, asJSON bool) error {
	begin := time.Now()
	p, err := open()
	if err != nil {
		return err
	}
	report, err := verify.Verify(ctx, p, ref)
	if err := errors.Join(err, p.Close()); err != nil {
		return err
	}
	if asJSON {
		faults := append([]verify.Fault{}, report.Faults...) // [] and not null
		err = printJSON(out, verifyAnswer{schema, report.Image, report.ID, report.Checks, faults, time.Since(begin).Milliseconds()})
	} else {
		err = say(out, "%s", faultTable(report))
	}
	if err == nil && len(report.Faults) > 0 {
		err = statusError(exitFaulty)
	}
	return err
}

// faultTable is what people read: a line for each fault, and one for the whole.
func faultTable(r verify.Report) string {
	width := 0
	for _, f := range r.Faults {
		width = max(width, len(f.Check))
	}
	var b strings.Builder
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "fault  %-*s  %s\n       %-*s  wanted: %s\n", width, f.Check, oneLine(f.Found), width, "", oneLine(f.Want))
	}
	how := "all right"
	if n := len(r.Faults); n > 0 {
		how = fmt.Sprintf("%d of %d checks failed", n, r.Checks)
	}
	fmt.Fprintf(&b, "image  %s\nid     %s\n%s\n", r.Image, shortImageID(r.ID), how)
	return b.String()
}
