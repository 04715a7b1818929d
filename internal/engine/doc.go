// Package engine is dockerbox's only way to a Docker-compatible daemon: it alone imports the Docker client.
//
// [Open] resolves which daemon to talk to exactly as the docker CLI does and does no network I/O; the first call does. Every method
// takes a context that bounds it, is safe for concurrent use, and returns [*contract.BackendError] with a next step, so callers pass
// errors on as they are. What callers need to branch on ([ErrNotFound], [ErrConflict], [ErrUnreachable]) is found with errors.Is.
package engine
