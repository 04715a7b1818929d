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

// handleQuit has restore called before the process ends by one of quits, and has it not end at all for output that nobody reads: that is an error
// like any other. leave ends that.
func handleQuit(restore func()) (leave func()) {
	signal.Ignore(syscall.SIGPIPE)
	got := make(chan os.Signal, 1)
	signal.Notify(got, quits...)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-over:
		case s := <-got:
			restore()
			signal.Reset(s)
			if number, ok := s.(syscall.Signal); ok {
				_ = syscall.Kill(os.Getpid(), number) // as if it had not been caught: Go shows what the program is doing
			}
		}
	}()
	return func() {
		signal.Stop(got)
		signal.Reset(syscall.SIGPIPE)
		close(over)
		<-ended
	}
}

// prepareConsole has nothing to do where terminals understand their own language.
func prepareConsole() {}
