//go:build integration

package integration

import "testing"

const (
	noTerminal = "standard input is not a terminal"
	shellHelp  = "dockerbox shell --help shows what it takes"
)

// ttyRows are about terminals. Those of a program without keys need none here.
func ttyRows() []badInput {
	return []badInput{
		usage("exec -it away from a terminal", noTerminal, "leave out -t, or -i when there is nothing to type", "exec", "-it", "b", "true"),
		usage("shell away from a terminal", noTerminal, "a shell is for somebody at a terminal; dockerbox exec -i NAME bash reads commands from anywhere", "shell", "b"),
		usage("shell without a name", "shell needs the name of one sandbox, and got 0", shellHelp, "shell"),
		usage("shell with a command", "shell needs the name of one sandbox, and got 2", shellHelp, "shell", "b", "ls"),
		usage("shell as no user", `user "a b" must be a name, or a number up to 2147483647, optionally followed by ":" and a group`, shellHelp, "shell", "-u", "a b", "b"),
		usage("shell with a variable without a name", `env: "=x" does not begin with a variable name`, shellHelp, "shell", "-e", "=x", "b"),
		usage("shell with a time-out", "unknown flag: --timeout", shellHelp, "shell", "--timeout", "1s", "b"),

		{name: "exec -t in none", args: []string{"exec", "-t", "{box}", "true"}, status: 125, err: `there is no sandbox "{box}"`, hint: "dockerbox up {box} makes it; dockerbox ps lists those there are"},
		{name: "exec -t as nobody known", args: []string{"exec", "-t", "-u", "nosuch", "{box}", "true"}, prepare: made(), status: 125, err: `the sandbox has no user "nosuch"`, hint: chooseUser},
		{name: "exec -t of nothing known", args: []string{"exec", "-t", "{box}", "nosuch"}, prepare: made(), status: 127, said: "dockerbox: cannot run \"nosuch\": no such program on its PATH\n"},
		{name: "exec -t in a directory that is not there", args: []string{"exec", "-t", "-w", "/nope", "{box}", "true"}, prepare: made(), status: 126, said: "dockerbox: /nope: no such file or directory\n"},
		{name: "exec -t on a paused one", args: []string{"exec", "-t", "{box}", "true"}, prepare: made("pause", "{container}"), status: 125, err: `sandbox "{box}" is paused`, hint: unpause},
		{name: "exec -t out of time", args: []string{"exec", "-t", "--timeout", "1s", "{box}", "bash", "-c", "printf up; sleep 60"}, prepare: made(), status: 124, stdout: "up\n", said: "dockerbox: the command was killed after 1s\n"},
		{name: "exec -t that kills the agent", args: []string{"exec", "-t", "-u", "root", "{box}", "sh", "-c", "kill -9 $PPID; sleep 60"}, prepare: made(), status: 125, err: "the connection to the sandbox was lost while a command was running: the stream ended", hint: "the command may have run in part; look before you run it again"},
	}
}

func TestFailuresOfTerminals(t *testing.T) { runFailures(t, ttyRows()) }
