//go:build linux

package main

import (
	"context"
	"fmt"
	"time"
)

// The file that is read where output is measured: a mebibyte of a log, see logPiece, 64 times. It lies in the page cache, so that what is
// measured is the way out and not whoever writes. {dir} is each subject's own.
const (
	bulkSize = 64 << 20
	bulkFile = "{dir}/t-bench-bulk"
	bulkMake = "[ -e " + bulkFile + ` ] || { awk 'BEGIN { x = 7; for (i = 0; n < 1048576; i++) { x = (x * 1237 + 211) % 65521; ` +
		`s = sprintf("2026-11-30T12:%02d:%02d INFO request %06d GET /api/v%d/items/%d status=%d took %d ms\n", int(i / 60) % 60, i % 60, x * 7 + i, x % 3, x % 9973, 200 + x % 5, x % 997); ` +
		`printf "%s", s; n += length(s) } }' | head -c 1048576 >{dir}/t-bench-piece; for i in {1..64}; do cat {dir}/t-bench-piece; done >` + bulkFile + `; rm {dir}/t-bench-piece; }` +
		"; [ $(stat -c %s " + bulkFile + ") = 67108864 ]"
)

func runBulk(ctx context.Context, b *bench) ([]row, error) {
	all, err := b.subjects(ctx, hermesDockerbox, hermesDocker, hermesLocal, goName, execName)
	if err != nil {
		return nil, err
	}
	if err := onEach(ctx, all, bulkMake); err != nil {
		return nil, err
	}
	out := job{Op: "run", Command: "cat " + bulkFile, Output: bulkSize}
	bounded := out
	bounded.Bounded = true
	in := job{Op: "run", Command: fmt.Sprintf(`[ "$(wc -c)" = %d ]`, bulkSize), Stdin: bulkSize, Output: -1}
	var rows []row
	for _, c := range []struct {
		what string
		job  job
		who  []subject
	}{
		{"64 MB of output", out, all},
		{"64 MB of output, bounded capture", bounded, all[:4]},
		{"64 MB of standard input", in, all},
	} {
		taken, err := bulkRounds(ctx, b.count(4, 1), c.job, c.who)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.what, err)
		}
		some := compared("bulk", c.what, inMBPerSecond, taken, c.who)
		some[0] = some[0].atLeast(as(some[1]), some[0].faster(some[1]), 1.2).note(as(some[2]), some[0].faster(some[2]), "×")
		rows = append(rows, some...)
	}
	return rows, nil
}

// bulkRounds is megabytes per second of each subject. One command is longer than what a neighbour leaves over.
func bulkRounds(ctx context.Context, count int, j job, subjects []subject) (map[string]samples, error) {
	names, by := named(subjects)
	taken, err := rounds(ctx, count, names, func(ctx context.Context, who string) (time.Duration, error) {
		j.Count = 1
		got, err := by[who].do(ctx, j)
		if err != nil {
			return 0, err
		}
		return got.each[0], nil
	})
	for who, s := range taken {
		taken[who] = s.each(func(ms float64) float64 { return bulkSize / 1e3 / ms })
	}
	return taken, err
}

func named(subjects []subject) (names []string, by map[string]subject) {
	by = map[string]subject{}
	for _, s := range subjects {
		names = append(names, s.name())
		by[s.name()] = s
	}
	return names, by
}
