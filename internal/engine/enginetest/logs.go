//go:build linux

package enginetest

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// private is the mode of files that nobody in a container is to see.
const private = 0o600

// log is the file with what a container's agent said, each line with its time.
func (e *Engine) log(b *box) string { return e.path("c", short(b.id), "log") }

// stamped puts the time in front of each line, as a daemon's log driver does. One goroutine writes.
type stamped struct {
	w    io.Writer
	half []byte
}

func (s *stamped) Write(p []byte) (int, error) {
	s.half = append(s.half, p...)
	for {
		line, rest, whole := bytes.Cut(s.half, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if _, err := io.WriteString(s.w, time.Now().UTC().Format(time.RFC3339Nano)+" "+string(line)+"\n"); err != nil {
			return 0, err
		}
		s.half = bytes.Clone(rest)
	}
}

// Logs implements the provider's engine. Followed, it gives the rest when the container has ended.
func (e *Engine) Logs(ctx context.Context, id string, o engine.LogOptions, w io.Writer) error {
	if err := e.enter(ctx, OpLogs); err != nil {
		return err
	}
	e.mu.Lock()
	b, ok := e.find(id)
	if !ok {
		e.mu.Unlock()
		return notFound("reading the log of container %s: there is none", id)
	}
	file, ended := e.log(b), b.ended
	follow := o.Follow && b.running() && !b.bare
	e.mu.Unlock()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	lines := strings.SplitAfter(string(text), "\n")
	lines = lines[:len(lines)-1]
	for len(lines) > 0 && !o.Since.IsZero() {
		stamp, _, _ := strings.Cut(lines[0], " ")
		if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil && !at.Before(o.Since) {
			break
		}
		lines = lines[1:]
	}
	if o.Tail >= 0 {
		lines = lines[max(0, len(lines)-o.Tail):]
	}
	if _, err := io.WriteString(w, strings.Join(lines, "")); err != nil || !follow {
		return err
	}
	select {
	case <-ctx.Done():
		return failure(ctx.Err(), "reading the log of container %s: no answer in time", id)
	case <-ended:
	}
	all, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	_, err = w.Write(all[len(text):])
	return err
}
