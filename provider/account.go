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
	home  string
	known bool // it has an entry; a number without one gets a home the agent makes, which no volume can keep
}

// lookup finds user, "name" or "uid" with an optional ":group", in the text of an /etc/passwd. ok is false for a name without an
// entry. The rules are Docker's: a number need not have one.
func lookup(passwd []byte, user string) (a account, ok bool) {
	who, _, _ := strings.Cut(user, ":")
	numeric := isID(who)
	lines := bufio.NewScanner(bytes.NewReader(passwd))
	for lines.Scan() {
		const fields, nameField, uidField, homeField = 7, 0, 2, 5
		f := strings.Split(lines.Text(), ":")
		if len(f) < fields {
			continue
		}
		if f[nameField] == who || numeric && f[uidField] == who {
			home := path.Clean(f[homeField])
			return account{home: home, known: path.IsAbs(home)}, true
		}
	}
	return account{}, numeric
}

// hasGroup returns the group that user names behind the colon and whether there is one: in the text of an /etc/group, or as a number.
func hasGroup(group []byte, user string) (name string, ok bool) {
	_, name, named := strings.Cut(user, ":")
	if !named || isID(name) {
		return name, true
	}
	for line := range bytes.Lines(group) {
		if found, _, ok := bytes.Cut(line, []byte(":")); ok && string(found) == name {
			return name, true
		}
	}
	return name, false
}

// isID reports whether s is a number that Docker takes for an account or a group.
func isID(s string) bool {
	_, err := strconv.ParseUint(s, 10, 31)
	return err == nil
}
