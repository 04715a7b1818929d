package contract

import "context"

// CheckStatus is how one check of a doctor went.
type CheckStatus string

// The outcomes of a check.
const (
	CheckOK   CheckStatus = "ok"   // as it should be
	CheckWarn CheckStatus = "warn" // commands run, but something a setting promises is not kept
	CheckFail CheckStatus = "fail" // commands cannot run
)

// Check is one row of a doctor.
type Check struct {
	// Name says what was looked at, in a few words.
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	// Detail is what was found, one sentence.
	Detail string `json:"detail"`
	// Remedy is what to do next; empty when Status is [CheckOK].
	Remedy string `json:"remedy,omitempty"`
}

// Doctor is what a provider may offer beyond [Provider].
type Doctor interface {
	// Doctor looks at everything commands depend on and returns a row for each. It is bounded by ctx and leaves nothing behind.
	Doctor(ctx context.Context) []Check
}

// Reaper is what a provider may offer beyond [Provider].
type Reaper interface {
	// Reap removes what dead processes of a profile left behind and nobody can come back to. It returns the names of what it removed.
	Reap(ctx context.Context, profile string) ([]string, error)
}
