//go:build linux

package main

import (
	"context"
	"time"
)

// runSleep has the subjects sleep in single turns: after half a second of rest everybody's caches are as cold.
func runSleep(ctx context.Context, b *bench) ([]row, error) {
	all, err := b.subjects(ctx, hermesDockerbox, hermesDocker, hermesLocal, goName, bashName)
	if err != nil {
		return nil, err
	}
	const length = 500
	names, by := named(all)
	taken, err := rounds(ctx, b.count(8, 2), names, func(ctx context.Context, who string) (time.Duration, error) {
		got, err := by[who].do(ctx, command("sleep 0.5", 1))
		return got.whole, err
	})
	if err != nil {
		return nil, err
	}
	for who, s := range taken {
		taken[who] = s.each(func(ms float64) float64 { return ms - length })
	}
	rows := compared("sleep", "`sleep 0.5`: how late it returns", inMS, taken, all)
	rows[0] = rows[0].atMost(itself, rows[0].Median, inMS, 10)
	return rows, nil
}
