package contract

import (
	"path"
	"strings"
)

// The rules in this file and in placement.go are the host's: what Hermes does around a provider. A provider need not apply them; the
// conformance kit and a backend's own tests do, to know what its host will ask of it. The numbers are those of section 3 of the
// contract; the vectors in testdata run them here, in real Hermes 0.22.2 where the rule is older than the change, and in a model of
// the changed host where it is not.

// BuiltinDefault is where a host starts commands when neither the user nor the provider names a usable directory.
const BuiltinDefault = legacyDefault

// Guard is the host's check of a directory it is about to use inside a container. The zero value accepts everything.
type Guard struct {
	// Container is true for a backend with a file system of its own.
	Container bool
	// Mounted is the host directory mounted at the workspace, "" for none.
	Mounted string
	// Home is the sandbox's declared home, "" for none: see [DeclaredHome].
	Home string
}

// Rejects implements rules 2 and 5: a container has no use for a relative path, a path below /Users or /home that is not in its own
// home, a Windows drive path, or the name its mounted directory has on the host. An empty directory asks for nothing and is no fault.
func (g Guard) Rejects(dir string) bool {
	switch {
	case !g.Container || dir == "":
		return false
	case g.Mounted != "" && path.Clean(dir) == path.Clean(g.Mounted):
		return true
	case g.Home != "" && within(dir, g.Home):
		return false
	default:
		return hostShaped(dir) || strings.HasPrefix(dir, "/home/")
	}
}

// hostShaped reports a path no container can have meant: relative (a Windows path is that too) or macOS's.
func hostShaped(dir string) bool {
	return !strings.HasPrefix(dir, "/") || strings.HasPrefix(dir, "/Users/")
}

// within reports whether dir is home or below it. /home/acme2 is not below /home/acme, and neither is /home/acme/../x.
func within(dir, home string) bool {
	dir, home = path.Clean(dir), path.Clean(home)
	return dir == home || strings.HasPrefix(dir, strings.TrimSuffix(home, "/")+"/")
}

// DeclaredDefault implements rule 3: what becomes of a provider's default_cwd. value is what reading the attribute gave, which may be
// anything; err is what it raised. An absolute path inside the sandbox and exactly "~" count; everything else is as if the provider
// had declared nothing, without an error.
func DeclaredDefault(value any, err error) string {
	dir, ok := value.(string)
	switch {
	case err != nil || !ok:
		return BuiltinDefault
	case dir == HomeDirectory:
		return dir
	case hostShaped(dir):
		return BuiltinDefault
	default:
		return dir
	}
}

// DeclaredHome implements rule 5: the home a recorded directory may lie in. declared is the result of [DeclaredDefault], resolved what
// the environment answered after connecting, "" before that. A "~" that stayed literal, as with an isolated plugin, is no home.
func DeclaredHome(declared, resolved string) string {
	home := declared
	if declared == HomeDirectory {
		home = resolved
	}
	if !strings.HasPrefix(home, "/") || home == BuiltinDefault {
		return ""
	}
	return home
}

// HostStart implements rules 1, 2 and 4: the directory the host asks a new environment to start in. setting is terminal.cwd, declared the
// result of [DeclaredDefault]. "~" goes out as it is: the host's own home says nothing about the sandbox's.
func HostStart(setting, declared string, g Guard) string {
	if setting == "" || setting != declared && g.Rejects(setting) {
		return declared
	}
	return setting
}

// HostCommandDirectory implements rule 6: where one command runs. An explicit workdir wins, then what the session recorded if the guard
// accepts it, then the configured start. File tools resolve relative paths against the same answer.
func HostCommandDirectory(workdir, recorded, start string, g Guard) string {
	switch {
	case workdir != "":
		return workdir
	case recorded != "" && !g.Rejects(recorded):
		return recorded
	default:
		return start
	}
}
