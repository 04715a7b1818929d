//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// The names of subjects that are no workers.
const (
	goName   = "dockerbox in Go"
	execName = "docker exec"
	bashName = "bash -c"
)

// window is what bounded capture keeps, in bytes: Hermes's default for tool_output.max_bytes.
const window = 50_000

// hermes is the worker with a backend, started when it is first asked for.
func (b *bench) hermes(ctx context.Context, backend string) (*worker, error) {
	b.mu.Lock()
	w := b.workers[backend]
	b.mu.Unlock()
	if w != nil {
		return w, nil
	}
	w, err := b.startWorker(ctx, backend)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.workers[backend] = w
	return w, nil
}

// subjects are those of the names given, each ready. Importing Hermes takes seconds, so they get ready together.
func (b *bench) subjects(ctx context.Context, names ...string) ([]subject, error) {
	found := make([]subject, len(names))
	errs := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() {
			switch name {
			case goName:
				found[i], errs[i] = b.goPath(ctx)
			case execName:
				found[i], errs[i] = b.dockerExec(ctx)
			case bashName:
				found[i] = bareBash{}
			default:
				found[i], errs[i] = b.hermes(ctx, name)
			}
		})
	}
	group.Wait()
	return found, errors.Join(errs...)
}

// goPath is dockerbox without Hermes: provider and environment in this process.
type goPath struct {
	env contract.Environment
	as  string
}

func (b *bench) goPath(ctx context.Context) (*goPath, error) {
	b.mu.Lock()
	made := b.box
	b.mu.Unlock()
	if made != nil {
		return made, nil
	}
	env, err := b.sandbox(ctx, b.config("go"))
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.box = &goPath{env, goName}
	return b.box, nil
}

func (g *goPath) name() string { return g.as }

func (g *goPath) do(ctx context.Context, j job) (timing, error) {
	j = j.in(boxDir)
	if j.Op == "flood" {
		return g.flood(ctx, j)
	}
	stop := func() error { return nil }
	if j.Beside != "" {
		stop = beside(j.BesideMS, func() error { return g.one(ctx, command(j.Beside, 1)) })
	}
	took, err := series(ctx, j, func(ctx context.Context) error { return g.one(ctx, j) })
	return took, errors.Join(err, stop())
}

// one runs the job's command once.
func (g *goPath) one(ctx context.Context, j job) error {
	var out discard
	req := contract.Request{Command: j.Command}
	if j.Stdin > 0 {
		req.Stdin = endless(j.Stdin)
	}
	switch {
	case j.Bounded:
		req.MaxOutput = window
	case j.Output >= 0:
		req.Stdout = &out
	}
	result, err := g.env.Execute(ctx, req)
	switch {
	case err != nil:
		return err
	case result.ExitCode != 0:
		return fmt.Errorf("it ended with %d: %.300s", result.ExitCode, result.Output)
	case j.Output >= 0 && !j.Bounded && out.bytes != j.Output:
		return fmt.Errorf("it gave %d bytes, not %d", out.bytes, j.Output)
	case j.Output >= 0 && j.Bounded && result.Dropped+window < j.Output:
		return fmt.Errorf("it gave some %d bytes, not %d", result.Dropped+window, j.Output)
	}
	return nil
}

// flood runs the job beside a command that floods, as worker.py does.
func (g *goPath) flood(ctx context.Context, j job) (timing, error) {
	run := func(command string) error { return g.one(ctx, job{Command: command, Bounded: true, Output: -1}) }
	ended := make(chan error, 1)
	go func() { ended <- run(j.Flood) }()
	took, err := timing{}, run(j.Began)
	if err == nil {
		took, err = series(ctx, j, func(ctx context.Context) error { return g.one(ctx, j) })
	}
	return took, errors.Join(err, run(j.Stop), <-ended)
}

// dockerExec is one docker exec per command, in a container that nobody else uses.
type dockerExec struct{ id string }

// dockerExec starts the container with the limits of the others.
func (b *bench) dockerExec(ctx context.Context) (*dockerExec, error) {
	b.mu.Lock()
	made := b.plain
	b.mu.Unlock()
	if made != nil {
		return made, nil
	}
	name := b.tag + "-plain"
	b.atEnd("remove container "+name, func(ctx context.Context) error { return b.engine.Remove(ctx, name) })
	id, err := b.output(ctx, "docker", b.plainRun(name)...)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.plain = &dockerExec{id}
	return b.plain, nil
}

// plainRun are the words for docker that start a container as plain as can be, with the limits of the others.
func (b *bench) plainRun(name string) []string {
	c := contract.Defaults()
	return []string{
		"run", "--detach", "--init", "--name", name, "--cpus", fmt.Sprint(c.CPUs), "--memory", fmt.Sprintf("%dm", c.MemoryMB),
		"--pids-limit", fmt.Sprint(c.PIDs), b.image, "sleep", "infinity",
	}
}

func (d *dockerExec) name() string { return execName }

func (d *dockerExec) do(ctx context.Context, j job) (timing, error) {
	j = j.in(boxDir)
	words := []string{"exec"}
	if j.Stdin > 0 {
		words = append(words, "-i")
	}
	return series(ctx, j, func(ctx context.Context) error {
		return program(ctx, j, "docker", append(words, d.id, "bash", "-c", j.Command)...)
	})
}

// bareBash is a bash of this machine, with nothing around it.
type bareBash struct{}

func (bareBash) name() string { return bashName }

func (bareBash) do(ctx context.Context, j job) (timing, error) {
	return series(ctx, j, func(ctx context.Context) error { return program(ctx, j, "bash", "-c", j.Command) })
}

// program runs a job's command as a process of its own.
func program(ctx context.Context, j job, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	var out discard
	var said bytes.Buffer
	if j.Output >= 0 {
		c.Stdout = &out
	}
	c.Stderr = &said
	if j.Stdin > 0 {
		c.Stdin = endless(j.Stdin)
	}
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	if j.Output >= 0 && out.bytes != j.Output {
		return fmt.Errorf("it gave %d bytes, not %d", out.bytes, j.Output)
	}
	return nil
}
