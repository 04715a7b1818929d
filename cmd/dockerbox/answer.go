package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// schema is the version of every JSON shape this program prints. Fields may be added without a new one.
const schema = 1

// printJSON writes v on one line; v has a field schema.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return unwritten(err)
	}
	return nil
}

// unwritten explains an answer that its reader did not take.
func unwritten(err error) error {
	return &contract.BackendError{
		Reason: "the answer could not be written: " + cause(err), Hint: "see where standard output goes: a full disk, a device, a program that ended", Err: err,
	}
}

// say writes the answer for people.
func say(w io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(w, format, args...); err != nil {
		return unwritten(err)
	}
	return nil
}

// shortID is as much of a container id as people read.
func shortID(id string) string {
	const length = 12
	return id[:min(len(id), length)]
}
