//go:build linux

package agent

import (
	"bytes"
	"io"

	"github.com/hermes-dockerbox/dockerbox/internal/archive"
)

// maxRemoved bounds the names that remove reads, in bytes.
const maxRemoved = 16 << 20

// remove removes files below a directory of the sandbox, whose names come on stdin with a NUL behind each. One that is not there is no failure.
func remove(dir string, stdin io.Reader, stderr io.Writer) int {
	data, err := io.ReadAll(io.LimitReader(stdin, maxRemoved))
	if err != nil {
		return copied(archive.Totals{}, err, stderr)
	}
	var names []string
	for name := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte{0}), []byte{0}) {
		names = append(names, string(name))
	}
	n, err := archive.Remove(place(dir), names)
	return copied(archive.Totals{Files: n}, err, stderr)
}
