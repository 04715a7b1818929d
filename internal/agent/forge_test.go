//go:build linux

package agent

import (
	"testing"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// A command can write to the descriptor on which its shell reports. What it writes must not cost the connection, pass for a fault of the
// sandbox, or become a directory that cannot be.
func TestForgedReportsAreDoubted(t *testing.T) {
	const long = `$(head -c 3000000 /dev/zero | tr '\0' a)`
	for name, tc := range map[string]struct {
		text string
		code int
		sig  int
	}{
		"endless directory":  {text: `printf 'state\0/%s\n\0/x\0\0\0\0\0end\0' "` + long + `" >&247; kill -9 $$`, sig: 9},
		"fault of the agent": {text: `printf 'failed\0internal\0out of order\0' >&247; exit 4`, code: 4},
		"endless refusal":    {text: `printf 'refused\0%s\0' "` + long + `" >&247; exit 5`, code: 5},
		"refusal":            {text: `printf 'refused\0no\0' >&247; exec bash -c 'exit 0'`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newWorld(t).connect(t)
			a := c.sh(tc.text)
			if a.exit.Reason != "" || a.exit.Code != tc.code || a.exit.Signal != tc.sig || len(a.exit.Cwd) > 4096 {
				t.Errorf("reason %q, status %d, signal %d, a directory of %d bytes", a.exit.Reason, a.exit.Code, a.exit.Signal, len(a.exit.Cwd))
			}
			c.sh("echo still here").want("still here\n", 0)
		})
	}
	// Even where it is believed it is short.
	c := newWorld(t).connect(t)
	a := c.sh(`printf 'refused\0%s\0' "` + long + `" >&247; exec bash -c 'exit 126'`)
	if len(a.exit.Text) > maxText || a.exit.Reason != wire.ReasonDirectory {
		t.Errorf("reason %q with %d bytes, status %d", a.exit.Reason, len(a.exit.Text), a.exit.Code)
	}
	c.sh("echo still here").want("still here\n", 0)
}
