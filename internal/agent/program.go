//go:build linux

package agent

import (
	"os"
	"strconv"
	"syscall"
)

// newProgram starts r's words in dir as id. Their environment is that of a login with this command's variables over it: lasting exports
// are the shell's alone.
func newProgram(id identity, base *snapshot, r *run, dir, how, fallback string) (*child, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	c, files, theirs, err := r.streams(id, null)
	if err != nil {
		return nil, err
	}
	defer closeAll(theirs)
	give(c.mark)
	argv := []string{execShim, strconv.FormatUint(c.mark, 10), dir, how, fallback}
	for _, word := range r.req.Argv {
		argv = append(argv, string(word))
	}
	var special []func(*syscall.SysProcAttr)
	if r.terminal != nil {
		special = append(special, controlling)
	}
	c.process, err = id.launch(argv, r.environ(base), files, special...)
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// streams makes what carries r's input, output and status: c holds our ends, files are the program's, and theirs are to be closed once it
// has them. null is its standard input when nobody announced any.
func (r *run) streams(id identity, null *os.File) (c *child, files map[int]*os.File, theirs []*os.File, err error) {
	if r.terminal != nil {
		return r.terminal.streams(id)
	}
	const stdin, status, stdout, stderr = 0, 1, 2, 3
	split := r.req.Split
	mine, theirs, err := pipes(id.uid, id.gid, []bool{false, true, true, true}[:outputs(split, stderr)]...)
	if err != nil {
		return nil, nil, nil, err
	}
	c = &child{mark: nextMark(), stdin: mine[stdin], stdout: mine[stdout], status: mine[status]}
	files = map[int]*os.File{0: null, 1: theirs[stdout], 2: theirs[stdout], fdStatus: theirs[status]}
	if r.in != nil {
		files[0] = theirs[stdin]
	}
	if split {
		c.stderr, files[2] = mine[stderr], theirs[stderr]
	}
	return c, files, theirs, nil
}
