//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// job is what a subject is to do, and what a worker is sent; see worker.py for the fields.
type job struct {
	Op      string  `json:"op"`
	Command string  `json:"command,omitempty"`
	Warm    int     `json:"warm,omitempty"`
	Count   int     `json:"count,omitempty"`
	GapMS   float64 `json:"gap_ms,omitempty"`
	Bounded bool    `json:"bounded,omitempty"`
	// Stdin is how many bytes go in. Output is how many have to come out, -1 for any number.
	Stdin   int64 `json:"stdin,omitempty"`
	Output  int64 `json:"output"`
	Threads int   `json:"threads,omitempty"`
	// Beside is a command that runs again and again while the job does, every BesideMS; only in dockerbox's own subjects.
	Beside   string  `json:"beside,omitempty"`
	BesideMS float64 `json:"beside_ms,omitempty"`
	// Flood, Began and Stop are for the op of that name.
	Flood string `json:"flood,omitempty"`
	Began string `json:"began,omitempty"`
	Stop  string `json:"stop,omitempty"`
	Task  string `json:"task,omitempty"`
}

// command is a job that runs text count times, whatever it prints.
func command(text string, count int) job {
	return job{Op: "run", Command: text, Count: count, Output: -1}
}

// paused is the job with the pause that a model leaves between two commands, at the very least.
func (j job) paused() job {
	j.GapMS = 30
	return j
}

// timing is what a job took: each command, and all of them together.
type timing struct {
	each  []time.Duration
	whole time.Duration
}

// in is the job with a subject's own directory for files in place of {dir}.
func (j job) in(dir string) job {
	for _, text := range []*string{&j.Command, &j.Flood, &j.Began, &j.Stop} {
		*text = strings.ReplaceAll(*text, "{dir}", dir)
	}
	return j
}

// boxDir is that directory in a container: any account may write to it, and it goes with the container.
const boxDir = "/tmp"

// subject is one way to run a command.
type subject interface {
	name() string
	do(context.Context, job) (timing, error)
}

// series runs one as a job says, in this process. one runs a single command and fails unless that ended with status 0.
func series(ctx context.Context, j job, one func(context.Context) error) (timing, error) {
	if _, err := repeat(ctx, j, j.Warm, one); err != nil {
		return timing{}, err
	}
	began := time.Now()
	var (
		all    timing
		failed error
		mu     sync.Mutex
		group  sync.WaitGroup
	)
	for range max(1, j.Threads) {
		group.Go(func() {
			taken, err := repeat(ctx, j, j.Count, one)
			mu.Lock()
			defer mu.Unlock()
			all.each = append(all.each, taken...)
			if failed == nil {
				failed = err
			}
		})
	}
	group.Wait()
	all.whole = time.Since(began)
	return all, failed
}

// beside runs one again and again, every ms milliseconds, until stop is called.
func beside(ms float64, one func() error) (stop func() error) {
	quit, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-quit:
				ended <- nil
				return
			case <-time.After(time.Duration(ms * float64(time.Millisecond))):
			}
			if err := one(); err != nil {
				ended <- err
				return
			}
		}
	}()
	return func() error { close(quit); return <-ended }
}

func repeat(ctx context.Context, j job, count int, one func(context.Context) error) ([]time.Duration, error) {
	gap := time.Duration(j.GapMS * float64(time.Millisecond))
	taken := make([]time.Duration, 0, count)
	for range count {
		if gap > 0 {
			select {
			case <-time.After(gap): // the pause is what is measured, not a wait for something
			case <-ctx.Done():
			}
		}
		if err := ctx.Err(); err != nil {
			return taken, err
		}
		began := time.Now()
		err := one(ctx)
		taken = append(taken, time.Since(began))
		if err != nil {
			return taken, fmt.Errorf("`%.60s`: %w", j.Command, err)
		}
	}
	return taken, nil
}
