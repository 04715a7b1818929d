package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// schema is the version of every JSON shape this program prints. Fields may be added without a new one.
const schema = 1

// printJSON writes v on one line; v has a field schema.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// say writes the answer for people.
func say(w io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(w, format, args...); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// shortID is as much of a container id as people read.
func shortID(id string) string {
	const length = 12
	return id[:min(len(id), length)]
}
