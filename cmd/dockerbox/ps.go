package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

func newPS(std streams, open opener) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:         "ps [--json]",
		Short:       "List sandboxes, running or not",
		SuggestFor:  []string{"ls", "list"},
		Args:        noArgs,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, _ []string) error {
			return runPS(c.Context(), std.out, open, asJSON, time.Now())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// psAnswer is what ps --json prints.
type psAnswer struct {
	Schema    int         `json:"schema"`
	Sandboxes []psSandbox `json:"sandboxes"`
}

type psSandbox struct {
	// Address is how other commands name it: the name, with the profile in front when there is one.
	Address    string    `json:"address"`
	Name       string    `json:"name"`
	Profile    string    `json:"profile"`
	Task       string    `json:"task"`
	ID         string    `json:"id"`
	Image      string    `json:"image"`
	User       string    `json:"user"`
	State      string    `json:"state"`
	Persistent bool      `json:"persistent"`
	Created    time.Time `json:"created"`
}

func runPS(ctx context.Context, out io.Writer, open opener, asJSON bool, now time.Time) error {
	p, err := open()
	if err != nil {
		return err
	}
	list, err := p.List(ctx)
	if err = errors.Join(err, p.Close()); err != nil {
		return err
	}
	if asJSON {
		a := psAnswer{schema, []psSandbox{}}
		for _, s := range list {
			a.Sandboxes = append(a.Sandboxes, psSandbox{
				s.Address(), s.Name, s.Profile, s.Task, s.ID, s.Image, s.User, s.State, s.Persistent, s.Created.UTC(),
			})
		}
		return printJSON(out, a)
	}
	return printTable(out, list, now)
}

func printTable(out io.Writer, list []provider.Sandbox, now time.Time) error {
	const padding = 3
	t := tabwriter.NewWriter(out, 0, 0, padding, ' ', 0)
	rows := "NAME\tID\tIMAGE\tUSER\tSTATE\tCREATED\n"
	for _, s := range list {
		rows += fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s ago\n",
			s.Address(), shortID(s.ID), s.Image, s.User, s.State, units.HumanDuration(max(0, now.Sub(s.Created))))
	}
	if _, err := io.WriteString(t, rows); err != nil {
		return unwritten(err)
	}
	if err := t.Flush(); err != nil {
		return unwritten(err)
	}
	return nil
}
