package contract

import (
	"fmt"
	"strings"
)

// Place is where Bot Desktop runs.
type Place string

// The places.
const (
	PlaceGateway Place = "gateway"  // the machine the gateway runs on
	PlaceSandbox Place = "terminal" // inside the terminal backend
	PlaceRefused Place = "refused"  // nowhere; Placement.Reason says why
)

// Backend is what the host knows of a terminal backend when it decides about the screen.
type Backend struct {
	// Name is the value of terminal.backend.
	Name string
	// Streams is true when the backend offers exec_prefix.
	Streams bool
	// Isolated is true when plugins.isolation keeps the backend's plugin out of the host's process, so that the host holds a
	// placeholder which cannot hand out streams.
	Isolated bool
}

// localBackend is the terminal on the gateway's own machine.
const localBackend = "local"

// Placement is the answer of [Resolve]. Reason is a sentence, set when Where is PlaceRefused.
type Placement struct {
	Where  Place
	Reason string
}

// Resolve implements rules 7 and 8: where bot_desktop.placement puts the screen. An unknown setting counts as "auto". A refusal names the
// backend and the setting that would change it: a screen on the gateway host beside a sandboxed terminal would leave the sandbox the
// user chose, so that must be asked for.
func Resolve(setting string, b Backend) Placement {
	switch {
	case b.Name == localBackend:
		return Placement{Where: PlaceGateway}
	case strings.EqualFold(strings.TrimSpace(setting), string(PlaceGateway)):
		return Placement{Where: PlaceGateway}
	case b.Streams && !b.Isolated:
		return Placement{Where: PlaceSandbox}
	case b.Streams:
		return Placement{PlaceRefused, fmt.Sprintf(
			"the %s backend can host a screen, but plugins.isolation: host keeps its plugin out of this process; use plugins.isolation: in_process, or bot_desktop.placement: gateway to have the screen outside the sandbox",
			b.Name)}
	default:
		return Placement{PlaceRefused, fmt.Sprintf(
			"the %s backend cannot host a screen; bot_desktop.placement: gateway would put it on the gateway host, outside the sandbox",
			b.Name)}
	}
}
