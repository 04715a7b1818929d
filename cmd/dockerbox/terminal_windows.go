package main

import (
	"time"

	"github.com/moby/term"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// look is how often the size of a console is asked for: there is no signal for its changes.
const look = 250 * time.Millisecond

// watchSize gives the size whenever it changes, the last one to whoever comes late. stop ends that.
func watchSize(size func() (contract.TerminalSize, bool)) (sizes <-chan contract.TerminalSize, stop func()) {
	last := make(newest, 1)
	over, ended := make(chan struct{}), make(chan struct{})
	before, _ := size()
	go func() {
		defer close(ended)
		tick := time.NewTicker(look)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				if s, ok := size(); ok && s != before {
					before = s
					last.give(s)
				}
			}
		}
	}()
	return last, func() {
		close(over)
		<-ended
	}
}

// handleQuit has nothing to do: what ends a program without a word to it cannot be caught here.
func handleQuit(func()) (leave func()) { return func() {} }

// prepareConsole finds out whether the console understands the language of terminals, which decides how keys are asked for.
func prepareConsole() { _, _, _ = term.StdStreams() }
