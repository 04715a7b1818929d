//go:build unix

package rpc

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// BenchmarkExecute is what the protocol adds to a command that takes no time, both ends included.
func BenchmarkExecute(b *testing.B) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := (&Server{Provider: idle{}}).Serve(context.Background(), inR, outW)
		served <- errors.Join(err, outW.Close())
	}()
	c, err := Connect(b.Context(), outR, inW, "bench", "0", nil)
	if err != nil {
		b.Fatal(err)
	}
	env, err := c.CreateEnvironment(b.Context(), contract.Defaults(), "")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := env.Execute(b.Context(), contract.Request{Command: "true", MaxOutput: 1000}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := errors.Join(c.Close(), <-served); err != nil {
		b.Fatal(err)
	}
}
