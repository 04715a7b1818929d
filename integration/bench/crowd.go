//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// Of the sandboxes that ps has to list, so many run; the others were made and never started, for which a list has as much to say.
const (
	crowdAll     = 200
	crowdRunning = 50
)

// runCrowd measures a command without other sandboxes, with them, and without again: they cannot come and go in turns, and the mean of
// before and after has the drift of the machine in it.
func runCrowd(ctx context.Context, b *bench) (rows []row, err error) {
	box, err := b.goPath(ctx)
	if err != nil {
		return nil, err
	}
	c := &crowd{b: b}
	b.atEnd("remove the crowd", c.remove)
	few, err := b.list(ctx, 1)
	if err != nil {
		return nil, err
	}
	measure := func() (samples, error) {
		taken, err := turns(ctx, command("true", 0).paused(), b.count(60, 10), box)
		return taken[box.name()], err
	}
	before, err := measure()
	if err != nil {
		return nil, err
	}
	running, others := b.count(crowdRunning, 4), b.count(crowdAll-crowdRunning, 8)
	if err := c.run(ctx, running); err != nil {
		return nil, err
	}
	if err := c.make(ctx, box, others); err != nil {
		return nil, err
	}
	beside, err := measure()
	if err != nil {
		return nil, err
	}
	many, err := b.list(ctx, running+others)
	if err != nil {
		return nil, err
	}
	if err := c.remove(ctx); err != nil {
		return nil, err
	}
	after, err := measure()
	if err != nil {
		return nil, err
	}
	alone := measured("crowd", "`true`, 30 ms between commands", "in Go: before and after", inMS, append(before, after...))
	crowded := measured("crowd", alone.Case, fmt.Sprintf("in Go: %d other sandboxes", running), inMS, beside)
	rows = []row{alone, crowded.atMost("the time without", crowded.Median/alone.Median, "×", flatness)}
	for _, l := range []struct {
		what string
		s    map[string]samples
	}{{"list the sandboxes", few}, {fmt.Sprintf("list the sandboxes, with %d more", running+others), many}} {
		ours := measured("crowd", l.what, listOurs, inMS, l.s[listOurs])
		dockers := measured("crowd", l.what, listDocker, inMS, l.s[listDocker])
		rows = append(rows, ours.note("the time of "+dockers.Who, ours.Median/dockers.Median, "×"), dockers)
	}
	return rows, nil
}

const (
	listOurs   = "`dockerbox ps`"
	listDocker = "`docker ps` with our label"
	labelName  = "dev.dockerbox.name"
)

// list times ps, which has to show at least so many.
func (b *bench) list(ctx context.Context, least int) (map[string]samples, error) {
	words := map[string][]string{
		listOurs: {b.dockerbox, "ps"}, listDocker: {"docker", "ps", "--all", "--filter", "label=" + labelName},
	}
	return rounds(ctx, b.count(10, 2), []string{listOurs, listDocker}, func(ctx context.Context, who string) (time.Duration, error) {
		began := time.Now()
		out, err := b.output(ctx, words[who][0], words[who][1:]...)
		took := time.Since(began)
		if lines := strings.Count(out, "\n"); err == nil && lines < least { // the head is not followed by one, as the last is
			err = fmt.Errorf("it lists %d sandboxes, not %d", lines, least)
		}
		return took, err
	})
}

// crowd are sandboxes beside the one that is measured.
type crowd struct {
	b *bench

	mu         sync.Mutex
	sandboxes  []string // by their address
	containers []string // by their name
}

// helpers is how many are made or removed at a time: the daemon takes no more by being asked more.
const helpers = 4

// run starts sandboxes whose agents are connected to, as those of sessions are.
func (c *crowd) run(ctx context.Context, count int) error {
	return spread(ctx, count, func(ctx context.Context, i int) error {
		cfg := c.b.config(fmt.Sprintf("crowd-%d", i))
		cfg.Persistent = false
		c.mu.Lock()
		c.sandboxes = append(c.sandboxes, cfg.Name)
		c.mu.Unlock()
		env, err := c.b.provider.CreateEnvironment(ctx, cfg, "")
		if err != nil {
			return err
		}
		return first(env.Execute(ctx, contract.Request{Command: "true"}))
	})
}

// make creates containers that are not started, with the labels of a sandbox.
func (c *crowd) make(ctx context.Context, like *goPath, count int) error {
	found, err := c.b.engine.Inspect(ctx, like.env.Info().ContainerID)
	if err != nil {
		return err
	}
	return spread(ctx, count, func(ctx context.Context, i int) error {
		name := fmt.Sprintf("%s-made-%d", c.b.tag, i)
		cfg := &container.Config{Image: c.b.image, Entrypoint: found.Config.Entrypoint, Cmd: found.Config.Cmd, Labels: maps.Clone(found.Config.Labels)}
		cfg.Labels[labelName] = name
		c.mu.Lock()
		c.containers = append(c.containers, name)
		c.mu.Unlock()
		_, _, err := c.b.engine.Create(ctx, name, cfg, &container.HostConfig{NetworkMode: "none"})
		return err
	})
}

// remove removes all that are there.
func (c *crowd) remove(ctx context.Context) error {
	c.mu.Lock()
	sandboxes, containers := c.sandboxes, c.containers
	c.sandboxes, c.containers = nil, nil
	c.mu.Unlock()
	return errors.Join(
		spread(ctx, len(sandboxes), func(ctx context.Context, i int) error {
			return c.b.provider.Remove(ctx, sandboxes[i], provider.RemoveOptions{Force: true})
		}),
		spread(ctx, len(containers), func(ctx context.Context, i int) error { return c.b.engine.Remove(ctx, containers[i]) }),
	)
}

// spread does something count times, a few at a time. It begins no more of it after ctx has ended.
func spread(ctx context.Context, count int, do func(context.Context, int) error) error {
	var group sync.WaitGroup
	errs := make([]error, count)
	free := make(chan struct{}, helpers)
	for i := range count {
		free <- struct{}{}
		if ctx.Err() != nil {
			errs[i] = context.Cause(ctx)
			break
		}
		group.Go(func() {
			errs[i] = do(ctx, i)
			<-free
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
