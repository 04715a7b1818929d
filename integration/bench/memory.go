//go:build linux

package main

import (
	"context"
	"fmt"
)

func runMemory(ctx context.Context, b *bench) ([]row, error) {
	w, err := b.hermes(ctx, hermesDockerbox)
	if err != nil {
		return nil, err
	}
	if err := onEach(ctx, []subject{w}, bulkMake); err != nil {
		return nil, err
	}
	files := b.count(16, 4)
	j := command(fmt.Sprintf("for i in {1..%d}; do cat %s; done", files, bulkFile), 1)
	j.Bounded = true
	pid := w.facts.Serve
	if err := resetPeak(pid); err != nil {
		return nil, fmt.Errorf("measure the peak of serve: %w", err)
	}
	if _, err := w.do(ctx, j); err != nil {
		return nil, err
	}
	peak, err := memory(pid, "VmHWM")
	if err != nil {
		return nil, err
	}
	mb := float64(peak) / 1e6
	what := fmt.Sprintf("serve while %d MB flow, bounded capture: peak of its memory", files*64)
	return []row{fact("memory", what, w.name(), inMB, mb).atMost(itself, mb, inMB, 64)}, nil
}
