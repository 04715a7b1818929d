// Package enginetest is a container engine in memory: what package provider needs of one, without a daemon. It is for tests.
//
// A container is a directory and an agent in it: the real one, which the provider itself put into the volume, so [Engine.Start] needs a
// build that has the agents. Commands are processes of this machine, as an ordinary account where the test runs as root, and they see its
// files; only the home is the container's own. There are no limits, no networks and no capabilities.
//
// [Engine.Fail], [Engine.Before], [Engine.Down], [Engine.Pause], [Engine.Stop], [Engine.Vanish] and [Engine.CutAfter] make happen what a
// daemon does on a bad day; [Engine.Serve] is the registry that images are pulled from, as slow and as broken as a test wants it. The engine runs on Linux only.
package enginetest
