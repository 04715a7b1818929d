package contract

import (
	"io"
	"time"
)

// Request is one command. Exactly one of Command and Argv is set.
type Request struct {
	// Command is shell text for bash with the sandbox's lasting state: working directory, exported variables, functions and
	// aliases of earlier commands hold, and this command's changes last. It may have any length and any bytes but NUL.
	Command string
	// Argv is an exact list of words, run without a shell and without touching lasting state.
	Argv []string
	// Dir is where to run. Empty means the lasting directory for Command and the home for Argv. A leading "~" or "~/" is the
	// account's home inside the sandbox. A directory that was never reported by the sandbox and cannot be entered gives
	// [ExitNotExecutable] and does not run the command.
	Dir string
	// FallbackDir, when set, is where to run without complaint if Dir cannot be entered: see [CommandDirectory].
	FallbackDir string
	// User is a name or number with an optional ":group"; empty means the sandbox's own account. Each account has its own state.
	User string
	// Env holds variables for this command alone. They never enter lasting state, an argv, or a file.
	Env map[string]string
	// Transient names variables that never enter lasting state, even when a command exports them itself: a name, or the beginning of one
	// with "*" behind it. A host marks so what is one session's alone.
	Transient []string
	// Stdin is copied to the command until its end; nil means /dev/null. A command that does not read it to the end is no error.
	Stdin io.Reader
	// Timeout kills the command's whole tree after that long; zero means no limit.
	Timeout time.Duration
	// Stdout and Stderr receive output while the command runs; a slow writer slows the command. When Stderr is nil both share one
	// pipe in the command, so their order is exact. When Stdout is nil output is kept in [Result.Output].
	Stdout, Stderr io.Writer
	// Terminal gives Argv a pseudo-terminal instead of pipes, as docker exec -t does: Stdin is what is typed, and its end types nothing; Stdout is
	// what it shows; Stderr gets only what the backend itself has to say, such as that there is no such program. Without TERM in Env the program
	// takes it for an xterm-256color. Nil means pipes.
	Terminal *Terminal
	// MaxOutput bounds what Result.Output keeps, in bytes: a head of 40 % and a tail of 60 % with a notice between. Zero keeps
	// everything. Ignored when Stdout is set.
	MaxOutput int
}

// Terminal is the pseudo-terminal of a command.
type Terminal struct {
	// Size is what the command finds at its very first look; 0 by 0 when it is not known.
	Size TerminalSize
	// Resize brings later sizes. It may be nil; it need not be closed.
	Resize <-chan TerminalSize
}

// TerminalSize is in characters.
type TerminalSize struct{ Rows, Cols uint16 }

// Result is how a command ended.
type Result struct {
	// ExitCode is the command's own status, 128+n when signal n ended it, or one of the Exit constants.
	ExitCode int
	// Output is stdout and stderr in order, when Request.Stdout was nil. Bytes, not necessarily UTF-8.
	Output []byte
	// Dropped counts the bytes that MaxOutput left out of Output.
	Dropped int64
	// Cwd is the working directory this command left behind; empty when it reported none (killed, exec'd away, or an Argv).
	Cwd string
	// TimedOut and Interrupted say why a command was killed; at most one is true.
	TimedOut, Interrupted bool
	// Recreated is true when the container was made anew or restarted for this command: background jobs and shell state before it
	// are gone.
	Recreated bool
	// ContainerID is the engine's full id of the container that ran the command.
	ContainerID string
	// Duration is wall time from sending the command to its result.
	Duration time.Duration
}
