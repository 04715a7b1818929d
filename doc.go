// Package dockerbox is the root of the module and holds no code: the test beside this file
// keeps the layers. Begin with package contract, which says what a sandbox is, or with
// cmd/dockerbox, which is what people run.
package dockerbox
