//go:build linux

package main

import (
	"context"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

const runProgramName = "dockerbox run, as a process"

// runAttach comes back to a sandbox that lives, up to the end of its first command.
func runAttach(ctx context.Context, b *bench) ([]row, error) {
	all, err := b.subjects(ctx, hermesDockerbox, goName)
	if err != nil {
		return nil, err
	}
	hermes, inGo := all[0].(*worker), all[1].(*goPath) //nolint:errcheck // what these names stand for
	name := inGo.env.Info().Name
	names := []string{hermes.name(), goName, runProgramName}
	taken, err := rounds(ctx, b.count(10, 2), names, func(ctx context.Context, who string) (time.Duration, error) {
		switch who {
		case goName:
			return b.attach(ctx, name)
		case runProgramName:
			began := time.Now()
			_, err := b.output(ctx, b.dockerbox, "run", name, "true")
			return time.Since(began), err
		default: // with a new serve, as after a restart of Hermes
			got, err := hermes.do(ctx, job{Op: "attach"})
			return got.whole, err
		}
	})
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, who := range names {
		r := measured("attach", "re-attach and run `true`", who, inMS, taken[who])
		rows = append(rows, r.atMost(itself, r.Median, inMS, 150))
	}
	return rows, nil
}

func (b *bench) attach(ctx context.Context, name string) (time.Duration, error) {
	began := time.Now()
	env, err := b.provider.Attach(ctx, name)
	if err != nil {
		return 0, err
	}
	if err := first(env.Execute(ctx, contract.Request{Command: "true"})); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, env.Cleanup(ctx, false)
}
