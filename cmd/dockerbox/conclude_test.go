package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestConclude(t *testing.T) {
	backend := &contract.BackendError{Reason: "the daemon\x1b\r\ndoes\tnot answer", Hint: "start it"}
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(contract.ErrInterrupted)
	for name, tc := range map[string]struct {
		ctx    context.Context
		err    error
		status int
		says   string
	}{
		"nothing":         {t.Context(), nil, 0, ""},
		"a status":        {t.Context(), statusError(7), 7, ""},
		"usage":           {t.Context(), &usageError{"no", ""}, 2, "dockerbox: error: no\ndockerbox: hint: dockerbox x --help shows what it takes\n"},
		"usage with hint": {t.Context(), &usageError{"no", "do"}, 2, "dockerbox: error: no\ndockerbox: hint: do\n"},
		"faults": {t.Context(), contract.Faults{{Key: "a", Problem: "b"}, {Key: "c", Problem: "d"}}, 2,
			"dockerbox: error: a: b; c: d\ndockerbox: hint: dockerbox x --help shows what it takes\n"},
		"backend":         {t.Context(), fmt.Errorf("more: %w", backend), 125, "dockerbox: error: the daemon does not answer\ndockerbox: hint: start it\n"},
		"backend no hint": {t.Context(), &contract.BackendError{Reason: "r"}, 125, "dockerbox: error: r\n"},
		"anything":        {t.Context(), errors.New("disk"), 125, "dockerbox: error: disk\ndockerbox: hint: run the command again; if it stays, report it with the output of dockerbox version\n"},
		"interrupted":     {interrupted, backend, 130, "dockerbox: interrupted\n"},
		"usage although":  {interrupted, &usageError{"no", "do"}, 2, "dockerbox: error: no\ndockerbox: hint: do\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			if status := conclude(tc.ctx, &said, "dockerbox x", tc.err); status != tc.status || said.String() != tc.says {
				t.Fatalf("status %d, said %q; want %d, %q", status, said.String(), tc.status, tc.says)
			}
		})
	}
}
