//go:build linux

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// accountFiles makes passwd and group files. Resolving other accounts than one's own needs root, and then only the lookup is tried.
func accountFiles(t *testing.T) files {
	t.Helper()
	dir := openDir(t)
	f := files{passwd: dir + "/passwd", group: dir + "/group", homes: []string{dir + "/homes"}}
	must(t, os.WriteFile(f.passwd, []byte("root:x:0:0::/root:/bin/sh\nbroken line\nbad:x:uid:gid::/:/\npn:x:1000:1000::/home/pn:/bin/bash\nagain:x:1000:50::/other:\n7:x:1007:1007::/seven:\nodd:x:1008:1008::relative:/bin/sh\nbig:x:4294967295:0::/:\n"), 0o644))
	must(t, os.WriteFile(f.group, []byte("root:x:0:\nsudo:x:27:pn,odd\nvideo:x:44:other,pn\nstaff:x:50:\nbad:x:x:pn\n60:x:61:\n"), 0o644))
	must(t, os.Mkdir(f.homes[0], 0o777))
	must(t, os.Chmod(f.homes[0], 0o777|os.ModeSticky))
	return f
}

func TestTempIsThePlaceThatLetsAnyAccountIn(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"closed": 0o755, "drop": 0o772, "open": 0o777 | os.ModeSticky, "also": 0o777} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		must(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.Chmod(filepath.Join(dir, "file"), 0o777))
	must(t, os.Symlink("open", filepath.Join(dir, "link")))
	for places, want := range map[string]string{
		"open also": "open", "closed drop file none open also": "open", "closed link": "link", "none closed": "none",
	} {
		f := files{}
		for _, place := range strings.Fields(places) {
			f.homes = append(f.homes, filepath.Join(dir, place))
		}
		if got := filepath.Base(f.temp()); got != want {
			t.Errorf("of %s it is %s, want %s", places, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	if os.Geteuid() != 0 {
		testResolveAsOthers(t)
		return
	}
	f := accountFiles(t)
	for user, want := range map[string]identity{
		"pn":       {name: "pn", uid: 1000, gid: 1000, groups: []int{27, 44}, home: "/home/pn", shell: "/bin/bash"},
		"1000":     {name: "pn", uid: 1000, gid: 1000, groups: []int{27, 44}, home: "/home/pn", shell: "/bin/bash"}, // the first entry wins
		"again":    {name: "again", uid: 1000, gid: 50, home: "/other"},
		"7":        {name: "7", uid: 1007, gid: 1007, home: "/seven"}, // a name of digits is a name
		"pn:staff": {name: "pn", uid: 1000, gid: 50, home: "/home/pn", shell: "/bin/bash"},
		"pn:27":    {name: "pn", uid: 1000, gid: 27, home: "/home/pn", shell: "/bin/bash"},
		"pn:60":    {name: "pn", uid: 1000, gid: 61, home: "/home/pn", shell: "/bin/bash"},
		"pn:9999":  {name: "pn", uid: 1000, gid: 9999, home: "/home/pn", shell: "/bin/bash"},
		"root":     {name: "root", home: "/root", shell: "/bin/sh"},
		"odd":      {name: "odd", uid: 1008, gid: 1008, groups: []int{27}, home: "/", shell: "/bin/sh"},
		"4242":     {name: "4242", uid: 4242, home: f.homes[0] + "/home-4242"},
		"4243:27":  {name: "4243", uid: 4243, gid: 27, home: f.homes[0] + "/home-4243"},
	} {
		if got, err := f.resolve(user, "/nowhere"); err != nil || !got.equal(want) {
			t.Errorf("%s: got %+v, %v; want %+v", user, got, err, want)
		}
	}
	for user, why := range map[string]string{
		"nosuch": `no user "nosuch"`, "pn:nosuch": `no group "nosuch"`, "": "no user", ":27": "no user", "-1": "no user", "pn:": "no group",
		"big": "above", "2147483648": "above", "99999999999999999999": "no user", "0:4294967295": "above", "pn:-1": "no group",
	} {
		_, err := f.resolve(user, "")
		var r *refusal
		if !errors.As(err, &r) || r.reason != wire.ReasonUser || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want one with %q", user, err, why)
		}
	}
}

// The container's own groups are every account's, beside those of the files and with an explicit group, each once.
func TestGroupsOfTheContainer(t *testing.T) {
	f := accountFiles(t)
	f.everybody = []int{44, 7, 50}
	self := strconv.Itoa(os.Geteuid()) + ":" + strconv.Itoa(os.Getegid())
	for user, want := range map[string][]int{"pn": {27, 44, 7, 50}, "pn:staff": {44, 7}, "4242": {44, 7, 50}, self: {44, 7, 50}} {
		if os.Geteuid() != 0 && user != self {
			continue // it serves its own account alone
		}
		if got, err := f.resolve(user, "/nowhere"); err != nil || !slices.Equal(got.groups, want) {
			t.Errorf("%s: %v, %v; want %v", user, got.groups, err, want)
		}
	}
}

// An agent that is not root serves its own account alone.
func testResolveAsOthers(t *testing.T) {
	f := accountFiles(t)
	self := strconv.Itoa(os.Geteuid()) + ":" + strconv.Itoa(os.Getegid())
	if id, err := f.resolve(self, ""); err != nil || id.uid != os.Geteuid() {
		t.Errorf("%s: %+v, %v", self, id, err)
	}
	for _, user := range []string{"root", "0", strconv.Itoa(os.Geteuid() + 1)} {
		var r *refusal
		if _, err := f.resolve(user, ""); !errors.As(err, &r) || r.reason != wire.ReasonUser || !strings.Contains(r.text, "cannot become") {
			t.Errorf("%s: %v", user, err)
		}
	}
}

// The image's HOME counts when it is a directory of that very user, and passwd otherwise.
func TestImageHome(t *testing.T) {
	w := newWorld(t)
	for home, want := range map[string]string{
		"/nowhere": w.home, "/": w.home, "": w.home, "relative": w.home, w.path("passwd"): w.home, w.path("theirs"): w.path("theirs"),
	} {
		if home == w.path("theirs") {
			must(t, os.Mkdir(home, 0o755))
			must(t, os.Chown(home, w.uid, -1))
		}
		if id, err := w.agent.files.resolve(w.user, home); err != nil || id.home != want {
			t.Errorf("HOME=%s: home %s, %v", home, id.home, err)
		}
	}
	if os.Geteuid() == 0 { // root's
		if id, err := w.agent.files.resolve(w.user, w.dir); err != nil || id.home != w.home {
			t.Errorf("another's directory: home %s, %v", id.home, err)
		}
	}
}

// The place is open to everybody, so others may have been there first.
func TestHomeOfANumberCannotBeTakenOver(t *testing.T) {
	f := accountFiles(t)
	uid, gid := 4242, 4242
	if os.Geteuid() != 0 {
		uid, gid = os.Geteuid(), os.Getegid()
	}
	id := identity{name: "x", uid: uid, gid: gid}
	place := f.homes[0] + "/home-" + strconv.Itoa(uid)
	trap := filepath.Join(openDir(t), "trap")
	must(t, os.Mkdir(trap, 0o777))
	must(t, os.Symlink(trap, place))
	if os.Geteuid() == 0 {
		must(t, os.Mkdir(place+".1", 0o777)) // root's
	} else {
		must(t, os.Symlink("/nowhere", place+".1"))
	}
	must(t, os.WriteFile(place+".2", nil, 0o666))
	got, err := f.makeHome(id)
	if err != nil || got != place+".3" {
		t.Fatalf("got %q, %v", got, err)
	}
	var st unix.Stat_t
	must(t, unix.Lstat(got, &st))
	if int(st.Uid) != uid || st.Mode != unix.S_IFDIR|0o700 {
		t.Errorf("owner %d, mode %o", st.Uid, st.Mode)
	}
	must(t, os.Chmod(got, 0o777))
	if again, err := f.makeHome(id); err != nil || again != got {
		t.Errorf("again: %q, %v", again, err)
	}
	must(t, unix.Lstat(got, &st))
	if st.Mode&0o777 != 0o700 {
		t.Errorf("mode %o was not closed again", st.Mode)
	}
	if list, err := os.ReadDir(trap); err != nil || len(list) > 0 {
		t.Errorf("something was made behind the link: %v, %v", list, err)
	}
	f.homes = []string{"/proc", f.homes[0]}
	if again, err := f.makeHome(id); err != nil || again != got {
		t.Errorf("a place that takes nothing: %q, %v", again, err)
	}
	f.homes = []string{"/proc"}
	if home, err := f.makeHome(id); err == nil {
		t.Errorf("no place at all gave %q", home)
	}
}

func TestAccounts(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	a := c.query(wire.Query{Op: wire.OpAccount})
	if a.Account == nil || a.Account.Name != testUser || a.Account.UID != w.uid || a.Account.Home != w.home {
		t.Errorf("default account: %+v", a)
	}
	if a := c.query(wire.Query{Op: wire.OpAccount, User: "nosuch"}); a.Account != nil || a.Reason != wire.ReasonUser || !strings.Contains(a.Error, "nosuch") {
		t.Errorf("unknown user: %+v", a)
	}
	if a := c.query(wire.Query{Op: wire.OpPing}); a.Error != "" {
		t.Errorf("ping: %+v", a)
	}
	if a := c.query(wire.Query{Op: "later"}); a.Error == "" {
		t.Error("an unknown question was answered")
	}
	if c.hello.UID != os.Geteuid() || c.hello.Name != wire.AgentName || c.hello.Protocol != wire.Protocol {
		t.Errorf("hello %+v", c.hello)
	}
	if x := c.run(wire.Run{Shell: []byte("echo no"), User: "nosuch"}); x.exit.Reason != wire.ReasonUser || x.output() != "" {
		t.Errorf("command of an unknown user: %+v", x.exit)
	}
	c.sh(`echo "$HOME $USER $LOGNAME $SHELL"`).want(w.home+" tester tester /bin/bash\n", 0)
	if os.Geteuid() != 0 {
		return
	}
	// Accounts are looked up anew each time: commands add them.
	c.sh("id -u; id -g; id -G").want("4242\n4242\n4242 7777\n", 0)
	f, err := os.OpenFile(w.path("passwd"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("late:x:5151:5152::/:/usr/sbin/nologin\n")
	must(t, err)
	must(t, f.Close())
	late := wire.Run{Shell: []byte(`echo "$(id -u) $(id -g) $HOME $SHELL"`), User: "late"}
	c.run(late).want("5151 5152 / "+w.agent.bash()+"\n", 0)
	c.sh("export K=kept")
	must(t, os.WriteFile(w.path("group"), []byte("tester:x:4242:\nextra:x:7777:\nnew:x:7778:tester\n"), 0o644))
	c.sh("echo $(id -G) $K").want("4242 7778 kept\n", 0)

	// An explicit group replaces the others for its own command alone.
	c.run(wire.Run{Shell: []byte("echo $(id -G) $K"), User: "4242:4242"}).want("4242 kept\n", 0)
	c.sh("echo $(id -G) $K").want("4242 7778 kept\n", 0)

	for _, r := range []wire.Run{
		{Shell: []byte(`touch "$HOME/p"; echo "$(id -u):$(id -g) $USER $HOME"`), User: "5353"},
		{Argv: byteWords("sh", "-c", `touch "$HOME/p"; echo "$(id -u):$(id -g) $USER $HOME"`), User: "5353"},
	} {
		c.run(r).want("5353:0 5353 "+w.path("homes/home-5353")+"\n", 0)
	}
	c.run(wire.Run{Shell: []byte("id -u; id -g"), User: "5354:60"}).want("5354\n60\n", 0)
}

func TestWords(t *testing.T) {
	w := newWorld(t)
	must(t, os.Mkdir(w.path("bin"), 0o755))
	must(t, os.Mkdir(w.path("bin/adir"), 0o755))
	must(t, os.WriteFile(w.path("bin/plain"), []byte("#!/bin/sh\n"), 0o644))
	must(t, os.WriteFile(w.path("bin/nointerp"), []byte("#!/no/such/interpreter\n"), 0o755))
	must(t, os.WriteFile(w.path("bin/noformat"), []byte("\x00\x01\x02"), 0o755))
	must(t, os.WriteFile(w.path("bin/mine"), []byte("#!/bin/sh\necho mine\n"), 0o755))
	w.agent.env["PATH"] = "/no/such:" + w.path("bin") + ":" + defaultPath
	c := w.connect(t)
	odd := []string{"printf", "[%s]", "", " ", "$HOME", "'\"", "a\nb", "\xff", "-x", "*"}
	c.argv(odd...).want("[][ ][$HOME]['\"][a\nb][\xff][-x][*]", 0)
	c.argv("mine").want("mine\n", 0)
	c.argv("sh", "-c", "exit 7").want("", 7)
	c.argv("sh", "-c", "kill -9 $$").want("", 137)
	c.sh("export K=lasting; cd /usr")
	c.argv("sh", "-c", `echo "${K-none}"; pwd`).want("none\n"+w.home+"\n", 0)
	c.run(wire.Run{Argv: byteWords("pwd"), Dir: []byte("/usr")}).want("/usr\n", 0)
	c.run(wire.Run{Argv: byteWords("pwd"), Dir: []byte("~/"), Fallback: nil}).want(w.home+"\n", 0)
	c.run(wire.Run{Argv: byteWords("sh", "-c", `echo "$S"`), Env: map[string][]byte{"S": []byte("v")}}).want("v\n", 0)
	c.run(wire.Run{Argv: byteWords("sh", "-c", `echo "$HOME"`), Env: map[string][]byte{"HOME": []byte("/x")}}).want("/x\n", 0)
	c.argv("sh", "-c", "echo e > /dev/stderr").want("e\n", 0)
	c.argv("sh", "-c", "ls /proc/self/fd | wc -l").want("4\n", 0) // 0, 1, 2 and ls's own
	c.run(wire.Run{Argv: byteWords("readlink", "/proc/self/fd/0")}).want("/dev/null\n", 0)

	for _, tc := range []struct {
		word, reason, text string
	}{
		{"nosuch", wire.ReasonNotFound, `cannot run "nosuch": no such program on its PATH`},
		{"", wire.ReasonNotFound, `cannot run "": no such program on its PATH`},
		{"/no/such", wire.ReasonNotFound, `cannot run "/no/such": no such file or directory`},
		{"plain", wire.ReasonNotExecutable, `cannot run "plain": permission denied`},
		{"adir", wire.ReasonNotFound, `cannot run "adir": no such program on its PATH`},
		{w.path("bin/plain"), wire.ReasonNotExecutable, "permission denied"},
		{"/etc", wire.ReasonNotExecutable, `cannot run "/etc": is a directory`},
		{w.path("bin/noformat"), wire.ReasonNotExecutable, "exec format error"},
		{"nointerp", wire.ReasonNotFound, "nointerp"},
	} {
		a := c.argv(tc.word)
		if a.exit.Reason != tc.reason || !strings.Contains(a.exit.Text, tc.text) || a.output() != "" {
			t.Errorf("%q: %+v, output %q", tc.word, a.exit, a.output())
		}
	}
	for dir, want := range map[string]string{"/no/such": wire.ReasonDirectory, "/etc/passwd": wire.ReasonDirectory, "x": wire.ReasonDirectory} {
		if a := c.run(wire.Run{Argv: byteWords("true"), Dir: []byte(dir)}); a.exit.Reason != want || !strings.Contains(a.exit.Text, dir) {
			t.Errorf("in %q: %+v", dir, a.exit)
		}
	}
	c.run(wire.Run{Argv: byteWords("pwd"), Dir: []byte("/no/such"), Fallback: []byte("/etc")}).want("/etc\n", 0)
	for name, r := range map[string]wire.Run{
		"neither": {}, "both": {Shell: []byte("true"), Argv: byteWords("true")}, "NUL": {Argv: byteWords("a\x00b")},
		"NUL in fallback": {Argv: byteWords("true"), Fallback: []byte("/a\x00")}, "NUL in dir": {Argv: byteWords("true"), Dir: []byte("/a\x00")},
	} {
		if a := c.run(r); a.exit.Reason == "" || a.exit.Text == "" {
			t.Errorf("%s: %+v", name, a.exit)
		}
	}
	big := strings.Repeat("x", 200_000) // above what the kernel takes as one word
	if a := c.argv("echo", big); a.exit.Reason == "" || !strings.Contains(a.exit.Text, "argument list too long") {
		t.Errorf("too long: %.300q", a.exit.Text)
	}
	if slices.Contains(runningWith("/no/such"), "x") {
		t.Error("a shim is left")
	}
}

func TestNoBash(t *testing.T) {
	w := newWorld(t)
	w.agent.bash = func() string { return "" }
	c := w.connect(t)
	if a := c.sh("echo hi"); a.exit.Reason != wire.ReasonInternal || !strings.Contains(a.exit.Text, "no bash") {
		t.Errorf("%+v", a.exit)
	}
	c.argv("echo", "hi").want("hi\n", 0)
}
