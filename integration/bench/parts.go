//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// part is one subject of measurement. run returns an error when something could not be measured, never for a slow figure.
type part struct {
	name, what string
	run        func(context.Context, *bench) ([]row, error)
}

// parts are run in this order. A new one is a file with such a function, and a line here.
var parts = []part{
	{"true", "`true` with pauses and without", runTrue},
	{"state", "commands that change or carry shell state", runState},
	{"bulk", "64 MB of output and of input", runBulk},
	{"flood", "a command beside one that floods", runFlood},
	{"parallel", "8 commands at once", runParallel},
	{"sleep", "how late the end of a command is seen", runSleep},
	{"row", "1 000 commands in a row", runThousand},
	{"memory", "memory of serve while 1 GB flows", runMemory},
	{"create", "create to first output", runCreate},
	{"attach", "re-attach", runAttach},
	{"flat", "`true` beside jobs and files", runFlat},
	{"crowd", "`true` beside 50 sandboxes, ps over 200", runCrowd},
	{"forward", "a forwarded port", runForward},
	{"desktop", "the screen", runDesktop},
	{"program", "the executable: its size, how fast it starts", runProgram},
	{"copy", "a tree of 1 GB in and out", runCopy}, // last: it leaves much to be written and much memory to be found anew
}

// chosen are the parts that a list of names, with commas, asks for; all without one.
func chosen(all []part, list string) ([]part, error) {
	if list == "" {
		return all, nil
	}
	known := make([]string, len(all))
	for i, p := range all {
		known[i] = p.name
	}
	var wanted []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no part %q: the parts are %s", name, strings.Join(known, ", "))
		}
		wanted = append(wanted, name)
	}
	return slices.DeleteFunc(slices.Clone(all), func(p part) bool { return !slices.Contains(wanted, p.name) }), nil
}
