//go:build linux

package agent

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// child is a started command: its process and our ends of its pipes. Fields that do not apply are nil.
type child struct {
	*process
	mark           uint64
	stdin          *os.File
	stdout, stderr *os.File // stderr only when kept apart
	status         *os.File
	terminal       bool // the first three are a pseudo-terminal's
	survived       bool // something of it did not end; kill says
}

// close lets go of the pipes that are still held.
func (c *child) close() { closeAll([]*os.File{c.stdin, c.stdout, c.stderr, c.status}) }

// shell is a bash that has its state loaded, or is about to, and waits for one command.
type shell struct {
	child
	from    *snapshot
	id      identity
	text    *os.File // where bash reads the command; our writes do not move its offset
	trigger *os.File
}

// job is what a waiting shell is to run; see the fields of fdText in boot.go.
type job struct {
	input                      bool
	dir, how, fallback, oldpwd string
	env                        map[string]string
	text                       string
}

// newShell starts a bash with state from as id. It returns as soon as the process exists: what it still has to do is read in order.
func newShell(id identity, bash string, from *snapshot, split bool) (*shell, error) {
	env, prelude := from.prelude()
	if bash == "" {
		return nil, errNoBash
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	load, err := memfd(boot + "\x00" + prelude)
	if err != nil {
		return nil, err
	}
	defer load.Close()
	text, err := memfd("")
	if err != nil {
		return nil, err
	}
	const input, trigger, status, stdout, stderr = 0, 1, 2, 3, 4
	mine, theirs, err := pipes(id.uid, id.gid, []bool{false, false, true, true, true}[:outputs(split, stderr)]...)
	if err != nil {
		_ = text.Close() // nothing was written yet
		return nil, err
	}
	defer closeAll(theirs)
	s := &shell{from: from, id: id, text: text, trigger: mine[trigger]}
	s.child = child{mark: nextMark(), stdin: mine[input], stdout: mine[stdout], status: mine[status]}
	errors := theirs[stdout]
	if split {
		s.stderr, errors = mine[stderr], theirs[stderr]
	}
	s.process, err = id.launch(
		append([]string{shellShim, strconv.FormatUint(s.mark, 10), bash}, shellArgs(loader)...), env,
		map[int]*os.File{
			0: null, 1: theirs[stdout], 2: errors, fdInput: theirs[input], fdStatus: theirs[status],
			fdPrelude: load, fdText: text, fdTrigger: theirs[trigger],
		})
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// outputs counts the pipes up to and including stderr, or without it when it shares stdout's.
func outputs(split bool, stderr int) int {
	if split {
		return stderr + 1
	}
	return stderr
}

// shellArgs is bash's argv with code as its command. $0 is bash.
func shellArgs(code string) []string {
	return []string{"bash", "--norc", "--noprofile", "-c", code, "bash"}
}

var errNoBash = errors.New("there is no bash in the sandbox (looked for in /bin, /usr/bin, /usr/local/bin and PATH)")

// run hands the shell its command. Once it returned nil the command may have begun.
func (s *shell) run(j job) error {
	input := ""
	if j.input {
		input = "1"
	}
	var b []byte
	for _, f := range []string{input, j.dir, j.how, j.fallback, j.setup(s.from), j.text} {
		b = append(append(b, f...), 0)
	}
	if _, err := s.text.WriteAt(b, 0); err != nil {
		return fmt.Errorf("hand over the command: %w", err)
	}
	give(s.mark)
	_, err := s.trigger.Write([]byte("go\x00"))
	_ = s.trigger.Close() // written through or lost already
	return err
}

// setup is what comes before the text: OLDPWD, which entering the directory has changed, this command's variables, and the trap guard.
func (j job) setup(from *snapshot) string {
	b := "builtin unset OLDPWD\nbuiltin export OLDPWD\n"
	if j.oldpwd != "" {
		b = "builtin export OLDPWD=" + quote(j.oldpwd) + "\n"
	}
	for name, value := range j.env {
		b += "builtin export " + name + "=" + quote(value) + "\n"
	}
	if from.guards(j.text) {
		b += guardTrap + "\n"
	}
	if strings.Contains(j.text, "builtin") && definesBuiltin.MatchString(j.text) {
		b += "__dockerbox_builtin=1\n"
	}
	return b
}

// begun reports whether an ended shell had read the command. If not, somebody ended it while it waited, and another can take its place.
// Its descriptor shares the offset with ours.
func (s *shell) begun() bool {
	offset, err := s.text.Seek(0, unix.SEEK_CUR)
	return err != nil || offset > 0
}

// close lets go of everything but the process.
func (s *shell) close() {
	s.child.close()
	closeAll([]*os.File{s.text, s.trigger})
}

// discard ends a shell that has not been given a command. It has no children yet that could outlive it.
func (s *shell) discard() {
	s.signal(unix.SIGKILL)
	s.close()
}
