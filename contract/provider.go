package contract

import (
	"context"
	"io"
)

// Provider makes sandboxes. Implementations are safe for concurrent use.
type Provider interface {
	// Name is the value of terminal.backend that selects this provider. No I/O.
	Name() string
	// DefaultCwd is an absolute path inside the sandbox, or "~" for each sandbox's own home. The host reads it on every command,
	// so it does no I/O.
	DefaultCwd() string
	// SupportsStreams reports whether environments offer [Environment.ExecPrefix]. No I/O.
	SupportsStreams() bool
	// Probe looks at the backend for a status display. It is bounded by ctx, never panics and starts nothing.
	Probe(ctx context.Context) Health
	// CreateEnvironment makes the sandbox that cfg names, or takes the living one of that name, and connects to it. ctx bounds the
	// creation only, not the life of the environment. cwd is the start directory as the host gave it; [StartDirectory] decides what
	// becomes of it. Errors are [Faults] for a bad cfg and [*BackendError] for everything else; nothing half-made stays behind.
	CreateEnvironment(ctx context.Context, cfg Config, cwd string) (Environment, error)
}

// Environment is one live sandbox. Implementations are safe for concurrent use; concurrent commands merge their state changes.
type Environment interface {
	// Info describes the sandbox. No I/O; the values are those of the last (re)connection.
	Info() Info
	// Execute runs one command and waits for it. ctx bounds the command: when it ends, the whole process tree inside is killed
	// before Execute returns, with [ExitTimedOut] if its cause is [ErrTimedOut] and [ExitInterrupted] otherwise. A status other than
	// zero is not an error. Errors are [*BackendError].
	Execute(ctx context.Context, req Request) (Result, error)
	// ExecPrefix returns the local argv that runs the words after it inside the sandbox, as user ("" = the sandbox's own account).
	// interactive keeps standard input open. A [*BackendError] tells why there is none.
	ExecPrefix(ctx context.Context, user string, interactive bool) ([]string, error)
	// FetchFile copies a regular file out of the sandbox, byte by byte. It writes at most maxBytes (0 = no limit) to w and fails
	// with [ErrTooLarge] when the file has more; other failures about the file itself are [*FileError].
	FetchFile(ctx context.Context, path string, w io.Writer, maxBytes int64) error
	// Realpath resolves links the way readlink -f does: the last component may be missing. [*FileError] when it cannot.
	Realpath(ctx context.Context, path string) (string, error)
	// Cleanup lets go of the sandbox. Persistent sandboxes keep running; others, and any when remove is set, are removed. The home of
	// a persistent one is the user's and stays in its volume either way. Idempotent.
	Cleanup(ctx context.Context, remove bool) error
}

// Info describes a live sandbox.
type Info struct {
	// Name is the sandbox's name, ContainerID the engine's full id, Image the reference it was made from.
	Name, ContainerID, Image string
	// User is the account commands run as by default ("pn", "0", "1000:1000"); Home its home directory as the container itself
	// answered after connecting, absolute.
	User, Home string
	// Cwd is where the first command starts.
	Cwd string
	// TempDir is an absolute directory any account may write to.
	TempDir string
	// Created is true when this call made the container rather than finding it.
	Created bool
	// ForwardEnv names the variables of [Config.ForwardEnv]: a caller adds the values it has to the [Request.Env] of each command.
	ForwardEnv []string
	// Mounts are those the sandbox has, whatever this call asked for.
	Mounts []Mount
	// Warnings are sentences the user should see once, such as a setting that cannot be honoured here.
	Warnings []string
}

// HealthStatus is one of the three words Hermes's status displays know.
type HealthStatus string

// The statuses of a backend.
const (
	Ready       HealthStatus = "ready"       // commands can run now
	NeedsSetup  HealthStatus = "needs_setup" // the user has a step to take
	Unavailable HealthStatus = "unavailable" // set up, but not working at the moment
)

// Health is the answer to a probe. Detail is one sentence; Hint the next step, empty when Ready.
type Health struct {
	Status HealthStatus `json:"status"`
	Detail string       `json:"detail"`
	Hint   string       `json:"hint,omitempty"`
}
