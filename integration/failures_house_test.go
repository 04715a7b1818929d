//go:build integration

package integration

import (
	"os/exec"
	"testing"
)

const (
	notScreen = "what a screen said has no times, so --desktop goes with neither --since nor --json"
	clients   = "claude, cursor, vscode, hermes"
)

// houseRows are about the verbs that keep house.
func houseRows() []badInput {
	absent := `there is no sandbox "{box}"`
	help := func(verb string) string { return "dockerbox " + verb + " --help shows what it takes" }
	return []badInput{
		usage("logs without a name", "logs needs the name of one sandbox, and got 0", help("logs"), "logs"),
		usage("logs of two", "logs needs the name of one sandbox, and got 2", help("logs"), "logs", "a", "b"),
		usage("logs of few lines", `--tail: "few" must be a number of lines, or all`, help("logs"), "logs", "--tail", "few", "b"),
		usage("logs since soon", `--since: "soon" must be a time ago such as 90s or 10m, or a date such as 2026-11-30 or 2026-11-30T12:00:00Z`, help("logs"), "logs", "--since", "soon", "b"),
		usage("logs of a screen since then", notScreen, help("logs"), "logs", "--desktop", "--since", "1h", "b"),
		usage("logs of a screen as JSON", notScreen, help("logs"), "logs", "--desktop", "--json", "b"),
		usage("stats watched once", "--watch and --no-stream exclude each other", help("stats"), "stats", "--watch", "--no-stream"),
		usage("pause of nothing named", "pause needs the name of a sandbox", help("pause"), "pause"),
		usage("unpause of nothing named", "unpause needs the name of a sandbox", help("unpause"), "unpause"),
		usage("prune of a name", `prune takes no names or other words, such as "box"`, help("prune"), "prune", "box"),
		usage("prune of what is idle soon", `--idle: "soon" must be a time with its unit, such as 2s or 1m30s`, help("prune"), "prune", "--idle", "soon"),
		usage("prune of the future", "--idle: a time cannot be negative", help("prune"), "prune", "--idle", "-1h"),
		usage("prune of no profile", `--of: "a b" is not the name of a profile`, "dockerbox ps shows profiles in front of the slash", "prune", "--of", "a b"),
		usage("mcp for nobody known", `--print-config: "emacs" must be one of `+clients, help("mcp"), "mcp", "--print-config", "emacs", "b"),
		usage("mcp for no client", `--print-config: "" must be one of `+clients, help("mcp"), "mcp", "--print-config", "", "b"),
		usage("mcp of no name", `"a b" is no name that dockerbox ps could show`, help("mcp"), "mcp", "--print-config", "claude", "a b"),
		usage("completion for no shell", "completion needs the name of a shell: bash, zsh, fish", help("completion"), "completion"),
		usage("completion for tcsh", "completion needs the name of a shell: bash, zsh, fish", help("completion"), "completion", "tcsh"),

		{name: "logs of none", args: []string{"logs", "{box}"}, status: 125, err: absent, hint: missingBox},
		{name: "stats of none", args: []string{"stats", "{box}"}, status: 125, err: absent, hint: listThem},
		{name: "pause of none", args: []string{"pause", "{box}"}, status: 125, err: absent, hint: listThem},
		{name: "unpause of none", args: []string{"unpause", "{box}"}, status: 125, err: absent, hint: listThem},
		{name: "pause of somebody else's", args: []string{"pause", "{box}"}, prepare: taken(), status: 125, err: foreign, hint: rename},
		{name: "logs of somebody else's", args: []string{"logs", "{box}"}, prepare: taken(), status: 125, err: foreign, hint: rename},
		{
			name: "pause of a stopped one", args: []string{"pause", "{box}"}, prepare: made("stop", "-t", "0", "{container}"), status: 125,
			err: `sandbox "{box}" does not run, so there is nothing to pause`, hint: "dockerbox start {box} starts it",
		},
		{
			name: "logs of a screen that is not there", args: []string{"logs", "--desktop", "{box}"}, prepare: made(), status: 125,
			err: `sandbox "{box}" has no screen running`, hint: "dockerbox desktop start {box} starts it",
		},
		{name: "logs of a screen of a paused one", args: []string{"logs", "--desktop", "{box}"}, prepare: made("pause", "{container}"), status: 125, err: `sandbox "{box}" is paused`, hint: unpause},
		{name: "logs onto a full disk", args: []string{"logs", "{box}"}, prepare: both(made(), writingTo("/dev/full")), status: 125, err: "the answer could not be written: " + noRoom, hint: seeOutput},
		{name: "stats onto a full disk", args: []string{"stats", "{box}"}, prepare: both(made(), writingTo("/dev/full")), status: 125, err: "the answer could not be written: " + noRoom, hint: seeOutput},
		{name: "prune onto a full disk", args: []string{"prune", "--dry-run", "--of", "{box}"}, prepare: writingTo("/dev/full"), status: 125, err: "the answer could not be written: " + noRoom, hint: seeOutput},
		{name: "completion onto a full disk", args: []string{"completion", "bash"}, prepare: writingTo("/dev/full"), status: 125, err: "the answer could not be written: " + noRoom, hint: seeOutput},
		{
			name: "logs where none are kept", args: []string{"logs", "{box}"}, status: 125,
			prepare: func(t *testing.T, f *failure) []string {
				t.Helper()
				withoutLog(t, f)
				return nil
			},
			err:  "reading the log of container {id}: configured logging driver does not support reading",
			hint: "a log driver that sends logs elsewhere keeps none to read (docker info names it; --log-driver among the extra arguments chooses one)",
		},
	}
}

// both prepares two things.
func both(one, two func(*testing.T, *failure) []string) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string {
		t.Helper()
		return append(one(t, f), two(t, f)...)
	}
}

func TestFailuresOfHousekeeping(t *testing.T) { runFailures(t, houseRows()) }

// withoutLog is a container that says it is the row's sandbox, and whose log nobody keeps.
func withoutLog(t *testing.T, f *failure) {
	t.Helper()
	docker(t, "create", "--name", f.fill("{container}"), "--network", "none", "--log-driver", "none", "--label", "dev.dockerbox.name="+f.box,
		"--label", "dev.dockerbox.profile=", "dockerbox/desktop:latest", "true")
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "rm", "-f", f.fill("{container}")).CombinedOutput(); err != nil {
			t.Errorf("remove the container: %v\n%s", err, out)
		}
	})
}
