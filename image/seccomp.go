package image

import (
	"bytes"
	_ "embed" // of the profile
	"encoding/json"
	"sync"
)

// seccompProfile is Docker's own profile and the three rules of seccomp_linux_test.go, which writes the file.
//
//go:embed seccomp.json
var seccompProfile []byte

// Seccomp returns the profile of a sandbox's system calls on one line of JSON, as a daemon takes it in SecurityOpt "seccomp=…": what
// Docker allows anyway, and what Chromium's own sandbox needs on top of it. Safe for concurrent use; does no I/O.
var Seccomp = sync.OnceValue(func() string {
	var line bytes.Buffer
	if err := json.Compact(&line, seccompProfile); err != nil { // a test decodes the file
		panic(err)
	}
	return line.String()
})
