//go:build linux

package main

import (
	"context"
	"fmt"
	"time"
)

// flatness is how much slower something may be and count as equally fast: the medians of a machine at rest repeat within a fifth.
const flatness = 1.2

func runThousand(ctx context.Context, b *bench) ([]row, error) {
	all, err := b.subjects(ctx, hermesDockerbox, goName)
	if err != nil {
		return nil, err
	}
	hermes, inGo := all[0].(*worker), all[1].(*goPath) //nolint:errcheck // what these names stand for
	n, edge := b.count(1000, 200), b.count(100, 20)
	var rows []row
	for _, s := range all {
		container := hermes.facts.Container
		if s == subject(inGo) {
			container = inGo.env.Info().ContainerID
		}
		home := inGo.env.Info().Home // the image's, so that of both
		// Not counted: what grows once, with first use.
		if _, err := s.do(ctx, command("true", 2*edge)); err != nil {
			return nil, err
		}
		agentBefore, serveBefore, err := b.look(ctx, container, home, hermes)
		if err != nil {
			return nil, err
		}
		taken, err := s.do(ctx, command("true", n))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		agentAfter, serveAfter, err := b.look(ctx, container, home, hermes)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("%d in a row", n)
		ms := milliseconds(taken.each)
		first, last := ms[:edge], ms[len(ms)-edge:]
		rows = append(rows, measured("row", what, s.name(), inMS, ms).
			atMost(fmt.Sprintf("the last %d against the first", edge), last.median()/first.median(), "×", flatness))
		rows = append(rows, growth("row", what+", agent", s.name(), agentBefore, agentAfter)...)
		if s == subject(hermes) {
			rows = append(rows, growth("row", what+", serve", s.name(), serveBefore, serveAfter)...)
		}
	}
	return rows, nil
}

// look counts what an agent and the serve of Hermes have. What the last command left to be done is over first: the numbers have to stand
// still, or be as low as they get.
func (b *bench) look(ctx context.Context, container, home string, hermes *worker) (agent, serve facts, err error) {
	const patience, pause = 3 * time.Second, 100 * time.Millisecond
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		earlier := agent
		if agent, err = b.agentFacts(ctx, container, home); err != nil {
			return agent, serve, err
		}
		if serve, err = processFacts(hermes.facts.Serve); err != nil {
			return agent, serve, err
		}
		still := agent.fds == earlier.fds && agent.processes == earlier.processes && agent.files == earlier.files
		if still || time.Now().After(deadline) {
			return agent, serve, nil
		}
	}
}
