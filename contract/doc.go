// Package contract is the Hermes terminal-backend contract in Go: what a provider and an environment promise, the values that
// cross that border, and the rules that decide between them.
//
// Reach for [Provider] and [Environment] first; everything else here is a value they exchange. The package does no I/O, reads no
// clock and imports the standard library alone, so every rule in it can be run from a table. A backend of your own needs only this
// package.
//
// A command's exit status is a result, never an error: see [Result]. A broken daemon, image or stream is a [BackendError].
package contract
