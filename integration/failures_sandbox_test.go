//go:build integration

package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// made is a row with a sandbox of its own, on which before is done with the docker CLI.
func made(before ...string) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string {
		t.Helper()
		f.sandbox(t)
		if len(before) > 0 {
			words := make([]string, len(before))
			for i := range before {
				words[i] = f.fill(before[i])
			}
			docker(t, words...)
		}
		return nil
	}
}

// taken makes a container under the name that the row's sandbox would have, with these labels.
func taken(labels ...string) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string {
		t.Helper()
		args := []string{"create", "--name", f.fill("{container}"), "--network", "none"}
		for _, label := range labels {
			args = append(args, "--label", f.fill(label))
		}
		id := docker(t, append(args, "dockerbox/desktop:latest", "true")...)
		t.Cleanup(func() {
			if out, err := exec.Command("docker", "rm", "-f", id).CombinedOutput(); err != nil {
				t.Errorf("remove the container: %v\n%s", err, out)
			}
		})
		return nil
	}
}

// withoutAgent is a container that says it is the row's sandbox and has no agent.
func withoutAgent(t *testing.T, f *failure) []string {
	t.Helper()
	record, err := json.Marshal(map[string]any{"image": "dockerbox/desktop:latest", "user": "pn", "network": "none", "cpus": 0, "memory_mb": 0, "pids": 0, "shm_bytes": 0, "agent": "none"})
	if err != nil {
		t.Fatal(err)
	}
	docker(t, "run", "-d", "--name", f.fill("{container}"), "--network", "none", "--label", "dev.dockerbox.name="+f.box,
		"--label", "dev.dockerbox.profile=", "--label", "dev.dockerbox.config="+string(record), "dockerbox/desktop:latest", "sleep", "3600")
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "rm", "-f", f.fill("{container}")).CombinedOutput(); err != nil {
			t.Errorf("remove the container: %v\n%s", err, out)
		}
	})
	return nil
}

// writingTo makes a device or file standard output.
func writingTo(path string) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string {
		t.Helper()
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() }) // nothing could be written
		f.edit = func(c *exec.Cmd) { c.Stdout = file }
		return nil
	}
}

const (
	missingBox = "dockerbox up {box} makes it; dockerbox ps lists those there are"
	listThem   = "dockerbox ps lists those there are"
	chooseUser = "choose a user of the sandbox with --user, or a number"
	unpause    = "dockerbox unpause {box} lets it go on"
	foreign    = "the container name {container} is taken by a container that is not dockerbox's"
	rename     = "rename or remove that container, or choose another sandbox name"
	unreadable = "the label dev.dockerbox.config of container {container} cannot be read"
	outOfDate  = "another version made it: dockerbox rm -f --keep-home {box} removes it, and the next up makes it anew with its home"
	noRoom     = "no space left on device"
	seeOutput  = "see where standard output goes: a full disk, a device, a program that ended"
)

// missingRows are about sandboxes that are not there, or not dockerbox's.
func missingRows() []badInput {
	absent := `there is no sandbox "{box}"`
	broken := taken("dev.dockerbox.name={box}", "dev.dockerbox.config={broken")
	return []badInput{
		{name: "run nowhere", args: []string{"run", "{box}", "true"}, status: 125, err: absent, hint: missingBox},
		{name: "exec nowhere", args: []string{"exec", "{box}", "true"}, status: 125, err: absent, hint: missingBox},
		{name: "prefix of nothing", args: []string{"prefix", "{box}"}, status: 125, err: absent, hint: missingBox},
		{name: "rm of nothing", args: []string{"rm", "{box}"}, status: 125, err: absent, hint: listThem},
		{name: "stop of nothing", args: []string{"stop", "{box}"}, status: 125, err: absent, hint: listThem},
		{name: "start of nothing", args: []string{"start", "{box}"}, status: 125, err: absent, hint: missingBox},
		{name: "restart of nothing", args: []string{"restart", "{box}"}, status: 125, err: absent, hint: listThem},
		{name: "inspect of nothing", args: []string{"inspect", "{box}"}, status: 125, err: absent, hint: missingBox},
		{
			name: "run in a profile's", args: []string{"run", "work/{box}", "true"}, status: 125,
			err: `there is no sandbox "work/{box}"`, hint: listThem + "; Hermes makes those with a profile in front",
		},
		{name: "up on another's container", args: []string{"up", "{box}"}, prepare: taken(), status: 125, err: foreign, hint: rename},
		{name: "up --recreate on another's container", args: []string{"up", "--recreate", "{box}"}, prepare: taken(), status: 125, err: foreign, hint: rename},
		{name: "rm -f of another's container", args: []string{"rm", "-f", "{box}"}, prepare: taken(), status: 125, err: foreign, hint: rename},
		{name: "up on an unreadable label", args: []string{"up", "{box}"}, prepare: broken, status: 125, err: unreadable, hint: outOfDate},
		{name: "run on an unreadable label", args: []string{"run", "{box}", "true"}, prepare: broken, status: 125, err: unreadable, hint: outOfDate},
	}
}

// livingRows are about sandboxes that are there. {shared} is one that they leave as it is.
func livingRows() []badInput {
	return []badInput{
		// Accounts and directories.
		{name: "exec as nobody known", args: []string{"exec", "-u", "nosuch", "{shared}", "true"}, status: 125, err: `the sandbox has no user "nosuch"`, hint: chooseUser},
		{name: "run as nobody known", args: []string{"run", "-u", "nosuch", "{shared}", "true"}, status: 125, err: `the sandbox has no user "nosuch"`, hint: chooseUser},
		{name: "run in no group known", args: []string{"run", "-u", "pn:nosuch", "{shared}", "true"}, status: 125, err: `the sandbox has no group "nosuch"`, hint: chooseUser},
		{name: "exec in a directory that is not there", args: []string{"exec", "-w", "/nope", "{shared}", "true"}, status: 126, said: "dockerbox: /nope: no such file or directory\n"},
		{name: "run in a relative directory", args: []string{"exec", "-w", "here", "{shared}", "true"}, status: 126, said: "dockerbox: here: not an absolute path inside the sandbox\n"},
		{name: "exec of a directory", args: []string{"exec", "{shared}", "/etc"}, status: 126, said: "dockerbox: cannot run \"/etc\": is a directory\n"},
		{name: "exec of a text", args: []string{"exec", "{shared}", "/etc/passwd"}, status: 126, said: "dockerbox: cannot run \"/etc/passwd\": permission denied\n"},
		{name: "exec of nothing known", args: []string{"exec", "{shared}", "nosuch"}, status: 127, said: "dockerbox: cannot run \"nosuch\": no such program on its PATH\n"},

		// Streams.
		{name: "exec onto a full disk", args: []string{"exec", "{shared}", "echo", "hi"}, prepare: writingTo("/dev/full"), status: 125, err: "output could not be passed on: " + noRoom, hint: "the command was ended; " + seeOutput},
		{name: "run onto a full disk", args: []string{"run", "{shared}", "yes"}, prepare: writingTo("/dev/full"), status: 125, err: "output could not be passed on: " + noRoom, hint: "the command was ended; " + seeOutput},
		{name: "ps onto a full disk", args: []string{"ps"}, prepare: writingTo("/dev/full"), status: 125, err: "the answer could not be written: " + noRoom, hint: seeOutput},
		{name: "ps --json onto a full disk", args: []string{"ps", "--json"}, prepare: writingTo("/dev/full"), status: 125, err: "the answer could not be written: " + noRoom, hint: seeOutput},
		{name: "exec for a reader that has left", args: []string{"exec", "{shared}", "yes"}, prepare: broken, status: -1}, // by SIGPIPE, as every program
		{name: "run without standard streams", args: []string{"run", "{shared}", "cat"}, prepare: closed, status: 0},

		// Other settings.
		{
			name: "up with another network", args: []string{"up", "--network", "none", "{shared}"}, status: 125,
			err:  `sandbox "{shared}" has other settings, which cannot be changed while it exists: network is bridge, wanted none`,
			hint: "dockerbox up --recreate with the same flags makes {shared} anew: what runs in it ends, its home is kept; without these flags it is taken as it is",
		},

		// Their own.
		{name: "run on a paused one", args: []string{"run", "{box}", "true"}, prepare: made("pause", "{container}"), status: 125, err: `sandbox "{box}" is paused`, hint: unpause},
		{name: "exec on a paused one", args: []string{"exec", "{box}", "true"}, prepare: made("pause", "{container}"), status: 125, err: `sandbox "{box}" is paused`, hint: unpause},
		{name: "up on a paused one", args: []string{"up", "{box}"}, prepare: made("pause", "{container}"), status: 125, err: `sandbox "{box}" is paused`, hint: unpause},
		{
			name: "run on one without an agent", args: []string{"run", "{box}", "true"}, prepare: withoutAgent, status: 125,
			err:  "the agent in the sandbox could not be reached: its program is not there",
			hint: "raise its limits if they are low (--memory, --pids); dockerbox up --recreate makes the sandbox anew and keeps its home",
		},
		{
			name: "exec that kills the agent", args: []string{"exec", "-u", "root", "{box}", "sh", "-c", "kill -9 $PPID; sleep 60"}, prepare: made(), status: 125,
			err: "the connection to the sandbox was lost while a command was running: the stream ended", hint: "the command may have run in part; look before you run it again",
		},
		{name: "start of a paused one", args: []string{"start", "{box}"}, prepare: made("pause", "{container}"), status: 125, err: `sandbox "{box}" is paused`, hint: unpause},
		{
			name: "rm of one whose home is used", args: []string{"rm", "-f", "{box}"}, prepare: func(t *testing.T, f *failure) []string {
				t.Helper()
				made()(t, f)
				user := f.box + "-user"
				docker(t, "create", "--name", user, "--network", "none", "-v", f.fill("{volume}")+":/x", "dockerbox/desktop:latest", "true")
				t.Cleanup(func() {
					if out, err := exec.Command("docker", "rm", "-f", user).CombinedOutput(); err != nil {
						t.Errorf("remove the container: %v\n%s", err, out)
					}
				})
				return nil
			}, status: 125, err: `the volume {volume} with the home of sandbox "{box}" is used by container {box}-user`,
			hint: "remove what uses it first, or let dockerbox rm -f --keep-home {box} leave it there",
		},
		{name: "rm of a running one", args: []string{"rm", "{box}"}, prepare: made(), status: 125, err: `sandbox "{box}" is running`, hint: "dockerbox rm -f {box} ends and removes it"},
		{
			name: "rm of two of which one is not there", args: []string{"rm", "{box}-2", "{box}"}, prepare: made("stop", "-t", "0", "{container}"), goes: true, status: 125,
			stdout: "{box}\n", err: `there is no sandbox "{box}-2"`, hint: listThem,
		},
	}
}

// broken makes standard output a pipe that nobody reads.
func broken(t *testing.T, f *failure) []string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() }) // nothing could be written
	f.edit = func(c *exec.Cmd) { c.Stdout = w }
	return nil
}

// closed starts the row's command without standard input and output.
func closed(_ *testing.T, f *failure) []string {
	f.edit = func(c *exec.Cmd) {
		c.Args = append([]string{"sh", "-c", `exec "$0" "$@" <&- >&-`}, c.Args...)
		c.Path = "/bin/sh"
	}
	return nil
}

func TestFailuresOfMissingSandboxes(t *testing.T) { runFailures(t, missingRows()) }

func TestFailuresOfLivingSandboxes(t *testing.T) {
	shared := freshName("fail-shared")
	t.Cleanup(func() { removeSandboxes(t, shared) })
	if got := cli(t, "up", shared); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	rows := livingRows()
	for i := range rows {
		prepare := rows[i].prepare
		rows[i].prepare = func(t *testing.T, f *failure) []string {
			t.Helper()
			f.places = append(f.places, "{shared}", shared)
			if prepare == nil {
				return nil
			}
			return prepare(t, f)
		}
	}
	runFailures(t, rows)
	// What a row ended must be gone inside, too: all that is left is the agent and shells that wait.
	if got := cli(t, "exec", shared, "pgrep", "-x", "yes|cat|sleep"); got.status != 1 || strings.TrimSpace(got.stdout) != "" {
		t.Errorf("commands go on in the shared sandbox: %+v", got)
	}
}
