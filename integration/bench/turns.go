//go:build linux

package main

import (
	"context"
	"fmt"
	"time"
)

// How subjects take turns.
//
// Single turns would have each command run on caches that five other programs have just filled, and beside what they leave to be done
// after their answer: the daemon goes on for milliseconds after a `docker exec` has returned. Whoever is fastest is punished most, and
// nobody uses four backends in turn. One long series each would let a busy minute of the machine meet one subject alone. So each has the
// machine for a block of ten commands, with two before it that are not counted: they take what the neighbour left over, and its caches.
// A busy moment is longer than a block and meets all. The order moves on by one each round, so that nobody always follows the same one.
const (
	block  = 10
	warmUp = 2
)

// turns has the subjects do the job in blocks, count commands each in all.
func turns(ctx context.Context, j job, count int, subjects ...subject) (map[string]samples, error) {
	taken := map[string]samples{}
	size := min(block, count)
	for round := range (count + size - 1) / size {
		for i := range subjects {
			s := subjects[(i+round)%len(subjects)]
			mine := j
			mine.Warm, mine.Count = warmUp, min(size, count-round*size)
			got, err := s.do(ctx, mine)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name(), err)
			}
			taken[s.name()] = append(taken[s.name()], milliseconds(got.each)...)
		}
	}
	return taken, nil
}

// rounds has the subjects do a job in single turns, for what takes so long that caches do not matter and blocks would take minutes. One
// before the first is not counted.
func rounds(ctx context.Context, count int, subjects []string, do func(ctx context.Context, who string) (time.Duration, error)) (map[string]samples, error) {
	taken := map[string]samples{}
	for round := range count + 1 {
		for i := range subjects {
			who := subjects[(i+round)%len(subjects)]
			took, err := do(ctx, who)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", who, err)
			}
			if round > 0 {
				taken[who] = append(taken[who], milliseconds([]time.Duration{took})...)
			}
		}
	}
	return taken, nil
}
