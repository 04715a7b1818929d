// Package rpc carries the contract between two processes: JSON-RPC 2.0, one message per line, as docs/protocol.md section 1 says.
//
// [Server] puts any [contract.Provider] behind a reader and a writer. [Client] is the other end and is itself a
// [contract.Provider], so whatever is true of a provider can be asked of a served one. The package knows no Docker.
package rpc
