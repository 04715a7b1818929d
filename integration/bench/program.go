//go:build linux

package main

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/agentbin"
)

// runProgram weighs the executable, and times the two commands that other programs wait for.
func runProgram(ctx context.Context, b *bench) ([]row, error) {
	box, err := b.goPath(ctx)
	if err != nil {
		return nil, err
	}
	const version, prefix = "dockerbox version", "dockerbox prefix"
	words := map[string][]string{version: {"version"}, prefix: {"prefix", box.env.Info().Name}}
	taken, err := rounds(ctx, b.count(30, 5), []string{version, prefix}, func(ctx context.Context, who string) (time.Duration, error) {
		began := time.Now()
		_, err := b.output(ctx, b.dockerbox, words[who]...)
		return time.Since(began), err
	})
	if err != nil {
		return nil, err
	}
	executable, err := os.Stat(b.dockerbox)
	if err != nil {
		return nil, err
	}
	agent, err := agentbin.Binary(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	const mb = 1e6
	starts := func(who string, limit float64) row {
		r := measured("program", "the whole process", "`"+who+"`", inMS, taken[who])
		return r.atMost(itself, r.Median, inMS, limit)
	}
	weighs := func(who string, bytes, limit float64) row {
		return fact("program", "size", who, inMB, bytes/mb).atMost(itself, bytes/mb, inMB, limit)
	}
	return []row{
		starts(version, 15), starts(prefix, 40),
		weighs("agent", float64(len(agent)), 4), weighs("dockerbox", float64(executable.Size()), 30),
	}, nil
}
