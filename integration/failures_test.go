//go:build integration

package integration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Everything that can go wrong in the hands of whoever uses dockerbox is a row of a table: what was typed, and the two lines that answer.
// Each row has a sandbox name, a home and a temporary directory of its own, and must leave nothing: no container, volume, file or process.

// badInput is a row. In every text {box} stands for the row's sandbox name, {container} and {volume} for the names of its container and its home's volume, {id} for any container's id, {dir} for its
// directory and {cpus} for how many the daemon's machine has.
type badInput struct {
	name string
	args []string
	// environ is added to an environment that has only PATH, HOME, TMPDIR and what chooses the tests' daemon.
	environ []string
	// prepare makes what the row needs, and what is gone at the test's end. It returns what further places stand for, such as {socket}.
	prepare func(t *testing.T, c *failure) []string
	// edit changes the command before it is started, after the rest is set.
	edit  func(c *exec.Cmd)
	stdin string

	status int
	// err and hint are the two lines, exactly, without their beginnings; err alone empty means the one line said.
	err, hint string
	// notes are lines before these.
	notes string
	// said is the whole of standard error for what is no failure of dockerbox's, such as a command that is not found.
	said string
	// stdout is for rows where a part of what was asked for is done.
	stdout string
	// goes says that the row removes its sandbox.
	goes bool
}

// failure is a row at work.
type failure struct {
	badInput
	box, dir string
	places   []string // for strings.NewReplacer
}

// caseLimit bounds a row from outside: none of them waits for anything but a daemon that is silent, which is given up after 10 s.
const caseLimit = time.Minute

// objectName is the name of a sandbox's container, or with another beginning of its volume: see provider/identity.go.
func objectName(prefix, box string) string {
	sum := sha256.Sum256([]byte("\x00" + box))
	return prefix + box + "-" + hex.EncodeToString(sum[:6])
}

// fill puts the row's own names into a text.
func (f *failure) fill(text string) string { return strings.NewReplacer(f.places...).Replace(text) }

// runFailures runs rows side by side.
func runFailures(t *testing.T, rows []badInput) {
	t.Helper()
	before := helpers(t)
	t.Run("row", func(t *testing.T) { runRows(t, rows) })
	noHelpers(t, before) // after the rows: the group ends when its last one does
}

func runRows(t *testing.T, rows []badInput) {
	t.Helper()
	seen := map[string]bool{}
	for _, row := range rows {
		if seen[row.name] {
			t.Errorf("two rows are called %q", row.name)
		}
		seen[row.name] = true
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			runFailure(t, row)
		})
	}
}

func runFailure(t *testing.T, row badInput) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fail") //nolint:usetesting // t.TempDir is named by the row, and then too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	f := &failure{badInput: row, box: freshName("fail"), dir: dir}
	f.places = []string{"{box}", f.box, "{container}", objectName("dockerbox-", f.box), "{volume}", objectName("dockerbox-home-", f.box), "{dir}", f.dir, "{cpus}", strconv.Itoa(theDaemon(t).cpus)}
	for _, made := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(f.dir, made), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if row.prepare != nil {
		f.places = append(f.places, row.prepare(t, f)...)
	}
	before := traces(t, f)
	got := f.run(t)
	want := said{stdout: f.fill(row.stdout), stderr: f.fill(row.said), status: row.status}
	if row.err != "" {
		want.stderr = f.fill(fmt.Sprintf("%sdockerbox: error: %s\ndockerbox: hint: %s\n", row.notes, row.err, row.hint))
	}
	if got.status != want.status || got.stdout != want.stdout || !same(got.stderr, want.stderr) {
		t.Errorf("status %d, want %d\n got  %q\n want %q", got.status, want.status, got.stderr, want.stderr)
		if got.stdout != want.stdout {
			t.Errorf("stdout %q, want %q", got.stdout, want.stdout)
		}
	}
	if row.goes {
		before = slices.DeleteFunc(before, func(trace string) bool { return !strings.HasPrefix(trace, "file ") })
	}
	if after := traces(t, f); !slices.Equal(before, after) {
		t.Errorf("it left something:\n before %q\n after  %q", before, after)
		removeSandboxes(t, f.box)
	}
	noProcess(t, f)
}

// same compares what was said with what should be: {id} stands for any short id of a container.
func same(got, want string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), `\{id\}`, `[0-9a-f]{12}`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(got)
}

// run is one command line of the row.
func (f *failure) run(t *testing.T) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), caseLimit)
	defer cancel()
	args := slices.Clone(f.args)
	for i := range args {
		args[i] = f.fill(args[i])
	}
	c := exec.CommandContext(ctx, dockerboxBinary(t), args...)
	c.Env = f.environment()
	c.Stdin = strings.NewReader(f.fill(f.stdin))
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	c.WaitDelay = 5 * time.Second
	if f.edit != nil {
		f.edit(c)
	}
	err := c.Run()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) || ctx.Err() != nil {
		t.Fatalf("%q: %v (%v)\n%s", c.Args, err, ctx.Err(), stderr.Bytes())
	}
	return said{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// environment is what a row's command sees. DOCKERBOX_CASE marks it and all it starts.
func (f *failure) environment() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(f.dir, "home"), "TMPDIR=" + filepath.Join(f.dir, "tmp"), f.mark(),
	}
	for _, name := range dockerVariables {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	if home, err := os.UserHomeDir(); err == nil && os.Getenv("DOCKER_CONFIG") == "" {
		env = append(env, "DOCKER_CONFIG="+filepath.Join(home, ".docker")) // the current context is chosen there
	}
	for _, variable := range f.environ {
		env = append(env, f.fill(variable)) // later ones win
	}
	return env
}

func (f *failure) mark() string { return "DOCKERBOX_CASE=" + f.box }

// traces lists what a row could have left: containers and volumes that carry its name, and files below its directory. Others work on the
// same daemon, so nothing else is compared; helper containers, which carry nobody's name, are looked for at the end of all rows.
func traces(t *testing.T, f *failure) []string {
	t.Helper()
	found := slices.DeleteFunc(theDaemon(t).objects(t), func(object string) bool { return !strings.Contains(object, f.box) })
	err := filepath.WalkDir(f.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found = append(found, fmt.Sprintf("file %s %s %d", path, info.Mode(), info.ModTime().UnixNano()))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// patience bounds how long something that is ending may take to be gone.
const patience = 15 * time.Second

// noProcess wants everything that the row started to be gone: it has the mark in its environment.
func noProcess(t *testing.T, f *failure) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		alive := marked(t, f.mark())
		if len(alive) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("processes are left: %q", alive)
			return
		}
	}
}

// marked lists the command lines of the processes with that variable.
func marked(t *testing.T, variable string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(all) == 0 {
		t.Fatalf("no process in /proc: %v", err)
	}
	var found []string
	for _, path := range all {
		env, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), variable) { // one that is gone has left nothing
			continue
		}
		words, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err == nil {
			found = append(found, strings.ReplaceAll(string(words), "\x00", " "))
		}
	}
	return found
}

// helpers lists the containers that dockerbox looks into images with.
func helpers(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(theDaemon(t).objects(t), func(object string) bool { return !strings.HasPrefix(object, "container /dockerbox-helper-") })
}

// noHelpers wants those to be gone that were not there before. Others make and remove some meanwhile, so they get time to go.
func noHelpers(t *testing.T, before []string) {
	t.Helper()
	left := slices.DeleteFunc(helpers(t), func(id string) bool { return slices.Contains(before, id) })
	for deadline := time.Now().Add(2 * patience); len(left) > 0; {
		now := helpers(t)
		left = slices.DeleteFunc(left, func(id string) bool { return !slices.Contains(now, id) })
		if time.Now().After(deadline) {
			t.Errorf("helper containers are left: %q", left)
			return
		}
	}
}

// write puts a file below the row's directory and returns its path.
func (f *failure) write(t *testing.T, name, text string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// ok runs a command line that has to work, for what a row needs beforehand.
func (f *failure) ok(t *testing.T, args ...string) {
	t.Helper()
	before := f.args
	f.args = args
	defer func() { f.args = before }()
	edit, environ := f.edit, f.environ
	f.edit, f.environ = nil, nil
	defer func() { f.edit, f.environ = edit, environ }()
	if got := f.run(t); got.status != 0 {
		t.Fatalf("%q: %+v", args, got)
	}
}

// sandbox makes the row's sandbox, which goes with the test.
func (f *failure) sandbox(t *testing.T, flags ...string) {
	t.Helper()
	t.Cleanup(func() { removeSandboxes(t, f.box) })
	f.ok(t, append(append([]string{"up"}, flags...), f.box)...)
}
