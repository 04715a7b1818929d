package engine

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// LogOptions choose lines of a container's log.
type LogOptions struct {
	// Follow goes on with lines as they come, until the container ends.
	Follow bool
	// Tail is how many lines from the end to begin with; negative for all.
	Tail int
	// Since leaves out what is older; the zero time nothing.
	Since time.Time
}

// Logs writes the log of a container to w: each line with its time in front, RFC 3339 and a blank, as the daemon keeps it. It returns at the
// log's end, or when w fails.
func (e *Engine) Logs(ctx context.Context, id string, o LogOptions, w io.Writer) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	did := "reading the log of container " + short(id)
	options := container.LogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: o.Follow, Tail: "all"}
	if o.Tail >= 0 {
		options.Tail = strconv.Itoa(o.Tail)
	}
	if !o.Since.IsZero() {
		options.Since = o.Since.UTC().Format(time.RFC3339Nano)
	}
	stream, err := e.api.ContainerLogs(ctx, id, options)
	if err != nil {
		return e.explain(did, err)
	}
	defer func() { _ = stream.Close() }() // read only: nothing to lose
	_, err = stdcopy.StdCopy(w, w, stream)
	return e.explain(did, err)
}
