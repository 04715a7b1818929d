package provider

import (
	"bufio"
	"bytes"
	"path"
	"strconv"
	"strings"
)

// account is a user as the image's own /etc/passwd knows it.
type account struct {
	uid, gid int
	home     string // empty when there is no entry, or none that can be a home: see homely
}

// lookup finds user, "name" or "uid" with an optional ":group", in the text of an /etc/passwd. ok is false for a name without an
// entry. The rules are Docker's: a number need not have one, and is then in group 0.
func lookup(passwd []byte, user string) (a account, ok bool) {
	who, _, _ := strings.Cut(user, ":")
	number, numeric := parseID(who)
	lines := bufio.NewScanner(bytes.NewReader(passwd))
	for lines.Scan() {
		const fields, nameField, uidField, gidField, homeField = 7, 0, 2, 3, 5
		f := strings.Split(lines.Text(), ":")
		if len(f) < fields || f[nameField] != who && (!numeric || f[uidField] != who) {
			continue
		}
		uid, uidOK := parseID(f[uidField])
		gid, gidOK := parseID(f[gidField])
		if !uidOK || !gidOK {
			continue
		}
		a := account{uid: uid, gid: gid}
		if home := path.Clean(f[homeField]); homely(home) {
			a.home = home
		}
		return a, true
	}
	return account{uid: number}, numeric
}

// homely reports whether a volume at dir does no harm. Accounts of services have homes such as /, /bin or /dev, where it would hide the
// image.
func homely(dir string) bool {
	if !path.IsAbs(dir) || dir == "/" {
		return false
	}
	for _, system := range []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", agentDir} {
		if dir == system || strings.HasPrefix(dir, system+"/") {
			return false
		}
	}
	return true
}

// groupOf returns the group that user names behind the colon, in the text of an /etc/group or as a number, and usual when it names
// none. ok is false for a name that the image does not have.
func groupOf(group []byte, user string, usual int) (gid int, ok bool) {
	_, name, named := strings.Cut(user, ":")
	if !named {
		return usual, true
	}
	if gid, ok := parseID(name); ok {
		return gid, true
	}
	for line := range bytes.Lines(group) {
		const fields, nameField, gidField = 3, 0, 2
		f := strings.Split(string(bytes.TrimSpace(line)), ":")
		if len(f) < fields || f[nameField] != name {
			continue
		}
		if gid, ok := parseID(f[gidField]); ok {
			return gid, true
		}
	}
	return 0, false
}

// parseID reads a number that Docker takes for an account or a group.
func parseID(s string) (id int, ok bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, false
	}
	return int(n), true
}
