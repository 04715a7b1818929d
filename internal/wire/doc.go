// Package wire is the language host and in-container agent speak over one byte stream: length-prefixed frames, multiplexed by a
// number that the host chooses per command. docs/protocol.md describes it for other implementations.
//
// Neither side trusts the other's lengths: a [Reader] has a limit and refuses a longer frame before it allocates. The package does
// no I/O of its own beyond the reader and writer it is given, and imports the standard library alone.
package wire
