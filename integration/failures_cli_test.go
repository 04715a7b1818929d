//go:build integration

package integration

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// usage is a row that is a mistake in the command line: it is found before any daemon is asked, so there is none.
func usage(name, problem, hint string, args ...string) badInput {
	return badInput{
		name: name, args: args, environ: []string{"DOCKER_HOST=unix:///nonexistent/docker.sock"},
		status: 2, err: problem, hint: hint,
	}
}

const (
	upHelp  = "dockerbox up --help shows what it takes"
	badName = `must be 1 to 128 letters, digits, ".", "_", ":" or "-" and begin with a letter or digit`
	badUser = `must be a name, or a number up to 2147483647, optionally followed by ":" and a group`
	badSize = `must be a number of bytes or a size such as 512m or 5g`
	badCPUs = `must be 0 (no limit) or 0.01 to 1000000 cores`
	badPIDs = `must be 0 (no limit) or at least 64, for the agent and its shells take some themselves`
)

func usageRows() []badInput {
	up := func(name, problem string, args ...string) badInput {
		return usage(name, problem, upHelp, append([]string{"up"}, args...)...)
	}
	return []badInput{
		// Names.
		up("name slash", `name: "/" `+badName, "/"),
		up("name with slashes", `name: "a/b/c" `+badName, "a/b/c"),
		up("name empty", `name: "" `+badName, ""),
		up("name of 300 characters", `name: "`+strings.Repeat("x", 40)+`…" (300 characters) `+badName, strings.Repeat("x", 300)),
		up("name with a leading dash", `name: "-x" `+badName, "--", "-x"),
		up("name with a space", `name: "a b" `+badName, "a b"),
		up("name with a line end", `name: "a\nb" `+badName, "a\nb"),
		up("name not in ASCII", `name: "ü" `+badName, "ü"),
		up("two names", "up takes one name at a time, and got 2", "a", "b"),
		usage("run slash", `name: "/" is no name that dockerbox ps could show`, "dockerbox run --help shows what it takes", "run", "/", "true"),
		usage("exec empty name", `name: "" is no name that dockerbox ps could show`, "dockerbox exec --help shows what it takes", "exec", "", "true"),
		usage("rm with slashes", `name: "a/b/c" is no name that dockerbox ps could show`, "dockerbox rm --help shows what it takes", "rm", "a/b/c"),
		usage("prefix with a space", `name: "a b" is no name that dockerbox ps could show`, "dockerbox prefix --help shows what it takes", "prefix", "a b"),

		// Limits.
		up("memory of an unknown unit", `memory: "12x" `+badSize, "--memory", "12x"),
		up("memory negative", `memory: "-1" `+badSize, "--memory", "-1"),
		up("memory of a byte", `memory: "1" must be 0 (no limit) or at least 6m; a plain number counts bytes`, "--memory", "1"),
		up("memory of half a kB", `memory: "0.5k" must be 0 (no limit) or at least 6m; a plain number counts bytes`, "--memory", "0.5k"),
		up("memory of half a byte", `memory: "0.5" is less than a byte`, "--memory", "0.5"),
		up("memory beyond all machines", `memory: "1e30g" is more than any machine has`, "--memory", "1e30g"),
		up("memory beyond Docker's numbers", `memory: 2147483648 MB must be 0 (no limit) or 6 to 1073741824 MB`, "--memory", "2p"),
		up("cpus not a number", `--cpus: "x" must be a number, such as 2 or 0.5`, "--cpus", "x"),
		up("cpus negative", `cpus: -1 `+badCPUs, "--cpus", "-1"),
		up("cpus nearly none", `cpus: 0.001 `+badCPUs, "--cpus", "0.001"),
		up("cpus beyond all machines", `cpus: 1e+09 `+badCPUs, "--cpus", "1e9"),
		up("cpus not a number at all", `cpus: NaN `+badCPUs, "--cpus", "NaN"),
		up("one process", `pids: 1 `+badPIDs, "--pids", "1"),
		up("processes negative", `pids: -5 `+badPIDs, "--pids", "-5"),
		up("processes beyond the kernel's", `pids: 4194305 is more than a kernel counts, which is 4194304; 0 is no limit`, "--pids", "4194305"),
		up("processes not a number", `--pids: "many" must be a whole number`, "--pids", "many"),
		up("shm negative", `shm-size: "-1" `+badSize, "--shm-size", "-1"),
		up("network of the host", `network: "host" must be "bridge" or "none"`, "--network", "host"),
		up("network unknown", `network: "foo" must be "bridge" or "none"`, "--network", "foo"),
		up("network empty", `network: "" must be "bridge" or "none"`, "--network", ""),

		// Images and accounts.
		up("image in capitals", `image: "UPPER" must be in lower case up to the tag, such as debian:12`, "--image", "UPPER"),
		up("image with a space", `image: "a b" must be an image reference, such as debian:12 or registry.example.com/team/image:tag`, "--image", "a b"),
		up("image of a bad tag", `image: "debian:bad!tag" must be an image reference, such as debian:12 or registry.example.com/team/image:tag`, "--image", "debian:bad!tag"),
		up("image of a short digest", `image: "debian@sha256:12" must be an image reference, such as debian:12 or registry.example.com/team/image:tag`, "--image", "debian@sha256:12"),
		up("image empty", `image: "" is given; leave --image out for the default`, "--image", ""),
		up("user empty", `user: "" is given; leave --user out for the default`, "--user", ""),
		up("user with a space", `user: "a b" `+badUser, "--user", "a b"),
		up("user above what Docker takes", `user: "2147483648" `+badUser, "--user", "2147483648"),
		up("group above what Docker takes", `user: "1000:99999999999" `+badUser, "--user", "1000:99999999999"),
		usage("exec user above what Docker takes", `user "3000000000" `+badUser, "dockerbox exec --help shows what it takes", "exec", "-u", "3000000000", "b", "true"),

		// Variables.
		up("variable without a name", `env: "=x" does not begin with a variable name`, "-e", "=x"),
		up("variable empty", `env: "" does not begin with a variable name`, "-e", ""),
		up("variable of a bad name", `env: "9a" is not a variable name`, "-e", "9a=x"),
		up("file of variables missing", `env-file: /nonexistent/list cannot be read (no such file or directory)`, "--env-file", "/nonexistent/list"),
		up("file of variables a directory", `env-file: / cannot be read (is a directory)`, "--env-file", "/"),
		usage("exec variable without a name", `env: "=x" does not begin with a variable name`, "dockerbox exec --help shows what it takes", "exec", "-e", "=x", "b", "true"),

		up("forwarded variable of a bad name", `forward-env: "a b" is not a variable name`, "--forward-env", "a b"),

		// Mounts and the disk.
		up("mount without a target", `volume: "/tmp": must be SOURCE:TARGET, with :ro behind it to keep it from being changed`, "-v", "/tmp"),
		up("mount empty", `volume: "": must be SOURCE:TARGET, with :ro behind it to keep it from being changed`, "-v", ""),
		up("mount onto a relative path", `volume: "/tmp:rel": the target must be an absolute path in the sandbox`, "-v", "/tmp:rel"),
		up("two mounts onto one path", `volume: "/etc:/a": something else is mounted at /a already`, "-v", "/tmp:/a", "-v", "/etc:/a"),
		up("mount with an unknown option", `volume: "/tmp:/a:rx": the options there are, ro and rw, do not include "rx"`, "-v", "/tmp:/a:rx"),
		up("mount of a path with a colon", `volume: "/tmp/a:b:/c": a path with a colon in it cannot be mounted, but a symbolic link to it can`, "-v", "/tmp/a:b:/c"),
		up("mount with an SELinux label", `volume: "/tmp:/a:Z": dockerbox does not change SELinux labels; chcon -Rt container_file_t on the source does`, "-v", "/tmp:/a:Z"),
		up("mount over the root", `volume: "/tmp:/": the target must not be the sandbox's root`, "-v", "/tmp:/"),
		up("mount over /proc", `volume: "/tmp:/proc": the target must not be in /proc`, "-v", "/tmp:/proc"),
		up("mount over the agent", `volume: "/tmp:/.dockerbox/x": the target must not be in /.dockerbox`, "-v", "/tmp:/.dockerbox/x"),
		up("mount of a Windows drive", `volume: "a:/b": that is a path on a Windows drive, which needs :TARGET behind it; a volume's name has two or more characters`, "-v", "a:/b"),
		up("disk negative", `disk: "-1" `+badSize, "--disk", "-1"),
		up("disk of an unknown unit", `disk: "12x" `+badSize, "--disk", "12x"),

		// Everything at once.
		up("all faults in one line", `memory: "12x" `+badSize+`; shm-size: "-1" `+badSize+`; name: "a/b" `+badName+`; user: "a b" `+badUser+
			`; cpus: -1 `+badCPUs+`; pids: 1 `+badPIDs+`; network: "foo" must be "bridge" or "none"; env: "9" is not a variable name; image: "UPPER" must be in lower case up to the tag, such as debian:12`,
			"--memory", "12x", "--cpus", "-1", "--pids", "1", "--shm-size", "-1", "--network", "foo", "-e", "9=1", "--user", "a b", "--image", "UPPER", "a/b"),

		// Commands.
		usage("unknown command", `there is no command "upp"`, "is it up? dockerbox --help lists all", "upp"),
		usage("unknown flag", "unknown flag: --frob", upHelp, "up", "--frob"),
		usage("two daemons", "--host and --context name two daemons", "use one of the two (in Hermes, terminal.backends.dockerbox.host and .context)", "--host", "unix:///a", "--context", "b", "ps"),
		usage("exec without a command", "there is no command to run", "dockerbox exec --help shows what it takes", "exec", "b"),
		usage("run without a command", "there is no command to run", "dockerbox run --help shows what it takes", "run", "b"),
		usage("run of several words", "run takes the shell command as one word, not 2", "quote it: dockerbox run b 'ls -l'", "run", "b", "ls", "-l"),
		usage("time-out negative", "timeout -2s must not be negative", "dockerbox run --help shows what it takes", "run", "--timeout", "-2s", "b", "true"),
		usage("time-out without a unit", `--timeout: "2" must be a time with its unit, such as 2s or 1m30s`, "dockerbox exec --help shows what it takes", "exec", "--timeout", "2", "b", "true"),
		usage("time-out no time", `--timeout: "abc" must be a time with its unit, such as 2s or 1m30s`, "dockerbox exec --help shows what it takes", "exec", "--timeout", "abc", "b", "true"),
		usage("stop without a name", "stop needs the name of a sandbox", "dockerbox stop --help shows what it takes", "stop"),
		usage("stop within no time", `--time: "x" must be a number of seconds, or a time with its unit such as 1m30s, at most a day`, "dockerbox stop --help shows what it takes", "stop", "-t", "x", "b"),
		usage("inspect of two", "inspect needs the name of one sandbox, and got 2", "dockerbox inspect --help shows what it takes", "inspect", "a", "b"),
		usage("serve without a way to speak", "serve needs --stdio, the one way it can speak", "dockerbox serve --help shows what it takes", "serve"),
		{
			name: "serve on a terminal", args: []string{"serve", "--stdio"}, prepare: terminal,
			status: 2, err: "serve speaks JSON-RPC with another program, such as the Hermes plugin; standard input is a terminal",
			hint: "dockerbox run NAME 'SHELL COMMAND' is for people",
		},
	}
}

// terminal makes standard input one.
func terminal(t *testing.T, f *failure) []string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = master.Close(), slave.Close() }) // nothing was written
	f.edit = func(c *exec.Cmd) { c.Stdin = slave }
	return nil
}

func TestFailuresOfTheCommandLine(t *testing.T) { runFailures(t, usageRows()) }
