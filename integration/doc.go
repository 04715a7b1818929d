// Package integration holds the tests that need a Docker daemon, the sandbox image or a
// real Hermes; all of them stand behind the build tag "integration". `make integration`
// builds what they expect and runs them.
package integration
