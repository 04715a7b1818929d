package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

func newInspect(std streams, open opener) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:        "inspect [--json] NAME",
		Short:      "Describe a sandbox and the limits that really apply",
		SuggestFor: []string{"show", "describe", "info"},
		Long: `Describe the sandbox NAME. Limits are shown as they are wanted and, while it runs, as
its own kernel has them; a note says why the two differ. Of variables only the names
are shown. A stopped sandbox stays stopped.`,
		Args:        oneName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return runInspect(c.Context(), std.out, open, args[0], asJSON, time.Now())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// inspectAnswer is what inspect --json prints.
type inspectAnswer struct {
	Schema     int              `json:"schema"`
	Address    string           `json:"address"`
	Name       string           `json:"name"`
	Profile    string           `json:"profile"`
	Task       string           `json:"task"`
	ID         string           `json:"id"`
	Image      string           `json:"image"`
	User       string           `json:"user"`
	Home       string           `json:"home"`
	State      string           `json:"state"`
	Created    time.Time        `json:"created"`
	Owner      string           `json:"owner"`
	Persistent bool             `json:"persistent"`
	Network    string           `json:"network"`
	Security   string           `json:"security"`
	ShmBytes   int64            `json:"shm_bytes"`
	Mounts     []contract.Mount `json:"mounts"`
	// Env and ForwardEnv are names.
	Env        []string       `json:"env"`
	ForwardEnv []string       `json:"forward_env"`
	ExtraArgs  []string       `json:"extra_args"`
	Limits     []inspectLimit `json:"limits"`
}

// inspectLimit is one limit, 0 for none. Applied is null where it cannot be told; Note is empty where there is nothing to say.
type inspectLimit struct {
	Name    string   `json:"name"`
	Unit    string   `json:"unit"`
	Wanted  float64  `json:"wanted"`
	Applied *float64 `json:"applied"`
	Note    string   `json:"note"`
}

func runInspect(ctx context.Context, out io.Writer, open opener, name string, asJSON bool, now time.Time) error {
	p, err := open()
	if err != nil {
		return err
	}
	d, err := p.Inspect(ctx, name)
	if err = errors.Join(err, p.Close()); err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, inspectOf(d))
	}
	return printDetails(out, d, now)
}

func inspectOf(d provider.Details) inspectAnswer {
	a := inspectAnswer{
		Schema: schema, Address: d.Address(), Name: d.Name, Profile: d.Profile, Task: d.Task, ID: d.ID, Image: d.Image, User: d.User, Home: d.Home,
		State: d.State, Created: d.Created.UTC(), Owner: d.Owner, Persistent: d.Persistent, Network: d.Network, Security: d.Security, ShmBytes: d.ShmBytes,
		Mounts: listed(d.Mounts), Env: listed(d.Env), ForwardEnv: listed(d.ForwardEnv), ExtraArgs: listed(d.ExtraArgs), Limits: []inspectLimit{},
	}
	for _, l := range d.Limits {
		a.Limits = append(a.Limits, inspectLimit{l.Name, l.Unit, l.Wanted, l.Applied, l.Note})
	}
	return a
}

// listed is a list that JSON shows as one when it is empty.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func printDetails(out io.Writer, d provider.Details, now time.Time) error {
	keeps := "yes: home and sandbox stay between sessions"
	if !d.Persistent {
		keeps = "no: it goes with its session"
	}
	mounts := make([]string, len(d.Mounts))
	for i, m := range d.Mounts {
		mounts[i] = shown(m.String())
	}
	shm := "the daemon's default"
	if d.ShmBytes > 0 {
		shm = units.CustomSize("%.4g%s", float64(d.ShmBytes), 1024, []string{"", "k", "m", "g", "t"})
	}
	rows := ""
	for _, row := range [][2]string{
		{"name", d.Address()}, {"id", d.ID}, {"image", d.Image}, {"user", d.User}, {"home", shown(d.Home)}, {"state", d.State},
		{"created", fmt.Sprintf("%s (%s ago)", d.Created.UTC().Format(time.RFC3339), units.HumanDuration(max(0, now.Sub(d.Created))))},
		{"owner", shown(d.Owner)}, {"persistent", keeps}, {"network", d.Network}, {"security", d.Security}, {"shm-size", shm},
		{"mounts", lines(mounts)}, {"env", strings.Join(d.Env, " ")}, {"forward-env", strings.Join(d.ForwardEnv, " ")},
		{"extra-args", words(d.ExtraArgs)},
	} {
		if row[1] == "" {
			row[1] = "-"
		}
		rows += row[0] + "\t" + row[1] + "\n"
	}
	limits := "\nLIMIT\tWANTED\tAPPLIES\tNOTE\n"
	for _, l := range d.Limits {
		limits += fmt.Sprintf("%s\t%s\t%s\t%s\n", l.Name, limit(&l.Wanted, l.Unit), limit(l.Applied, l.Unit), oneLine(l.Note))
	}
	const padding = 3
	for _, table := range []string{rows, limits} {
		t := tabwriter.NewWriter(out, 0, 0, padding, ' ', 0)
		if _, err := io.WriteString(t, table); err != nil {
			return unwritten(err)
		}
		if err := t.Flush(); err != nil {
			return unwritten(err)
		}
	}
	return nil
}

// lines puts each entry on a line of its own, in the column of the first.
func lines(list []string) string { return strings.Join(list, "\n\t") }

// words shows where each word of a list ends.
func words(list []string) string {
	all := make([]string, len(list))
	for i, word := range list {
		all[i] = shown(word)
		if all[i] == "" || strings.Contains(word, " ") && all[i] == word {
			all[i] = strconv.Quote(word)
		}
	}
	return strings.Join(all, " ")
}

func limit(n *float64, unit string) string {
	switch {
	case n == nil:
		return "?"
	case *n == 0:
		return "none"
	case *n == 1:
		return "1 " + strings.TrimSuffix(unit, "s")
	default:
		return fmt.Sprintf("%.10g %s", *n, unit)
	}
}
