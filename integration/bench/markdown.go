//go:build linux

package main

import (
	"fmt"
	"strings"
)

// markdown is docs/benchmarks.md.
func markdown(r report) string {
	var text strings.Builder
	held, all := r.held()
	fmt.Fprintf(&text, `# Benchmarks

Written by `+"`make bench`"+`, which measures all of this in one run; figures of another machine are comparable as ratios alone.

| | |
|---|---|
`)
	for _, line := range r.head() {
		fmt.Fprintf(&text, "| %s | %s |\n", escape(line[0]), escape(line[1]))
	}
	fmt.Fprintf(&text, `
"Through Hermes" and "built-in" are Hermes's own `+"`execute`"+`, each backend in a Hermes process of its own, timed from within; "in Go" is dockerbox's provider without Hermes
or a child process; `+"`docker exec` and `bash -c`"+` are processes, timed from outside. Subjects take turns in blocks of ten commands after two that are not counted, in an order that
moves on each round; what takes longer than some 100 ms takes single turns. p95 is what 95 %% of all values kept to. "8 at once" against the cores is throughput times the processor time
of one command alone, by the cores there are. Growth of memory up to 2 MB counts as none, a ratio up to 1.2 as flat.
On a virtual machine what lies unused for half a second can be slow to come back: how late a bare bash returns from a `+"`sleep 0.5`"+`, and how much less late the same command is
beside a `+"`true`"+` every 20 ms, which keeps every process on the way awake, is that part of the lateness.

%d of %d targets met.

| %s |
|%s
`, held, all, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, line := range cells(r.Rows) {
		for i := range line {
			line[i] = escape(line[i])
		}
		if line[8] == missed {
			line[8] = "**missed**"
		}
		fmt.Fprintf(&text, "| %s |\n", strings.Join(line, " | "))
	}
	return text.String()
}

func escape(cell string) string { return strings.ReplaceAll(cell, "|", `\|`) }
