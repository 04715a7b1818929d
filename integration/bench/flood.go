//go:build linux

package main

import (
	"context"
)

// The flood writes as fast as it is read, and is bounded as the terminal tool's commands are. It says that it began by a file, and ends by one.
const (
	floodCommand = "rm -f {dir}/t-bench-stop; touch {dir}/t-bench-began; until [ -e {dir}/t-bench-stop ]; do cat " + bulkFile + "; done"
	floodBegan   = "until [ -e {dir}/t-bench-began ]; do sleep 0.01; done; rm {dir}/t-bench-began"
	floodStop    = "touch {dir}/t-bench-stop"
)

func runFlood(ctx context.Context, b *bench) ([]row, error) {
	all, err := b.subjects(ctx, hermesDockerbox, hermesDocker, hermesLocal, goName)
	if err != nil {
		return nil, err
	}
	if err := onEach(ctx, all, bulkMake); err != nil {
		return nil, err
	}
	n := b.count(30, 10)
	beside := command("true", 0).paused()
	beside.Op, beside.Flood, beside.Began, beside.Stop = "flood", floodCommand, floodBegan, floodStop
	alone, flooded := map[string]samples{}, map[string]samples{}
	// Alone and beside in turn, so that a busy moment of the machine is in both.
	for range n / block {
		for _, c := range []struct {
			job  job
			into map[string]samples
		}{{command("true", 0).paused(), alone}, {beside, flooded}} {
			taken, err := turns(ctx, c.job, block, all...)
			if err != nil {
				return nil, err
			}
			for who, s := range taken {
				c.into[who] = append(c.into[who], s...)
			}
		}
	}
	rows := compared("flood", "`true` beside a command that floods", inMS, flooded, all)
	for i := range rows {
		slower := rows[i].Median / alone[rows[i].Who].median()
		const what = "the time without the flood"
		if i == 1 || i == 2 {
			rows[i] = rows[i].note(what, slower, "×")
			continue
		}
		rows[i] = rows[i].atMost(what, slower, "×", 2)
	}
	return rows, nil
}
