package environment

import (
	"io"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// sink is where a command's output goes: the request's writers, or a capture. One goroutine uses it.
type sink struct {
	stdout, stderr io.Writer // nil stdout: captured
	kept           capture
}

func newSink(req contract.Request) *sink {
	return &sink{stdout: req.Stdout, stderr: req.Stderr, kept: capture{limit: req.MaxOutput}}
}

func (s *sink) write(pieces []piece) error {
	for _, p := range pieces {
		switch {
		case p.kind == wire.TypeErrors && s.stderr != nil:
			if _, err := s.stderr.Write(p.data); err != nil {
				return err
			}
		case s.stdout != nil:
			if _, err := s.stdout.Write(p.data); err != nil {
				return err
			}
		default:
			s.kept.write(p.data)
		}
	}
	return nil
}

// complain adds a line of dockerbox's own where the command's stderr would have gone.
func (s *sink) complain(line string) error {
	return s.write([]piece{{wire.TypeErrors, []byte(line)}})
}

func (s *sink) captured() ([]byte, int64) {
	if s.stdout != nil {
		return nil, 0
	}
	return s.kept.bytes(), s.kept.dropped
}
