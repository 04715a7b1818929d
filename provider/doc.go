// Package provider makes sandboxes out of Docker containers: configuration in, a connected [contract.Environment] out.
//
// Start with [New]; the [Provider] it returns implements [contract.Provider] and finds, lists and removes sandboxes besides. What a
// container looks like is decided in one pure function, covered by golden files; everything else here carries it out and leaves nothing
// half-made behind. Creation is adopt-on-conflict: eight processes that want the same sandbox get one container.
package provider
