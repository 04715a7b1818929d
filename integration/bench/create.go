//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

const plainCreate = "docker run --init, docker exec"

// runCreate goes from nothing to the first line of output. What was made is removed before the next turn, outside of the time.
func runCreate(ctx context.Context, b *bench) ([]row, error) {
	ours, err := b.hermes(ctx, hermesDockerbox)
	if err != nil {
		return nil, err
	}
	docker, err := b.hermes(ctx, hermesDocker)
	if err != nil {
		return nil, err
	}
	number := 0
	names := []string{ours.name(), docker.name(), goName, plainCreate}
	taken, err := rounds(ctx, b.count(6, 1), names, func(ctx context.Context, who string) (time.Duration, error) {
		number++
		name := fmt.Sprintf("fresh-%d", number)
		switch who {
		case goName:
			return b.createInGo(ctx, name)
		case plainCreate:
			return b.createPlain(ctx, b.tag+"-"+name)
		case docker.name():
			return fresh(ctx, docker, name)
		default:
			return fresh(ctx, ours, name)
		}
	})
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(names))
	for i, who := range names {
		rows[i] = measured("create", "create to first output", who, inMS, taken[who])
	}
	plain := rows[3]
	for _, i := range []int{0, 2} {
		rows[i] = rows[i].atMost("the time of "+plain.Who, rows[i].Median/plain.Median, "×", 1.3)
	}
	rows[0] = rows[0].note(as(rows[1]), rows[0].faster(rows[1]), "×")
	return rows, nil
}

func fresh(ctx context.Context, w *worker, name string) (time.Duration, error) {
	got, err := w.do(ctx, job{Op: "fresh", Task: name})
	return got.whole, err
}

func (b *bench) createInGo(ctx context.Context, name string) (took time.Duration, err error) {
	cfg := b.config(name)
	remove := func(ctx context.Context) error {
		return b.provider.Remove(ctx, cfg.Name, provider.RemoveOptions{Force: true})
	}
	b.atEnd("remove sandbox "+cfg.Name, remove)
	began := time.Now()
	env, err := b.provider.CreateEnvironment(ctx, cfg, "")
	if err != nil {
		return 0, err
	}
	if err := first(env.Execute(ctx, contract.Request{Command: "echo ready"})); err != nil {
		return 0, err
	}
	took = time.Since(began)
	if err := env.Cleanup(ctx, false); err != nil {
		return 0, err
	}
	return took, remove(ctx)
}

func first(result contract.Result, err error) error {
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("the first command ended with %d: %.300s", result.ExitCode, result.Output)
	}
	return err
}

func (b *bench) createPlain(ctx context.Context, name string) (time.Duration, error) {
	remove := func(ctx context.Context) error { return b.engine.Remove(ctx, name) }
	b.atEnd("remove container "+name, remove)
	began := time.Now()
	id, err := b.output(ctx, "docker", b.plainRun(name)...)
	if err != nil {
		return 0, err
	}
	if _, err := b.output(ctx, "docker", "exec", id, "echo", "ready"); err != nil {
		return 0, err
	}
	return time.Since(began), remove(ctx)
}
