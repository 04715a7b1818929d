// Package agent is the program that runs inside every sandbox, next to the commands it starts. A short-lived attach hands its
// stdin and stdout to one resident process per account; the resident speaks the frames of package wire over them, starts
// commands, keeps shell state between them and ends whole process trees.
//
// What a command can notice of it: descriptor 247 (where bash reports the state it leaves behind), a POSIX message queue limit
// (ulimit -q) that differs from command to command, and, only while a text sets traps, a function named trap. Names that begin
// with __dockerbox belong to the agent and never last, nor does a function named builtin or exec.
//
// Where nobody has capabilities, as in a hardened sandbox, the agent is the container's first process and runs as the sandbox's account; see
// first.go. Other accounts have a resident of their own there.
//
// The package knows nothing of Docker. It runs on Linux only and needs nothing in the image but bash, and not even that for
// commands given as words. Of root's capabilities it needs SETUID, SETGID and KILL.
package agent

// Version is what the agent says of itself in its hello. The build may set it with -ldflags -X.
var Version = "dev"
