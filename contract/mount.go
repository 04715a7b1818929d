package contract

import (
	"path"
	"regexp"
	"strings"
)

// Mount is one entry of [Config.Mounts]. As text, in JSON too, it is docker's SOURCE:TARGET, with ":ro" behind it when it is read-only.
type Mount struct {
	// Source is an absolute path on the daemon's host, one that begins with "~/" (the home of whoever runs dockerbox), or the name of a
	// volume, which is made when there is none.
	Source string
	// Target is an absolute path in the sandbox.
	Target string
	// ReadOnly keeps the sandbox from changing it.
	ReadOnly bool
}

var (
	volumePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]+$`)
	drivePattern  = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
)

// IsHostPath reports whether the source is a path on the host rather than a volume.
func (m Mount) IsHostPath() bool {
	return strings.HasPrefix(m.Source, "/") || m.Source == "~" || strings.HasPrefix(m.Source, "~/") || drivePattern.MatchString(m.Source)
}

// String writes m as ParseMount reads it.
func (m Mount) String() string {
	text := m.Source
	if m.Target != "" {
		text += ":" + m.Target
	}
	if m.ReadOnly {
		text += ":ro"
	}
	return text
}

// ParseMount reads SOURCE:TARGET[:OPTIONS]. It never fails: what is wrong with the parts is found by [Config.Validate], together with
// everything else. An option that is neither "ro" nor "rw" stays part of the target, where it is found.
func ParseMount(text string) Mount {
	text = strings.TrimSpace(text)
	from := 0
	if drivePattern.MatchString(text) {
		from = len("C:")
	}
	at := strings.IndexByte(text[from:], ':')
	if at < 0 {
		return Mount{Source: text}
	}
	m := Mount{Source: text[:from+at], Target: text[from+at+1:]}
	for _, option := range []string{":ro", ":rw"} {
		if target, found := strings.CutSuffix(m.Target, option); found {
			m.Target, m.ReadOnly = target, option == ":ro"
			break
		}
	}
	if path.IsAbs(m.Target) {
		m.Target = path.Clean(m.Target)
	}
	return m
}

// MarshalText implements [encoding.TextMarshaler].
func (m Mount) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]; see [ParseMount].
func (m *Mount) UnmarshalText(text []byte) error {
	*m = ParseMount(string(text))
	return nil
}

// taken are targets that the kernel or dockerbox itself fills; what lies below them too.
var taken = []string{"/proc", "/sys", "/dev", "/.dockerbox"}

// problem says what is wrong with m, "" when nothing is.
func (m Mount) problem() string {
	target, option, found := strings.Cut(m.Target, ":")
	switch {
	case m.Target == "" && drivePattern.MatchString(m.Source):
		return "that is a path on a Windows drive, which needs :TARGET behind it; a volume's name has two or more characters"
	case m.Target == "":
		return "must be SOURCE:TARGET, with :ro behind it to keep it from being changed"
	case found && (option == "z" || option == "Z" || strings.HasSuffix(option, ",z") || strings.HasSuffix(option, ",Z")):
		return "dockerbox does not change SELinux labels; chcon -Rt container_file_t on the source does"
	case found && path.IsAbs(option):
		return "a path with a colon in it cannot be mounted, but a symbolic link to it can"
	case found:
		return "the options there are, ro and rw, do not include " + quoteShort(option)
	case !path.IsAbs(target):
		return "the target must be an absolute path in the sandbox"
	case target == "/":
		return "the target must not be the sandbox's root"
	case !m.IsHostPath() && strings.ContainsAny(m.Source, `/\~`):
		return "the source must be an absolute path, one below ~/, or the name of a volume"
	case !m.IsHostPath() && !volumePattern.MatchString(m.Source):
		return "the source must be an absolute path or the name of a volume: two or more letters, digits, \"_\", \".\" or \"-\""
	case strings.ContainsRune(m.Source, 0) || strings.ContainsRune(target, 0):
		return "a path cannot hold a zero byte"
	}
	for _, dir := range taken {
		if target == dir || strings.HasPrefix(target, dir+"/") {
			return "the target must not be in " + dir
		}
	}
	return ""
}
