//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestFirstSignalInterruptsSecondExits(t *testing.T) {
	exited := make(chan int, 1)
	ctx, stop := interruptible(t.Context(), func(status int) { exited <- status })
	defer stop()
	send := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	const patience = 10 * time.Second
	send()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Fatal("the signal did not end the context")
	}
	if !errors.Is(context.Cause(ctx), contract.ErrInterrupted) || len(exited) > 0 {
		t.Fatalf("cause %v, exits %d", context.Cause(ctx), len(exited))
	}
	send()
	select {
	case status := <-exited:
		if status != contract.ExitInterrupted {
			t.Fatalf("status %d", status)
		}
	case <-time.After(patience):
		t.Fatal("the second signal did nothing")
	}
}

func TestStopGivesSignalsBack(t *testing.T) {
	ctx, stop := interruptible(t.Context(), func(int) { t.Error("exit was called") })
	stop()
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGHUP)
	defer signal.Stop(got)
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-got // and nobody exited
}
