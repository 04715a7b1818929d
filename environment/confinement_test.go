package environment

import (
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

func TestWhatIsNotHardenedIsRefusedWithAllThatIsMissing(t *testing.T) {
	whole := wire.Confinement{NoNewPrivileges: true, Filtered: true, ReadOnly: true}
	if err := confined("x", &whole); err != nil {
		t.Errorf("a hardened sandbox: %v", err)
	}
	for missing, change := range map[string]func(*wire.Confinement){
		"no-new-privileges does not apply":     func(c *wire.Confinement) { c.NoNewPrivileges = false },
		"system calls are not filtered":        func(c *wire.Confinement) { c.Filtered = false },
		"the root directory can be written to": func(c *wire.Confinement) { c.ReadOnly = false },
		"capabilities are left (0xa80425fb)":   func(c *wire.Confinement) { c.Capabilities = 0xa80425fb },
	} {
		c := whole
		change(&c)
		if err := confined("x", &c); err == nil || !strings.HasSuffix(err.Error(), ": "+missing) {
			t.Errorf("%s: %v", missing, err)
		}
	}
	const all = "no-new-privileges does not apply, system calls are not filtered, the root directory can be written to, capabilities are left (0x1)"
	if err := confined("x", &wire.Confinement{Capabilities: 1}); err == nil || !strings.Contains(err.Error(), all) {
		t.Errorf("all at once: %v", err)
	}
	if err := confined("x", nil); err == nil || !strings.Contains(err.Error(), "cannot be told") {
		t.Errorf("nothing known: %v", err)
	}
}
