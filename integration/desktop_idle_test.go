//go:build integration && idle

package integration

import (
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Row 48: a display server blanks its screen after 10 minutes without a key, unless it is told not to. `make test-all` waits for it.
func TestScreenAfterElevenIdleMinutes(t *testing.T) {
	env := desktopSandbox(t, func(c *contract.Config) { c.Network = "none" })
	f := screenBox{env: env, name: env.Info().Name}
	f.start(t)
	before := colours(f.picture(t, "before-idle"))
	const idle = 11 * time.Minute
	select {
	case <-time.After(idle):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	after := f.picture(t, "after-idle")
	panelDrawn(t, after)
	if n := colours(after); n < before/2 {
		t.Errorf("%d colours are left of %d", n, before)
	}
}
