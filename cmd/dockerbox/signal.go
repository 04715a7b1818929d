package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// interruptible returns a context that SIGINT, SIGTERM and SIGHUP end with [contract.ErrInterrupted]: what runs in a sandbox is then
// killed there before the program ends. A second signal calls exit at once; the agent in the sandbox sees the connection go
// and kills the tree by itself. A signal that the caller had ignored, as nohup does, stays ignored. stop gives the signals back.
func interruptible(parent context.Context, exit func(status int)) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-done:
			return
		case <-signals:
			cancel(contract.ErrInterrupted)
		}
		select {
		case <-done:
		case <-signals:
			exit(contract.ExitInterrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-over
		cancel(nil)
	}
}
