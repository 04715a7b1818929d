//go:build integration

package integration

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// TestField holds one subtest for each fault that was reported in public against a system like ours. The first ones share a sandbox: each
// begins in the home and leaves the next one no state that matters to it.
func TestField(t *testing.T) {
	p, env := newSandbox(t)
	f := rowBox{p, env, env.Info().Name}
	for _, row := range []struct {
		name string
		test func(*testing.T, rowBox)
	}{
		{"row13 a time-out leaves no orphans", field13},
		{"row14 a deleted directory does not fail every later call", field14},
		{"row15 a bad directory fails one call", field15},
		{"row16 a host path is no start directory", field16},
		{"row17 an inherited stdout does not delay the return", field17},
		{"row23 a forwarded value stands in no file and no argv", field23},
		{"row24 a long command runs", field24},
		{"row26 dead jobs are reaped", field26},
		{"row27 a number without an account has a home", field27},
		{"row32 strict mode ends with its command", field32},
		{"row33 an unterminated command spoils nothing", field33},
		{"row36 bytes that are no UTF-8", field36},
		{"row37 unread input is no error", field37},
		{"row38 empty input two hundred times", field38},
		{"row42 exec's statuses", field42},
		{"row19 a paused sandbox is a backend failure", field19},
		{"row18 a removed sandbox comes back", field18}, // last: it is another container from here on
	} {
		t.Run(row.name, func(t *testing.T) {
			if env.Info().Cwd != "/home/pn" {
				t.Fatalf("the sandbox starts in %s", env.Info().Cwd)
			}
			sh(t, env, "cd /home/pn")
			row.test(t, f)
		})
	}
}

// rowBox is a sandbox that rows share, and its name for the command line.
type rowBox struct {
	p    *provider.Provider
	env  contract.Environment
	name string
}

// wants runs shell text and compares all it says, wrapper noise included.
func wants(t *testing.T, env contract.Environment, command, want string) {
	t.Helper()
	if got := sh(t, env, command); got != want {
		t.Errorf("%.80q says %q, want %q", command, got, want)
	}
}

// said is what a program that ran said, and its status.
type said struct {
	stdout, stderr string
	status         int
}

// cli runs dockerbox; any status is a result.
func cli(t *testing.T, args ...string) said {
	t.Helper()
	return programme(t, exec.CommandContext(t.Context(), dockerboxBinary(t), args...))
}

func programme(t *testing.T, c *exec.Cmd) said {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	var status *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &status) {
		t.Fatalf("%q: %v", c.Args, err)
	}
	return said{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// fast wants do to be done within limit, once of three times: the limit is the row's, other work on the machine is not its subject.
func fast(t *testing.T, limit time.Duration, do func()) {
	t.Helper()
	var took time.Duration
	for range 3 {
		began := time.Now()
		do()
		if took = time.Since(began); took <= limit {
			return
		}
	}
	t.Errorf("three times it took more than %s, %s at last", limit, took)
}

func field13(t *testing.T, f rowBox) {
	sh(t, f.env, "nohup sleep 4713 >/dev/null 2>&1 &")
	fast(t, 4*time.Second, func() {
		r := run(t, f.env, contract.Request{Command: "trap '' TERM INT; sleep 78 & sleep 79", Timeout: 2 * time.Second})
		if r.ExitCode != contract.ExitTimedOut {
			t.Errorf("%+v", r)
		}
		wants(t, f.env, "pgrep -fxc 'sleep (78|79)'; pgrep -fxc 'sleep 4713'", "0\n1\n")
	})
	sh(t, f.env, "pkill -fx 'sleep 4713'")
}

func field14(t *testing.T, f rowBox) {
	sh(t, f.env, "mkdir -p ~/gone/inner; cd ~/gone/inner; rm -rf ~/gone")
	wants(t, f.env, "pwd", "dockerbox: /home/pn/gone/inner no longer exists, running in /home/pn\n/home/pn\n")
	wants(t, f.env, "pwd", "/home/pn\n")
	// Deleted by another command than the one that entered it.
	sh(t, f.env, "mkdir ~/later; cd ~/later")
	sh(t, f.env, "rmdir ~/later")
	wants(t, f.env, "pwd", "dockerbox: /home/pn/later no longer exists, running in /home/pn\n/home/pn\n")
	wants(t, f.env, "pwd", "/home/pn\n")
}

func field15(t *testing.T, f rowBox) {
	sh(t, f.env, "mkdir -m 000 ~/locked")
	for _, dir := range []string{"/no/such", "/etc/passwd", "/home/pn/locked", "relative"} {
		r := run(t, f.env, contract.Request{Command: "echo hi", Dir: dir})
		if r.ExitCode != contract.ExitNotExecutable || !strings.Contains(string(r.Output), dir) || strings.Contains(string(r.Output), "hi\n") {
			t.Errorf("in %s: %d %q", dir, r.ExitCode, r.Output)
		}
		wants(t, f.env, "pwd", "/home/pn\n")
	}
}

func field16(t *testing.T, f rowBox) {
	cfg := contract.Defaults()
	cfg.Name = f.name
	for _, dir := range []string{`D:\.hermes`, "e:/x", "/Users/you/project", "relative"} {
		env, err := f.p.CreateEnvironment(t.Context(), cfg, dir)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if env.Info().Cwd != "/home/pn" {
			t.Errorf("%s: starts in %s", dir, env.Info().Cwd)
		}
		wants(t, env, "pwd", "/home/pn\n")
		if err := env.Cleanup(t.Context(), false); err != nil {
			t.Error(err)
		}
	}
}

func field17(t *testing.T, f rowBox) {
	fast(t, 500*time.Millisecond, func() {
		wants(t, f.env, "setsid sleep 4717 & disown; echo d", "d\n")
	})
	wants(t, f.env, "pgrep -fx 'sleep 4717' >/dev/null && pkill -fx 'sleep 4717' && echo was there", "was there\n")
}

func field18(t *testing.T, f rowBox) {
	docker(t, "rm", "-f", f.env.Info().ContainerID)
	r := run(t, f.env, contract.Request{Command: "pwd"})
	if r.ExitCode != 0 || !r.Recreated || string(r.Output) != "/home/pn\n" {
		t.Errorf("%+v", r)
	}
	if r := run(t, f.env, contract.Request{Command: "true"}); r.Recreated {
		t.Errorf("said twice: %+v", r)
	}
}

func field19(t *testing.T, f rowBox) {
	id := f.env.Info().ContainerID
	docker(t, "pause", id)
	unpaused := false
	unpause := func() {
		if !unpaused {
			unpaused = true
			docker(t, "unpause", id)
		}
	}
	defer unpause()
	_, err := f.env.Execute(t.Context(), contract.Request{Command: "echo hi"})
	var b *contract.BackendError
	if !errors.As(err, &b) || !strings.Contains(b.Reason, "paused") || !strings.Contains(b.Hint, "dockerbox unpause "+f.name) {
		t.Fatalf("%v", err)
	}
	for _, verb := range [][]string{{"run", f.name, "echo hi"}, {"exec", f.name, "true"}, {"up", f.name}} {
		if got := cli(t, verb...); got.status != contract.ExitBackend || got.stdout != "" || !strings.Contains(got.stderr, "dockerbox: hint: dockerbox unpause "+f.name+" lets it go on") {
			t.Errorf("%q: %+v", verb, got)
		}
	}
	unpause()
	wants(t, f.env, "echo hi", "hi\n")
}

// The value travels from the environment of dockerbox to the command, and is looked for everywhere else while that command runs.
func field23(t *testing.T, f rowBox) {
	secret := rand.Text()
	sh(t, f.env, "mkfifo ~/go")
	c := exec.CommandContext(t.Context(), dockerboxBinary(t), "run", "-e", "FWD1", f.name, `echo "${#FWD1}"; cat ~/go`)
	c.Env = append(os.Environ(), "FWD1="+secret)
	done := make(chan said, 1)
	ready := make(chan struct{})
	out := &trigger{want: "26\n", fire: sync.OnceFunc(func() { close(ready) })}
	c.Stdout = out
	go func() {
		err := c.Run()
		done <- said{out.got.String(), "", c.ProcessState.ExitCode()}
		if err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-ready:
	case got := <-done:
		t.Fatalf("it ended: %+v", got)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatalf("no command line in /proc: %v", err)
	}
	for _, path := range lines {
		words, err := os.ReadFile(path)
		if err == nil && bytes.Contains(words, []byte(secret)) { // one that is gone meanwhile had nothing to hide
			t.Errorf("%s: %q", path, words)
		}
	}
	if strings.Contains(docker(t, "inspect", f.env.Info().ContainerID), secret) {
		t.Error("docker inspect shows the value")
	}
	// The pattern goes in by standard input, or this search would find itself.
	search := func() string {
		c := exec.CommandContext(t.Context(), "docker", "exec", "-i", "-u", "0", f.env.Info().ContainerID, "sh", "-c",
			"p=$(cat); printf %s \"$p\" | grep -rslFf - --devices=skip /tmp /var/tmp /run /dev/shm /home /root /.dockerbox; printf %s \"$p\" | grep -aslFf - /proc/[0-9]*/cmdline; true")
		c.Stdin = strings.NewReader(secret)
		return programme(t, c).stdout
	}
	if found := search(); found != "" {
		t.Errorf("the value stands in %q", found)
	}
	sh(t, f.env, "echo >~/go")
	if got := <-done; got.status != 0 {
		t.Errorf("%+v", got)
	}
	wants(t, f.env, `echo "[$FWD1]"`, "[]\n")
	if r := run(t, f.env, contract.Request{Command: "echo \"$FWD1\" >~/found", Env: map[string]string{"FWD1": secret}}); r.ExitCode != 0 {
		t.Fatalf("%+v", r)
	}
	if found := search(); found != "/home/pn/found\n" {
		t.Errorf("a value that a command did write was found in %q", found)
	}
}

func field24(t *testing.T, f rowBox) {
	wants(t, f.env, "echo "+strings.Repeat("q", 200_000)+" | wc -c", "200001\n")
}

func field26(t *testing.T, f rowBox) {
	sh(t, f.env, "for i in $(seq 50); do (echo x >>~/ends) & done; for i in $(seq 50); do setsid sh -c 'echo x >>~/ends' & done")
	deadline := time.Now().Add(15 * time.Second)
	for {
		got := sh(t, f.env, "wc -l <~/ends; ps -eo stat= | grep -c '^Z' || true")
		if got == "100\n0\n" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("ended and undead: %q", got)
		}
	}
}

func field27(t *testing.T, f rowBox) {
	got := cli(t, "exec", "-u", "4242", f.name, "sh", "-c", "touch $HOME/p && echo $HOME")
	home := strings.TrimSpace(got.stdout)
	if got.status != 0 || !filepath.IsAbs(home) || home == "/" || got.stderr != "" {
		t.Errorf("%+v", got)
	}
}

func field32(t *testing.T, f rowBox) {
	wants(t, f.env, "set -euo pipefail; echo ok", "ok\n")
	wants(t, f.env, `echo "[$NOPE]"; false | true; false; echo on`, "[]\non\n")
}

func field33(t *testing.T, f rowBox) {
	wants(t, f.env, "cat <<EOF\nhello\nEOF", "hello\n")
	for _, command := range []string{"cat <<EOF\nhello", `echo "abc`, "if true; then", "(", "echo $((", "f() {"} {
		r := run(t, f.env, contract.Request{Command: command, Timeout: 20 * time.Second})
		if r.TimedOut || len(r.Output) == 0 {
			t.Errorf("%q: %+v", command, r)
		}
		wants(t, f.env, "echo fine", "fine\n")
	}
}

func field36(t *testing.T, f rowBox) {
	if got := cli(t, "run", "--json", f.name, `printf '\xff\x80z'`); got.status != 0 || !strings.Contains(got.stdout, `"output":"\ufffd\ufffdz"`) {
		t.Errorf("%+v", got)
	}
	sh(t, f.env, `printf '\xff\x80z' >~/bytes`)
	var file bytes.Buffer
	if err := f.env.FetchFile(t.Context(), "/home/pn/bytes", &file, 0); err != nil || file.String() != "\xff\x80z" {
		t.Errorf("%q %v", file.String(), err)
	}
}

func field37(t *testing.T, f rowBox) {
	r := run(t, f.env, contract.Request{Command: "head -c1", Stdin: bytes.NewReader(bytes.Repeat([]byte("x"), 20_000_000))})
	if r.ExitCode != 0 || string(r.Output) != "x" {
		t.Errorf("%d %.40q", r.ExitCode, r.Output)
	}
}

func field38(t *testing.T, f rowBox) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 200 {
		r, err := f.env.Execute(ctx, contract.Request{Command: "cat | wc -c", Stdin: strings.NewReader("")})
		if err != nil || r.ExitCode != 0 || string(r.Output) != "0\n" {
			t.Fatalf("time %d: %+v %v", i, r, err)
		}
	}
}

func field42(t *testing.T, f rowBox) {
	for _, tc := range []struct {
		words  []string
		status int
		names  string
	}{
		{[]string{"exec", f.name, "nosuch"}, 127, "nosuch"},
		{[]string{"exec", f.name, "/etc"}, 126, "/etc"},
		{[]string{"exec", "-w", "/nope", f.name, "true"}, 126, "/nope"},
		{[]string{"exec", "-w", "/root", f.name, "true"}, 126, "/root"},
	} {
		if got := cli(t, tc.words...); got.status != tc.status || got.stdout != "" || !strings.Contains(got.stderr, tc.names) {
			t.Errorf("%q: %+v, want %d", tc.words, got, tc.status)
		}
	}
}

// Rows about images, each built on dockerbox's own.
func TestFieldImages(t *testing.T) {
	t.Run("row25 an account that may not write to /tmp", func(t *testing.T) {
		env := onImage(t, 0, "USER root", "RUN chmod 0755 /tmp", "USER pn")
		wants(t, env, "test -w /tmp; echo $?; cd /usr; export A='x y'; f() { echo in f; }", "1\n")
		wants(t, env, `pwd; echo "$A"; f`, "/usr\nx y\nin f\n")
		// A host keeps the logs of background processes there.
		if out := sh(t, env, "t="+env.Info().TempDir+"; touch $t/x && echo $t"); out == "/tmp\n" {
			t.Errorf("the temporary directory is %q", out)
		}
	})
	t.Run("row30 a full /tmp", func(t *testing.T) {
		env := onImage(t, 1<<20, "USER root", "RUN rm -rf /tmp && ln -s /dev/shm /tmp", "USER pn")
		wants(t, env, "head -c 2000000 /dev/zero >/tmp/fill 2>/dev/null; echo x 2>&1 >/tmp/more | grep -o 'No space left'", "No space left\n")
		wants(t, env, "cd /usr; export A=1; f() { echo in f; }", "")
		wants(t, env, `pwd; echo "$A"; f`, "/usr\n1\nin f\n")
	})
	t.Run("row34 functions of the profile", func(t *testing.T) {
		env := onImage(t, 0, `RUN printf '%s\n' '_h() { echo in _h; }' 'w() { _h; }' 'alias al="echo in al"' >~/.profile`)
		for range 2 {
			wants(t, env, "w; al", "in _h\nin al\n")
		}
	})
	t.Run("row35 the image's PATH", func(t *testing.T) {
		env := onImage(t, 0, "USER root", `RUN mkdir -p /opt/t/bin && printf '#!/bin/sh\necho t ran\n' >/opt/t/bin/t && chmod 755 /opt/t/bin/t`,
			"USER pn", "ENV PATH=/opt/t/bin:/usr/local/bin:/usr/bin:/bin")
		wants(t, env, "command -v t; t", "/opt/t/bin/t\nt ran\n")
		if got := cli(t, "exec", env.Info().Name, "t"); got != (said{stdout: "t ran\n"}) {
			t.Errorf("%+v", got)
		}
	})
}

// An image without bash makes a sandbox for programs; a shell command is told what it lacks.
func TestFieldImageWithoutBash(t *testing.T) {
	tag := freshName("field-nobash")
	root := exec.CommandContext(t.Context(), "docker", "import", "-", tag)
	var rootfs bytes.Buffer
	w := tar.NewWriter(&rootfs)
	passwd := []byte("root:x:0:0::/root:/bin/sh\n")
	if err := w.WriteHeader(&tar.Header{Name: "etc/passwd", Mode: 0o644, Size: int64(len(passwd))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(passwd); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	root.Stdin = &rootfs
	if got := programme(t, root); got.status != 0 {
		t.Fatalf("import: %+v", got)
	}
	name := freshName("field")
	t.Cleanup(func() {
		removeSandboxes(t, name)
		if out, err := exec.Command("docker", "rmi", tag).CombinedOutput(); err != nil {
			t.Errorf("remove the image: %v\n%s", err, out)
		}
	})
	if got := cli(t, "up", "--image", tag, name); got.status != 0 {
		t.Fatalf("up: %+v", got)
	}
	if got := cli(t, "exec", name, "nosuch"); got.status != 127 {
		t.Errorf("exec: %+v", got)
	}
	got := cli(t, "run", name, "echo hi")
	lines := strings.Split(got.stderr, "\n")
	if got.status != contract.ExitBackend || got.stdout != "" || len(lines) != 3 || !strings.Contains(lines[0], "there is no bash in the sandbox") || !strings.Contains(lines[1], "hint: ") {
		t.Errorf("run: %+v", got)
	}
}

// onImage makes a sandbox from dockerbox's image and some more lines of a Dockerfile, with so much of /dev/shm; both go with the test.
func onImage(t *testing.T, shm int64, lines ...string) contract.Environment {
	t.Helper()
	tag := freshName("field-image")
	build := exec.CommandContext(t.Context(), "docker", "build", "-q", "-t", tag, "-")
	build.Env = append(os.Environ(), "DOCKER_BUILDKIT=0") // Debian's docker.io has no other builder
	build.Stdin = strings.NewReader("FROM dockerbox/desktop:latest\n" + strings.Join(lines, "\n") + "\n")
	if got := programme(t, build); got.status != 0 {
		t.Fatalf("build: %+v", got)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "rmi", tag).CombinedOutput(); err != nil {
			t.Errorf("remove the image: %v\n%s", err, out)
		}
	})
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name, cfg.Image = uniqueName(t, p), tag
	if shm > 0 {
		cfg.ShmBytes = shm
	}
	return create(t, p, cfg)
}

func TestFieldRow45EightAtOnceGiveOneSandbox(t *testing.T) {
	name := freshName("field")
	t.Cleanup(func() { removeSandboxes(t, name) })
	var (
		all  sync.WaitGroup
		lock sync.Mutex
		ids  []string
	)
	for range 8 {
		all.Go(func() {
			got := cli(t, "up", name)
			_, rest, _ := strings.Cut(got.stdout, "\nid ")
			id, _, found := strings.Cut(strings.TrimLeft(rest, " "), "\n")
			if got.status != 0 || !found {
				t.Errorf("%+v", got)
			}
			lock.Lock()
			defer lock.Unlock()
			ids = append(ids, id)
		})
	}
	all.Wait()
	here := strings.Fields(docker(t, "ps", "-aq", "--filter", "label=dev.dockerbox.name="+name))
	if ids = slices.Compact(slices.Sorted(slices.Values(ids))); len(here) != 1 || len(ids) != 1 || ids[0] != here[0] {
		t.Errorf("there are %q, up printed %q", here, ids)
	}
}
