//go:build linux

// Command bench measures dockerbox beside what it is to be faster than, all in one run on one machine. It asserts nothing: a missed
// target is a line in its table. Linux alone, for it reads /proc.
//
// A part is one file: a function that measures and returns rows, and a line in the list of parts.go.
package main
