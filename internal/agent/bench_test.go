//go:build linux

package agent

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// median adds the median to a benchmark's figures: the mean says little on a busy machine.
func median(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
}

func benchTrue(b *testing.B, gap time.Duration) {
	c := newWorld(b).connect(b)
	c.sh("true")
	var took []time.Duration
	for b.Loop() {
		time.Sleep(gap) // what is measured: a command that comes a while after the last
		began := time.Now()
		c.sh("true")
		took = append(took, time.Since(began))
	}
	median(b, took)
}

// BenchmarkTrueWarm is a command that finds its shell waiting.
func BenchmarkTrueWarm(b *testing.B) { benchTrue(b, 30*time.Millisecond) }

// BenchmarkTrueBackToBack is one that comes before the next shell is ready.
func BenchmarkTrueBackToBack(b *testing.B) { benchTrue(b, 0) }

// BenchmarkBareBash is the floor: bash -c true, and nothing else.
func BenchmarkBareBash(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		time.Sleep(30 * time.Millisecond) // as above
		began := time.Now()
		p, err := children.start("/bin/bash", []string{"bash", "--norc", "--noprofile", "-c", "true"}, &syscall.ProcAttr{Env: []string{"PATH=" + defaultPath}})
		must(b, err)
		<-p.done
		took = append(took, time.Since(began))
	}
	median(b, took)
}
