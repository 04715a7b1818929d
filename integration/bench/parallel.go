//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// atOnce is how many commands run at a time.
const atOnce = 8

// runParallel lifts the limit of one core from the containers: it is the machine's cores that are to be used.
//
// What the cores allow is their number divided by the processor time that one command costs when it has the machine to itself, that of
// every process that takes part in it. Whatever makes commands wait for each other, and whatever they cost more beside each other, shows as
// a throughput below that. A bare `bash -c true`, 8 at once, stands beside it for scale.
func runParallel(ctx context.Context, b *bench) (rows []row, err error) {
	all, err := b.subjects(ctx, hermesDockerbox, hermesDocker, hermesLocal, goName, bashName)
	if err != nil {
		return nil, err
	}
	back, err := b.allCores(ctx, all)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, back(ctx)) }() // the parts after this one have the limits of the report's head
	cost, err := b.processorTime(ctx, all)
	if err != nil {
		return nil, err
	}
	each, throughput := map[string]samples{}, map[string]samples{}
	j := command("true", b.count(6, 3))
	j.Threads, j.Warm = atOnce, warmUp
	counts := map[string]int{}
	for round := range b.count(4, 2) {
		for i := range all {
			s := all[(i+round)%len(all)]
			if counts[s.name()] == 0 {
				if counts[s.name()], err = b.longEnough(ctx, s, j); err != nil {
					return nil, fmt.Errorf("%s: %w", s.name(), err)
				}
			}
			mine := j
			mine.Count = counts[s.name()]
			got, err := s.do(ctx, mine)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name(), err)
			}
			each[s.name()] = append(each[s.name()], milliseconds(got.each)...)
			throughput[s.name()] = append(throughput[s.name()], float64(len(got.each))/got.whole.Seconds())
		}
	}
	rows = compared("parallel", "8 at once, each command", inMS, each, all)
	through := compared("parallel", "8 at once, throughput", inPerSecond, throughput, all)
	rows[0] = rows[0].atLeast(as(rows[1]), rows[0].faster(rows[1]), 10).note(as(rows[2]), rows[0].faster(rows[2]), "×")
	for i := range through {
		allowed := float64(runtime.NumCPU()) / cost[through[i].Who].Seconds()
		share := through[i].Median / allowed
		if ours := i == 0 || i == 3; ours {
			through[i] = through[i].atLeast("of what the cores allow", share, 0.8)
		} else {
			through[i] = through[i].note("of what the cores allow", share, "×")
		}
		through[i] = through[i].note("processor time of one command alone", float64(cost[through[i].Who])/float64(time.Millisecond), inMS)
	}
	return append(rows, through...), nil
}

// longEnough is how many commands each thread has to run so that the first, which find everything cold, and the last, beside which cores are idle
// already, do not decide: at least as many as j says, and some 800 ms long.
func (b *bench) longEnough(ctx context.Context, s subject, j job) (int, error) {
	got, err := s.do(ctx, j)
	if err != nil {
		return 0, err
	}
	enough := time.Duration(b.count(800, 200)) * time.Millisecond
	return max(j.Count, int(enough*time.Duration(j.Count)/max(1, got.whole))), nil
}

// allCores gives the containers of subjects all cores; back gives them their limit again.
func (b *bench) allCores(ctx context.Context, subjects []subject) (back func(context.Context) error, err error) {
	var containers []string
	for _, s := range subjects {
		switch s := s.(type) {
		case *worker:
			if s.facts.Container != "" {
				containers = append(containers, s.facts.Container)
			}
		case *goPath:
			containers = append(containers, s.env.Info().ContainerID)
		}
	}
	limit := func(ctx context.Context, cores float64) error {
		_, err := b.output(ctx, "docker", append([]string{"update", "--cpus", fmt.Sprint(cores)}, containers...)...)
		return err
	}
	return func(ctx context.Context) error { return limit(ctx, b.config("").CPUs) }, limit(ctx, float64(runtime.NumCPU()))
}

// processorTime is what one command costs, by the time that the whole machine is busy meanwhile. Nothing less takes in the daemon and the
// kernel's part. Whatever else the machine does can only add to it, so the least of three looks counts; the load in the report's head says how
// far that helps.
func (b *bench) processorTime(ctx context.Context, subjects []subject) (map[string]time.Duration, error) {
	// The kernel counts in hundredths of a second, so it takes some of those.
	enough := time.Duration(b.count(500, 200)) * time.Millisecond
	cost := map[string]time.Duration{}
	for _, s := range subjects {
		one, err := s.do(ctx, command("true", block))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		j := command("true", max(block, int(enough*block/max(1, one.whole))))
		for range 3 {
			before, err := busy()
			if err != nil {
				return nil, err
			}
			if _, err := s.do(ctx, j); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name(), err)
			}
			after, err := busy()
			if err != nil {
				return nil, err
			}
			if after <= before {
				return nil, fmt.Errorf("%s: %d commands took no processor time that /proc/stat shows", s.name(), j.Count)
			}
			one := (after - before) / time.Duration(j.Count)
			if least, known := cost[s.name()]; !known || one < least {
				cost[s.name()] = one
			}
		}
	}
	return cost, nil
}

// busy is the time that all cores together have been at work.
func busy() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseBusy(string(stat))
}

// parseBusy reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, in hundredths of a second. Guests
// are in user already, and what another machine stole is no work of this one.
func parseBusy(stat string) (time.Duration, error) {
	const tick = 10 * time.Millisecond
	line, _, _ := strings.Cut(stat, "\n")
	words := strings.Fields(line)
	if len(words) < 8 || words[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var sum time.Duration
	for _, i := range []int{1, 2, 3, 6, 7} {
		ticks, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat begins with %q: %w", line, err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}
