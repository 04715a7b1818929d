package provider

import "time"

// SetOrphanIdle replaces how long a running sandbox must have gone unused for the reaper: the agent's clock cannot be turned on.
func (p *Provider) SetOrphanIdle(d time.Duration) { p.orphanIdle = d }
