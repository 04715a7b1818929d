// Package environment is one live sandbox seen from the host: it keeps one stream to the agent inside and runs commands over it.
//
// Start with [Connect]. The container itself is somebody else's: a [Container] says what is needed of it, so the package knows
// frames and no Docker. Nothing that arrives over the stream is trusted: lengths, sizes, ids and texts are bounded here, and an agent
// that misbehaves costs its own connection and a [*contract.BackendError], nothing else.
package environment
