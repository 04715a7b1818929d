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
	var asJSON, size bool
	c := &cobra.Command{
		Use:        "inspect [OPTIONS] NAME",
		Short:      "Describe a sandbox and the limits that really apply",
		SuggestFor: []string{"show", "describe", "info"},
		Long: `Describe the sandbox NAME. Limits are shown as they are wanted and, while it runs, as
its own kernel has them; a note says why the two differ. Used is when a command or a
connection began or ended the last time; this look is none. Of variables only the names
are shown. A stopped sandbox stays stopped.`,
		Args:        oneName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			return runInspect(c.Context(), std.out, open, args[0], asJSON, size, time.Now())
		},
	}
	c.Flags().BoolVarP(&size, "size", "s", false, "also what it takes on disk, which takes longer")
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
	// Started is empty for one that never was, HomeVolume for one that keeps no home.
	Started    string `json:"started"`
	HomeVolume string `json:"home_volume"`
	// Use is null for one that does not run, is paused, or cannot be asked.
	Use *inspectUse `json:"use"`
	// DiskBytes is what it wrote outside its home and mounts. Both are null without --size, and where they cannot be told.
	DiskBytes *int64 `json:"disk_bytes"`
	HomeBytes *int64 `json:"home_bytes"`
}

// inspectUse is who uses it. IdleSeconds and Clients are null where its agent does not tell.
type inspectUse struct {
	IdleSeconds *float64 `json:"idle_s"`
	Clients     *int     `json:"clients"`
	Jobs        int      `json:"jobs"`
	Example     string   `json:"example"`
	Screen      bool     `json:"screen"`
}

// inspectLimit is one limit, 0 for none. Applied is null where it cannot be told; Note is empty where there is nothing to say.
type inspectLimit struct {
	Name    string   `json:"name"`
	Unit    string   `json:"unit"`
	Wanted  float64  `json:"wanted"`
	Applied *float64 `json:"applied"`
	Note    string   `json:"note"`
}

func runInspect(ctx context.Context, out io.Writer, open opener, name string, asJSON, size bool, now time.Time) error {
	p, err := open()
	if err != nil {
		return err
	}
	d, err := p.Inspect(ctx, name)
	if err == nil && size {
		err = p.Measure(ctx, &d)
	}
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
	a.HomeVolume, a.DiskBytes, a.HomeBytes = d.HomeVolume, d.DiskBytes, d.HomeBytes
	if !d.Started.IsZero() {
		a.Started = d.Started.UTC().Format(time.RFC3339Nano)
	}
	if u := d.Use; u != nil {
		a.Use = &inspectUse{Jobs: u.Jobs, Example: u.Example, Screen: u.Screen}
		if u.Told {
			idle := u.Idle.Seconds()
			a.Use.IdleSeconds, a.Use.Clients = &idle, &u.Clients
		}
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
		{"name", d.Address()}, {"id", d.ID}, {"image", d.Image}, {"user", d.User}, {"home", shown(d.Home)}, {"home volume", sized(d.HomeVolume, d.HomeBytes)},
		{"state", d.State}, {"started", since(d.Started, now)}, {"used", used(d)}, {"jobs", jobs(d.Use)}, {"disk", sized("", d.DiskBytes)},
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

// sized is a name with what it takes on disk, where that is known.
func sized(name string, size *int64) string {
	if size == nil {
		return name
	}
	return strings.TrimSpace(name + " " + bytesOf(float64(*size)))
}

func since(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s ago)", at.UTC().Format(time.RFC3339), units.HumanDuration(max(0, now.Sub(at))))
}

// used says when a sandbox was last used, and by how many it is now.
func used(d provider.Details) string {
	if d.Use == nil || !d.Use.Told {
		return ""
	}
	text := units.HumanDuration(d.Use.Idle) + " ago"
	switch n := d.Use.Clients; {
	case n == 1:
		text += ", 1 client is connected"
	case n > 1:
		text += fmt.Sprintf(", %d clients are connected", n)
	}
	return text
}

// jobs says what runs.
func jobs(u *provider.Use) string {
	if u == nil {
		return ""
	}
	text := fmt.Sprint(u.Jobs)
	if u.Jobs > 0 && u.Example != "" {
		text += " (" + u.Example + ")"
	}
	if u.Screen {
		text += " and its screen"
	}
	return text
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
