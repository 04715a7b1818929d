//go:build linux

package main

import "context"

// The three backends of Hermes that are measured.
const (
	hermesDockerbox = "dockerbox"
	hermesDocker    = "docker"
	hermesLocal     = "local"
)

func runTrue(ctx context.Context, b *bench) ([]row, error) {
	all, err := b.subjects(ctx, hermesDockerbox, hermesDocker, hermesLocal, goName, execName, bashName)
	if err != nil {
		return nil, err
	}
	n := b.count(80, 20)
	paused, err := turns(ctx, command("true", 0).paused(), n, all...)
	if err != nil {
		return nil, err
	}
	unpaused, err := turns(ctx, command("true", 0), n, all...)
	if err != nil {
		return nil, err
	}
	rows := compared("true", "`true`, 30 ms between commands", inMS, paused, all)
	ours, docker, local, inGo, exec, bash := 0, 1, 2, 3, 4, 5
	rows[ours] = rows[ours].
		atLeast(as(rows[docker]), rows[ours].faster(rows[docker]), 20).
		atLeast(as(rows[local]), rows[ours].faster(rows[local]), 10).
		atMost("p95 against the median", *rows[ours].P95/rows[ours].Median, "×", 2)
	rows[inGo] = rows[inGo].
		atMost("the time of "+rows[bash].Who, rows[inGo].Median/rows[bash].Median, "×", 1.5).
		atLeast(as(rows[exec]), rows[inGo].faster(rows[exec]), 25)
	second := compared("true", "`true`, back to back", inMS, unpaused, all)
	second[ours] = second[ours].
		atLeast(as(second[docker]), second[ours].faster(second[docker]), 12).
		note(as(second[local]), second[ours].faster(second[local]), "×")
	second[inGo] = second[inGo].
		note("the time of "+second[bash].Who, second[inGo].Median/second[bash].Median, "×").
		note(as(second[exec]), second[inGo].faster(second[exec]), "×")
	return append(rows, second...), nil
}

// compared are the rows of subjects, in their order.
func compared(part, what, unit string, taken map[string]samples, subjects []subject) []row {
	rows := make([]row, len(subjects))
	for i, s := range subjects {
		rows[i] = measured(part, what, s.name(), unit, taken[s.name()])
	}
	return rows
}
