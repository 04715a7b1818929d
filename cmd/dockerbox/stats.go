package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/moby/term"
	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

type statsOptions struct {
	watch, once, json, full bool
	every                   time.Duration
}

func newStats(std streams, open opener) *cobra.Command {
	o := statsOptions{every: time.Second}
	c := &cobra.Command{
		Use:        "stats [OPTIONS] [NAME...]",
		Short:      "Show what sandboxes use",
		SuggestFor: []string{"top"},
		Long: `Show what the sandboxes named, or all that run, use of processors, memory, processes,
network and disks, and for how long they have been up. CPU is in parts of one
processor, LIMIT in parts of what the sandbox may use. Memory is counted without files
that the kernel keeps in it and can give back. On a terminal the table is drawn again
every second until it is interrupted; elsewhere it is printed once.`,
		Args:        anyNames,
		Annotations: map[string]string{exitCodes: exitPlain + "\n  130  interrupted"},
		RunE: func(c *cobra.Command, args []string) error {
			if o.watch && o.once {
				return &usageError{problem: "--watch and --no-stream exclude each other"}
			}
			return quietly(c.Context(), runStats(c.Context(), std, open, o, args))
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.watch, "watch", "w", false, "go on, also where standard output is no terminal")
	f.BoolVar(&o.once, "no-stream", false, "print once, also on a terminal")
	f.BoolVar(&o.full, "full", false, "also what they wrote to disk and for how long nobody has used them, which takes longer")
	f.BoolVar(&o.json, "json", false, "print JSON, with --watch a line each time")
	return c
}

// anyNames is for commands about the sandboxes named, or all.
func anyNames(*cobra.Command, []string) error { return nil }

// statsAnswer is what stats --json prints.
type statsAnswer struct {
	Schema    int            `json:"schema"`
	Sandboxes []statsSandbox `json:"sandboxes"`
}

// statsSandbox is one sandbox. A limit is 0 for none. Sizes are bytes.
type statsSandbox struct {
	Address       string  `json:"address"`
	ID            string  `json:"id"`
	State         string  `json:"state"`
	CPUPercent    float64 `json:"cpu_percent"` // of one processor
	CPULimit      float64 `json:"cpu_limit"`   // in processors
	Memory        uint64  `json:"memory_bytes"`
	MemoryLimit   uint64  `json:"memory_limit_bytes"`
	PIDs          uint64  `json:"pids"`
	PIDsLimit     uint64  `json:"pids_limit"`
	NetReceived   uint64  `json:"net_received_bytes"`
	NetSent       uint64  `json:"net_sent_bytes"`
	BlockRead     uint64  `json:"block_read_bytes"`
	BlockWritten  uint64  `json:"block_written_bytes"`
	UptimeSeconds float64 `json:"uptime_s"`
	// Measured is false where neither the daemon nor the sandbox tells what it uses; then that is 0.
	Measured bool `json:"measured"`
	// DiskBytes and IdleSeconds are null without --full, and where they cannot be told.
	DiskBytes   *int64   `json:"disk_bytes"`
	IdleSeconds *float64 `json:"idle_s"`
}

func runStats(ctx context.Context, std streams, open opener, o statsOptions, names []string) error {
	p, err := open()
	if err != nil {
		return err
	}
	_, terminal := term.GetFdInfo(std.out)
	watch := o.watch || terminal && !o.once && !o.json
	m := p.Meter(o.full, names...)
	defer m.Close()
	return errors.Join(watchStats(ctx, std, m, o, watch, terminal && watch && !o.json), p.Close())
}

// clearScreen puts the cursor into the upper left corner of an empty screen.
const clearScreen = "\x1b[H\x1b[2J"

func watchStats(ctx context.Context, std streams, m *provider.Meter, o statsOptions, watch, redraw bool) error {
	for {
		list, err := m.Read(ctx)
		if err != nil {
			return err
		}
		if o.json {
			err = printJSON(std.out, statsOf(list))
		} else {
			text, failure := statsTable(list, o.full)
			if redraw {
				text = clearScreen + text
			}
			if err = failure; err == nil {
				err = say(std.out, "%s", text)
			}
		}
		if err != nil || !watch {
			return err
		}
		select {
		case <-time.After(o.every):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func statsOf(list []provider.Usage) statsAnswer {
	a := statsAnswer{schema, []statsSandbox{}}
	for _, u := range list {
		s := statsSandbox{
			Address: u.Address(), ID: u.ID, State: u.State, CPUPercent: percent(u.Cores), CPULimit: u.CPULimit, Memory: u.Memory, MemoryLimit: u.MemoryLimit,
			PIDs: u.PIDs, PIDsLimit: u.PIDsLimit, NetReceived: u.Received, NetSent: u.Sent, BlockRead: u.Read, BlockWritten: u.Written,
			UptimeSeconds: u.Up.Seconds(), Measured: u.Measured,
		}
		if u.More != nil && u.More.Disk >= 0 {
			s.DiskBytes = &u.More.Disk
		}
		if u.More != nil && u.More.Idle != nil {
			idle := u.More.Idle.Seconds()
			s.IdleSeconds = &idle
		}
		a.Sandboxes = append(a.Sandboxes, s)
	}
	return a
}

// percent is a number of processors as people know it from top.
func percent(cores float64) float64 { return cores * 100 }

func statsTable(list []provider.Usage, full bool) (string, error) {
	rows := "NAME\tCPU\tLIMIT\tMEMORY\tLIMIT\tPIDS\tNETWORK IN / OUT\tDISK READ / WRITTEN\tUP"
	if full {
		rows += "\tWROTE\tIDLE"
	}
	rows += "\n"
	for _, u := range list {
		cpus, memory, pids, up := "-", "-", fmt.Sprint(u.PIDs), units.HumanDuration(u.Up)
		if u.CPULimit > 0 {
			cpus = fmt.Sprintf("%.0f%% of %.4g", percent(u.Cores/u.CPULimit), u.CPULimit)
		}
		if u.MemoryLimit > 0 {
			memory = fmt.Sprintf("%.0f%% of %s", percent(float64(u.Memory)/float64(u.MemoryLimit)), bytesOf(float64(u.MemoryLimit)))
		}
		if u.PIDsLimit > 0 {
			pids += " of " + fmt.Sprint(u.PIDsLimit)
		}
		if u.State == "paused" {
			up += ", paused"
		}
		row := fmt.Sprintf("%.1f%%\t%s\t%s\t%s\t%s\t%s / %s\t%s / %s", percent(u.Cores), cpus, bytesOf(float64(u.Memory)), memory, pids,
			bytesOf(float64(u.Received)), bytesOf(float64(u.Sent)), bytesOf(float64(u.Read)), bytesOf(float64(u.Written)))
		if !u.Measured {
			row = "?\t?\t?\t?\t?\t?\t?"
		}
		rows += u.Address() + "\t" + row + "\t" + up
		if full {
			wrote, idle := "?", "?"
			if u.More != nil && u.More.Disk >= 0 {
				wrote = bytesOf(float64(u.More.Disk))
			}
			if u.More != nil && u.More.Idle != nil {
				idle = units.HumanDuration(*u.More.Idle)
			}
			rows += "\t" + wrote + "\t" + idle
		}
		rows += "\n"
	}
	const padding = 3
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, padding, ' ', 0)
	if _, err := t.Write([]byte(rows)); err != nil {
		return "", err
	}
	err := t.Flush()
	return text.String(), err
}

// bytesOf is a size for people, in powers of 1024 as the limits are given.
func bytesOf(n float64) string {
	return units.CustomSize("%.4g%s", n, 1024, []string{"B", "k", "M", "G", "T"})
}
