package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// usualIdle is how long a sandbox must have gone unused to be pruned.
const usualIdle = 24 * time.Hour

func newPrune(std streams, open opener) *cobra.Command {
	o := provider.PruneOptions{Idle: usualIdle}
	var asJSON bool
	c := &cobra.Command{
		Use:        "prune [OPTIONS]",
		Short:      "Remove what nobody has used for a day",
		SuggestFor: []string{"gc", "clean", "cleanup"},
		Long: `Remove, without asking, what is dockerbox's and nobody uses:

  sandboxes, running or not, that nobody has used for --idle: no command or connection
    came or went, nobody is connected, and nothing runs in them but an empty screen.
    Their homes stay for the next sandbox of that name; what was installed outside
    them goes.
  sandboxes that were made and never started, and containers that looked into an image,
    of a dockerbox that died
  volumes with the agent of another version that no sandbox uses
  images that a newer "image build" took the name from
  with --homes, homes that had no sandbox before and are older than --idle

Paused sandboxes stay, and so do those of other Hermes profiles: --of names one. What
goes is printed with its size, a line each; --dry-run only prints. Sandboxes that were
not used and stay nevertheless are named on stderr with the reason.`,
		Args:        noArgs,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case o.Idle < 0:
				return &usageError{problem: "--idle: a time cannot be negative"}
			case o.Profile != "" && !contract.ValidName(o.Profile):
				return &usageError{problem: fmt.Sprintf("--of: %.40q is not the name of a profile", o.Profile), hint: "dockerbox ps shows profiles in front of the slash"}
			}
			return runPrune(c.Context(), std, open, o, asJSON)
		},
	}
	f := c.Flags()
	f.DurationVar(&o.Idle, "idle", usualIdle, "how long nobody has used it: a `TIME` such as 30m or 48h")
	f.StringVar(&o.Profile, "of", "", "the Hermes `PROFILE` whose sandboxes to look at (default those without one)")
	f.BoolVar(&o.Homes, "homes", false, "also homes without a sandbox")
	f.BoolVar(&o.DryRun, "dry-run", false, "print what would go, and remove nothing")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// pruneAnswer is what prune --json prints.
type pruneAnswer struct {
	Schema int  `json:"schema"`
	DryRun bool `json:"dry_run"`
	// Removed is what went, or would go.
	Removed []pruneItem `json:"removed"`
	Kept    []pruneKept `json:"kept"`
	// Bytes is the sum of those that are known. Images share layers, so less may become free.
	Bytes int64 `json:"bytes"`
}

// pruneItem has null for a size that is not known.
type pruneItem struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Why   string `json:"why"`
	Bytes *int64 `json:"bytes"`
}

type pruneKept struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

func runPrune(ctx context.Context, std streams, open opener, o provider.PruneOptions, asJSON bool) error {
	p, err := open()
	if err != nil {
		return err
	}
	done, err := p.Prune(ctx, o) // with an error it has done a part, which is to be told
	return errors.Join(sayPruned(std, done, o.DryRun, asJSON), err, p.Close())
}

func sayPruned(std streams, done provider.Pruned, dry, asJSON bool) error {
	a := pruneAnswer{Schema: schema, DryRun: dry, Removed: []pruneItem{}, Kept: []pruneKept{}}
	for _, l := range done.Removed {
		item := pruneItem{Kind: l.Kind, Name: l.Name, Why: l.Why}
		if l.Bytes >= 0 {
			item.Bytes = &l.Bytes
			a.Bytes += l.Bytes
		}
		a.Removed = append(a.Removed, item)
	}
	for _, k := range done.Kept {
		a.Kept = append(a.Kept, pruneKept{k.Name, k.Why})
	}
	if asJSON {
		return printJSON(std.out, a)
	}
	for _, k := range a.Kept {
		note(std.err, fmt.Sprintf("sandbox %s stays: %s", k.Name, k.Why))
	}
	did := "removed"
	if dry {
		did = "would remove"
	}
	const padding = 2
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, padding, ' ', 0)
	for _, item := range a.Removed {
		size := "?"
		if item.Bytes != nil {
			size = bytesOf(float64(*item.Bytes))
		}
		if _, err := fmt.Fprintf(t, "%s %s %s\t%s\t%s\n", did, item.Kind, shown(shortName(item)), size, oneLine(item.Why)); err != nil {
			return unwritten(err)
		}
	}
	if err := t.Flush(); err != nil {
		return unwritten(err)
	}
	return say(std.out, "%stotal %s\n", text.String(), bytesOf(float64(a.Bytes)))
}

// shortName is as much of a name as people read.
func shortName(item pruneItem) string {
	if item.Kind == provider.KindImage {
		return shortID(strings.TrimPrefix(item.Name, "sha256:"))
	}
	return item.Name
}
