//go:build linux

package agent

import (
	"os"
	"os/signal"
	"syscall"
)

// idle keeps a container alive until it is told to stop: the image need not have a program that sleeps.
func idle() int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	return 0
}
