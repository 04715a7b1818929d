package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// identity is what makes two requests mean the same sandbox, and the names derived from it.
type identity struct {
	profile, name string
}

// digest separates identities whose readable names would meet: the fields are joined by a byte no name can hold.
func (i identity) digest() string {
	sum := sha256.Sum256([]byte(i.profile + "\x00" + i.name))
	return hex.EncodeToString(sum[:6])
}

// container is the container's name: readable, and unique by its digest, so p:x and p_x never meet.
func (i identity) container() string {
	return "dockerbox-" + slug(i.name) + "-" + i.digest()
}

// home is the name of the volume that keeps the home.
func (i identity) home() string { return "dockerbox-home-" + slug(i.name) + "-" + i.digest() }

// hostname stays the same when the container is made anew: browser locks in the kept home name it.
func (i identity) hostname() string { return "box-" + i.digest() }

// String is how people address the sandbox: its name, with the profile in front when there is one.
func (i identity) String() string {
	if i.profile == "" {
		return i.name
	}
	return i.profile + "/" + i.name
}

// parseIdentity reads what String writes.
func parseIdentity(s string) identity {
	if profile, name, ok := strings.Cut(s, "/"); ok {
		return identity{profile, name}
	}
	return identity{name: s}
}

// slug makes the readable part of an object name from any text: what Docker refuses becomes "_", and it stays short.
func slug(s string) string {
	const most = 32
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		default:
			return '_'
		}
	}, s)
	return clean[:min(len(clean), most)]
}
