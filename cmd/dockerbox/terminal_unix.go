//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// watchSize gives the size whenever it changes, the last one to whoever comes late. stop ends that.
func watchSize(size func() (contract.TerminalSize, bool)) (sizes <-chan contract.TerminalSize, stop func()) {
	changed := make(chan os.Signal, 1) // one that is not handled yet says all that another would
	signal.Notify(changed, syscall.SIGWINCH)
	last := make(newest, 1)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case <-changed:
				if s, ok := size(); ok {
					last.give(s)
				}
			}
		}
	}()
	return last, func() {
		signal.Stop(changed)
		close(over)
		<-ended
	}
}

// quits are the signals on which Go ends a program by itself, without a word to it, and that others send.
var quits = []os.Signal{syscall.SIGQUIT, syscall.SIGABRT}

// handleQuit has restore called before the process ends by one of quits, and not end at all for output that nobody reads: that is an error like
// any other.
func handleQuit(restore func()) {
	signal.Ignore(syscall.SIGPIPE)
	got := make(chan os.Signal, 1)
	signal.Notify(got, quits...)
	go func() { // sleeps until the process ends if none comes
		s, ok := (<-got).(syscall.Signal)
		if !ok {
			return
		}
		restore()
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s) // as if it had not been caught: Go shows what the program is doing
	}()
}

// leaveQuit undoes handleQuit.
func leaveQuit() { signal.Reset(append([]os.Signal{syscall.SIGPIPE}, quits...)...) }

// prepareConsole has nothing to do where terminals understand their own language.
func prepareConsole() {}
