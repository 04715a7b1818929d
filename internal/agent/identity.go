//go:build linux

package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// identity is an account as the container's files have it at the moment.
type identity struct {
	name     string
	uid, gid int
	groups   []int // supplementary
	home     string
	shell    string
}

func (id identity) equal(o identity) bool {
	return id.name == o.name && id.uid == o.uid && id.gid == o.gid && id.home == o.home && id.shell == o.shell && slices.Equal(id.groups, o.groups)
}

func (id identity) wire() *wire.Account {
	return &wire.Account{Name: id.name, UID: id.uid, GID: id.gid, Home: id.home}
}

// refusal is a failure with one of the wire's reasons.
type refusal struct{ reason, text string }

func (r *refusal) Error() string { return r.text }

func noUser(format string, args ...any) error {
	return &refusal{wire.ReasonUser, fmt.Sprintf(format, args...)}
}

func anotherAccount(format string, args ...any) error {
	return &refusal{wire.ReasonAccount, fmt.Sprintf(format, args...)}
}

// files are where accounts are looked up; fields so that tests bring their own.
type files struct {
	passwd, group string
	// everybody are groups that each account is in besides those of the files.
	everybody []int
	// homes are directories in which a number without an entry gets a home.
	homes []string
	// profile is the system's login script.
	profile string
}

var systemFiles = files{passwd: "/etc/passwd", group: "/etc/group", homes: []string{"/tmp", "/var/tmp", "/dev/shm"}, profile: "/etc/profile"}

// maxID is the largest user or group number, as in docker.
const maxID = 1<<31 - 1

// resolve finds user, "name" or "number" with an optional ":group", by docker's rules: the first matching entry wins, a number need
// not have one, an explicit group replaces the supplementary ones. imageHome is the environment's HOME, which counts only when it
// is a directory of that very user. Reads the files anew each time, because commands add accounts.
func (f files) resolve(user, imageHome string) (identity, error) {
	who, group, explicit := strings.Cut(user, ":")
	number, err := strconv.Atoi(who)
	numeric := err == nil && number >= 0
	var id identity
	found := false
	err = eachEntry(f.passwd, 7, func(e []string) bool {
		uid, uidErr := strconv.Atoi(e[2])
		gid, gidErr := strconv.Atoi(e[3])
		if uidErr != nil || gidErr != nil || e[0] != who && (!numeric || uid != number) {
			return false
		}
		id = identity{name: e[0], uid: uid, gid: gid, home: e[5], shell: e[6]}
		found = true
		return true
	})
	switch {
	case err != nil:
		return id, err
	case !found && !numeric:
		return id, noUser("the sandbox has no user %q", who)
	case !found:
		id = identity{name: strconv.Itoa(number), uid: number}
	}
	if explicit {
		id.gid, err = f.groupNumber(group)
	} else {
		id.groups, err = f.groupsOf(id.name)
	}
	if err != nil {
		return id, err
	}
	for _, gid := range f.everybody {
		if gid != id.gid && !slices.Contains(id.groups, gid) {
			id.groups = append(id.groups, gid)
		}
	}
	if id.uid < 0 || id.gid < 0 || id.uid > maxID || id.gid > maxID {
		return id, noUser("user or group number in %q is above %d", user, maxID)
	}
	if self := os.Geteuid(); !canSwitch() && (id.uid != self || id.gid != os.Getegid()) {
		return id, anotherAccount("the agent runs as user %d, group %d and cannot become user %d, group %d: that takes root with the capabilities SETUID and SETGID", self, os.Getegid(), id.uid, id.gid)
	}
	switch {
	case ownsHome(imageHome, id.uid):
		id.home = imageHome
	case !found:
		id.home, err = f.makeHome(id)
	case !path.IsAbs(id.home):
		id.home = "/"
	}
	return id, err
}

func ownsHome(dir string, uid int) bool {
	var st unix.Stat_t
	return path.IsAbs(dir) && dir != "/" && unix.Stat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == uid
}

func (f files) groupNumber(group string) (int, error) {
	number, err := strconv.Atoi(group)
	numeric := err == nil && number >= 0
	gid, found := number, numeric
	err = eachEntry(f.group, 3, func(e []string) bool {
		n, err := strconv.Atoi(e[2])
		if err != nil || e[0] != group && (!numeric || n != number) {
			return false
		}
		gid, found = n, true
		return true
	})
	if err == nil && !found {
		err = noUser("the sandbox has no group %q", group)
	}
	return gid, err
}

func (f files) groupsOf(name string) ([]int, error) {
	var gids []int
	err := eachEntry(f.group, 4, func(e []string) bool {
		if gid, err := strconv.Atoi(e[2]); err == nil && gid >= 0 && gid <= maxID && slices.Contains(strings.Split(e[3], ","), name) {
			gids = append(gids, gid)
		}
		return false
	})
	return gids, err
}

// eachEntry calls f for lines of at least n fields until it returns true. A file that is not there has none.
func eachEntry(file string, n int, f func([]string) bool) error {
	r, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // a group's line lists all its members
	for lines.Scan() {
		if e := strings.Split(lines.Text(), ":"); len(e) >= n && f(e) {
			return nil
		}
	}
	return lines.Err()
}

// temp is the first of the places that lets any account make files in it; the first of all when none does.
func (f files) temp() string {
	const othersMay = 0o003 // write and search
	for _, place := range f.homes {
		if st, err := os.Stat(place); err == nil && st.IsDir() && st.Mode().Perm()&othersMay == othersMay {
			return place
		}
	}
	return f.homes[0]
}

// makeHome gives an account without an entry a directory of its own: home-UID, mode 0700, in the first place that takes it. Everybody
// may write there, so what is found under that name counts only if it is a directory, no link, of that user; else the next name
// is tried. Nobody can exchange it afterwards: the place is sticky.
func (f files) makeHome(id identity) (string, error) {
	const names = 10
	failure := error(nil)
	for _, place := range f.homes {
		for i := range names {
			dir := place + "/home-" + strconv.Itoa(id.uid)
			if i > 0 {
				dir += "." + strconv.Itoa(i)
			}
			err := asUser(id.uid, id.gid, func() error { return ownDirectory(dir, id.uid) })
			if err == nil {
				return dir, nil
			}
			failure = err
			if !errors.Is(err, errForeign) {
				break // the place does not take it
			}
		}
	}
	return "", fmt.Errorf("make a home for user %d: %w", id.uid, failure)
}

var errForeign = errors.New("belongs to another account")

func ownDirectory(dir string, uid int) error {
	const private = 0o700
	err := unix.Mkdir(dir, private)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != uid {
		return fmt.Errorf("%s %w", dir, errForeign)
	}
	if st.Mode&0o7777 == private {
		return nil
	}
	return unix.Chmod(dir, private) // a umask, or the account itself, opened or closed it
}
