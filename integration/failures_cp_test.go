//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"testing"
)

// copyRows are about cp. {shared} is a sandbox that they leave as it is.
func copyRows() []badInput {
	const (
		help      = "dockerbox cp --help shows what it takes"
		where     = "one of the two is NAME:PATH, the other a path here: dockerbox cp NAME:/etc/hosts . copies out"
		recurse   = "add -r to copy a directory with all that is in it"
		lookThere = "look at the path, which begins at / or ~; the directory that something goes into has to exist"
		lookHere  = "look at the path; the directory that something goes into has to exist"
		other     = "choose another destination, or remove what is in the way"
		own       = "choose a path of the account's own, such as ~ or /tmp, or another account with --user"
		writable  = "choose a path that can be written to, such as ~ or /tmp"
	)
	file := func(t *testing.T, f *failure) []string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(f.dir, "home", "file"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"{file}", filepath.Join(f.dir, "home", "file")}
	}
	return []badInput{
		usage("cp of one path", "cp takes two paths, from and to, and got 1", help, "cp", "a:/x"),
		usage("cp of three paths", "cp takes two paths, from and to, and got 3", help, "cp", "a:/x", "b", "c"),
		usage("cp on this machine", "both paths are on this machine", where, "cp", "/etc/hosts", "./x"),
		usage("cp between sandboxes", "both paths are in a sandbox", "copy to this machine first, or connect two with -: dockerbox cp A:/dir - | dockerbox cp - B:/dir", "cp", "a:/x", "b:/x"),
		usage("cp of no path", "there is no path behind the sandbox's name", "b:~ is its home", "cp", "b:", "."),
		usage("cp to an empty path", "a path is empty", help, "cp", "b:/x", ""),
		usage("cp of a directory here", "/etc is a directory", recurse, "cp", "/etc", "b:/x"),
		usage("cp as no user", `user "a b" `+badUser, help, "cp", "-u", "a b", "b:/x", "."),
		usage("cp of an archive as JSON", "--json and an archive cannot both be on standard output", help, "cp", "--json", "b:/x", "-"),
		usage("cp of a bad name", `name: "a b" is no name that dockerbox ps could show`, help, "cp", "a b:/x", "."),

		{name: "cp from none", args: []string{"cp", "{box}:/etc/hosts", "{dir}/x"}, status: 125, err: `there is no sandbox "{box}"`, hint: missingBox},
		{name: "cp as nobody known", args: []string{"cp", "-u", "nosuch", "{shared}:/etc/hosts", "{dir}/x"}, status: 125, err: `the sandbox has no user "nosuch"`, hint: chooseUser},
		{name: "cp of nothing", args: []string{"cp", "{shared}:none", "{dir}/x"}, status: 125, err: "/none in the sandbox: no such file or directory", hint: lookThere},
		{name: "cp of nothing here", args: []string{"cp", "{dir}/none", "{shared}:/tmp"}, status: 125, err: "{dir}/none on this machine: no such file or directory", hint: lookHere},
		{name: "cp of a directory", args: []string{"cp", "{shared}:/etc", "{dir}/x"}, status: 125, err: "/etc in the sandbox: is a directory", hint: recurse},
		{name: "cp of a secret", args: []string{"cp", "{shared}:/etc/shadow", "{dir}/x"}, status: 125, err: "/etc/shadow in the sandbox: permission denied", hint: own},
		{name: "cp of a device", args: []string{"cp", "{shared}:/dev/null", "{dir}/x"}, status: 125, err: "/dev/null in the sandbox: is a device and cannot be copied", hint: other},
		{name: "cp to another's", args: []string{"cp", "{file}", "{shared}:/etc/hostname2"}, prepare: file, status: 125, err: "/etc/hostname2 in the sandbox: permission denied", hint: own},
		{name: "cp to what is read-only", args: []string{"cp", "-u", "0", "{file}", "{shared}:/.dockerbox/x"}, prepare: file, status: 125, err: "/.dockerbox/x in the sandbox: read-only file system", hint: writable},
		{name: "cp into no directory", args: []string{"cp", "{file}", "{shared}:/none/x"}, prepare: file, status: 125, err: "/none in the sandbox: no such file or directory", hint: lookThere},
		{name: "cp into no directory here", args: []string{"cp", "{shared}:/etc/hosts", "{dir}/none/x"}, status: 125, err: "{dir}/none on this machine: no such file or directory", hint: lookHere},
		{name: "cp onto a device", args: []string{"cp", "{shared}:/etc/hosts", "/dev/full"}, status: 125, err: "/dev/full on this machine: is neither a file nor a directory, and nothing can be copied onto it", hint: other},
		{name: "cp of a directory onto a file", args: []string{"cp", "-r", "{shared}:/etc/skel", "{file}"}, prepare: file, status: 125, err: "{file} on this machine: is not a directory, and a directory cannot take its place", hint: other},
		{name: "cp onto a full disk", args: []string{"cp", "{file}", "{shared}:/dev/shm/file"}, prepare: large, status: 125, err: "/dev/shm/file in the sandbox: " + noRoom, hint: "make room there: a tmpfs such as /tmp has a fixed size, all else is on the daemon's disk"},
		{name: "cp of no archive", args: []string{"cp", "-", "{shared}:/tmp"}, stdin: "this is no archive", status: 125, err: "the archive ends in the middle of a file", hint: "look at where the archive comes from"},
		{name: "cp of an archive onto a file", args: []string{"cp", "-", "{shared}:/etc/hosts"}, status: 125, err: "/etc/hosts in the sandbox: is not a directory, and an archive needs one", hint: other},
		{name: "cp of an archive onto a full disk", args: []string{"cp", "{shared}:/etc/skel", "-"}, prepare: writingTo("/dev/full"), status: 125, err: "the archive could not be written: " + noRoom, hint: seeOutput},
	}
}

// large makes a file that is larger than what the shared sandbox has of shared memory.
func large(t *testing.T, f *failure) []string {
	t.Helper()
	name := filepath.Join(f.dir, "home", "file")
	if err := os.WriteFile(name, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"{file}", name}
}

func TestFailuresOfCopies(t *testing.T) {
	shared := freshName("fail-cp")
	t.Cleanup(func() { removeSandboxes(t, shared) })
	if got := cli(t, "up", "--shm-size", "1m", shared); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	rows := copyRows()
	for i, row := range rows {
		rows[i].prepare = func(t *testing.T, f *failure) []string {
			t.Helper()
			f.places = append(f.places, "{shared}", shared)
			if row.prepare != nil {
				return row.prepare(t, f)
			}
			return nil
		}
	}
	runFailures(t, rows)
}
