package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func newDoctor(std streams, open opener) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:        "doctor [--json]",
		Short:      "Check everything that sandboxes depend on",
		SuggestFor: []string{"check", "diagnose", "info"},
		Long: `Check the daemon and what it can do, the image, the sandboxes there are, the Hermes
plugin and Hermes itself, one line each:

  ok    as it should be
  warn  commands run, but something that a setting promises is not kept
  fail  commands cannot run

What to do about a line stands below it. A container is started for it from the
image, and is gone at the end. What cannot be checked because something below it
failed has no line.`,
		Args:        noArgs,
		Annotations: map[string]string{exitCodes: "  0    no line is fail\n" + exitUsage + "\n  125  a line is fail; stderr says which and what to do first"},
		RunE:        func(c *cobra.Command, _ []string) error { return runDoctor(c.Context(), std.out, open, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// doctorAnswer is what doctor --json prints.
type doctorAnswer struct {
	Schema int              `json:"schema"`
	Checks []contract.Check `json:"checks"`
}

func runDoctor(ctx context.Context, out io.Writer, open opener, asJSON bool) error {
	checks, err := checkDaemon(ctx, open)
	if err != nil {
		return err
	}
	checks = append(checks, checkPlugin(), checkHermes(ctx, hermesPatience), checkDocker())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if asJSON {
		err = printJSON(out, doctorAnswer{schema, checks})
	} else {
		err = say(out, "%s", checkTable(checks))
	}
	return errors.Join(err, firstFailure(checks))
}

// checkDaemon has the provider look. A daemon that cannot even be named is a row like one that does not answer.
func checkDaemon(ctx context.Context, open opener) ([]contract.Check, error) {
	p, err := open()
	var backend *contract.BackendError
	switch {
	case errors.As(err, &backend):
		return []contract.Check{{Name: "daemon", Status: contract.CheckFail, Detail: backend.Reason, Remedy: backend.Hint}}, nil
	case err != nil:
		return nil, err
	}
	return p.Doctor(ctx), p.Close()
}

// checkTable is what people read.
func checkTable(checks []contract.Check) string {
	width := 0
	for _, c := range checks {
		width = max(width, len(c.Name))
	}
	var b strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", c.Status, width, c.Name, oneLine(c.Detail))
		if c.Remedy != "" {
			fmt.Fprintf(&b, "      %-*s  remedy: %s\n", width, "", oneLine(c.Remedy))
		}
	}
	return b.String()
}

// firstFailure is the failure of the whole, nil when no row failed. The first one is what to see to first: others may follow from it.
func firstFailure(checks []contract.Check) error {
	var names []string
	remedy := ""
	for _, c := range checks {
		if c.Status == contract.CheckFail {
			if len(names) == 0 {
				remedy = c.Remedy
			}
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &contract.BackendError{Reason: fmt.Sprintf("%d of %d checks failed: %s", len(names), len(checks), strings.Join(names, ", ")), Hint: remedy}
}
