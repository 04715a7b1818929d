//go:build linux

package main

import (
	"context"
	"time"
)

// runSleep has the subjects sleep in single turns: after half a second of rest everybody's caches are as cold. What the rest alone costs shows
// beside a bare bash, and beside the same command while another keeps every process on the way awake.
func runSleep(ctx context.Context, b *bench) ([]row, error) {
	all, err := b.subjects(ctx, hermesDockerbox, hermesDocker, hermesLocal, goName, bashName)
	if err != nil {
		return nil, err
	}
	asleep := command("sleep 0.5", 1)
	rows, err := late(ctx, b, "`sleep 0.5`: how late it returns", asleep, all)
	if err != nil {
		return nil, err
	}
	rows[0] = rows[0].atMost(itself, rows[0].Median, inMS, 10)
	asleep.Beside, asleep.BesideMS = "true", 20
	awake, err := late(ctx, b, "`sleep 0.5` beside a `true` every 20 ms: how late it returns", asleep, []subject{all[0], all[3]})
	return append(rows, awake...), err
}

func late(ctx context.Context, b *bench, what string, j job, all []subject) ([]row, error) {
	const length = 500
	names, by := named(all)
	taken, err := rounds(ctx, b.count(8, 2), names, func(ctx context.Context, who string) (time.Duration, error) {
		got, err := by[who].do(ctx, j)
		return got.whole, err
	})
	if err != nil {
		return nil, err
	}
	for who, s := range taken {
		taken[who] = s.each(func(ms float64) float64 { return ms - length })
	}
	return compared("sleep", what, inMS, taken, all), nil
}
