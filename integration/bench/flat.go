//go:build linux

package main

import (
	"context"
	"fmt"
)

// runFlat takes turns between a sandbox and others that have something more in them.
func runFlat(ctx context.Context, b *bench) ([]row, error) {
	plain, err := b.goPath(ctx)
	if err != nil {
		return nil, err
	}
	all := []subject{&goPath{plain.env, "in Go: nothing else there"}}
	for _, more := range []struct{ name, label, prepare, check string }{
		{
			"jobs", "in Go: 100 background jobs",
			"for i in {1..100}; do setsid sleep 1000 >/dev/null 2>&1 & done", "[ $(pgrep -fcx 'sleep 1000') = 100 ]",
		},
		{
			"files", "in Go: 20 000 files in /tmp",
			"cd /tmp && seq -f t-bench-%.0f 20000 | xargs touch", "[ $(ls /tmp | wc -l) -ge 20000 ]",
		},
	} {
		env, err := b.sandbox(ctx, b.config(more.name))
		if err != nil {
			return nil, err
		}
		s := &goPath{env, more.label}
		if err := onEach(ctx, []subject{s}, more.prepare); err != nil {
			return nil, err
		}
		if err := onEach(ctx, []subject{s}, more.check); err != nil {
			return nil, fmt.Errorf("what was to be measured beside is not there: %w", err)
		}
		all = append(all, s)
	}
	taken, err := turns(ctx, command("true", 0).paused(), b.count(60, 10), all...)
	if err != nil {
		return nil, err
	}
	rows := compared("flat", "`true`, 30 ms between commands", inMS, taken, all)
	for i := range rows[1:] {
		rows[i+1] = rows[i+1].atMost("the time without", rows[i+1].Median/rows[0].Median, "×", flatness)
	}
	return rows, nil
}
