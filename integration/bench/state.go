//go:build linux

package main

import (
	"context"
	"fmt"
)

// Shell state as a long session has it: 10 000 bytes of exports, 100 functions. forget takes all of it back, for the parts after this one.
const (
	remember = `for i in {1..10}; do export "BENCH_EXPORT_$i=$(printf %01000d "$i")"; done
for i in {1..100}; do eval "bench_function_$i() { echo $i; }"; done`
	forget = `for i in {1..10}; do unset "BENCH_EXPORT_$i"; done
for i in {1..100}; do unset -f "bench_function_$i"; done; unset BENCH_COUNT i`
	// The built-in backends have lost the functions by now, which makes it the easier for them.
	recallExports   = `[ "${#BENCH_EXPORT_1}${#BENCH_EXPORT_10}" = 10001000 ]`
	recallFunctions = `[ "$(bench_function_100)" = 100 ]`
	change          = `cd /usr; cd /tmp; export BENCH_COUNT=$((BENCH_COUNT + 1))`
)

func runState(ctx context.Context, b *bench) (rows []row, err error) {
	all, err := b.subjects(ctx, hermesDockerbox, hermesDocker, hermesLocal, goName)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			err = onEach(ctx, all, forget)
		}
	}()
	n := b.count(40, 10)
	changed, err := turns(ctx, command(change, 0).paused(), n, all...)
	if err != nil {
		return nil, err
	}
	// The state has to be that of the last command, or there was nothing to measure.
	if err := onEach(ctx, all, fmt.Sprintf(`[ "$PWD" = "$(cd /tmp; pwd -P)" ] && [ "$BENCH_COUNT" -ge %d ]`, n)); err != nil {
		return nil, err
	}
	if err := onEach(ctx, all, remember); err != nil {
		return nil, err
	}
	carried, err := turns(ctx, command("true", 0).paused(), n, all...)
	if err != nil {
		return nil, err
	}
	if err := onEach(ctx, all, recallExports); err != nil {
		return nil, err
	}
	if err := onEach(ctx, []subject{all[0], all[3]}, recallFunctions); err != nil {
		return nil, err
	}
	rows = besideBuiltIn(compared("state", "`cd` and `export`", inMS, changed, all))
	return append(rows, besideBuiltIn(compared("state", "`true` with 10 000 bytes of exports and 100 functions", inMS, carried, all))...), nil
}

// besideBuiltIn holds the first row against the two after it.
func besideBuiltIn(rows []row) []row {
	for _, other := range rows[1:3] {
		rows[0] = rows[0].note(as(other), rows[0].faster(other), "×")
	}
	return rows
}

// onEach runs a command once on each subject.
func onEach(ctx context.Context, subjects []subject, text string) error {
	for _, s := range subjects {
		if _, err := s.do(ctx, command(text, 1)); err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
	}
	return nil
}
