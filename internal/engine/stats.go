package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/docker/docker/api/types/container"
)

// Stats is what a container uses at this moment: counters since it started, from one look that does not wait for a second one. All of it is
// zero for a container that does not run.
func (e *Engine) Stats(ctx context.Context, id string) (container.StatsResponse, error) {
	var s container.StatsResponse
	did := "measuring container " + short(id)
	if err := e.ready(ctx); err != nil {
		return s, err
	}
	answer, err := e.api.ContainerStatsOneShot(ctx, id)
	if err != nil {
		return s, e.explain(did, err)
	}
	defer func() { _ = answer.Body.Close() }() // read only: nothing to lose
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		return s, e.explain(did, fmt.Errorf("the answer cannot be read: %w", err))
	}
	return s, nil
}

// WrittenSize is how many bytes a container has written outside its mounts. The daemon counts them by going through all of its files.
func (e *Engine) WrittenSize(ctx context.Context, id string) (int64, error) {
	if err := e.ready(ctx); err != nil {
		return 0, err
	}
	c, _, err := e.api.ContainerInspectWithRaw(ctx, id, true)
	if err != nil {
		return 0, e.explain("measuring what container "+short(id)+" wrote", err)
	}
	if c.ContainerJSONBase == nil || c.SizeRw == nil {
		return 0, nil
	}
	return *c.SizeRw, nil
}
