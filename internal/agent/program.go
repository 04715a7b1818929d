//go:build linux

package agent

import (
	"os"
	"strconv"
)

// newProgram starts r's words in dir as id. Their environment is that of a login with this command's variables over it: lasting exports
// are the shell's alone.
func newProgram(id identity, base *snapshot, r *run, dir, how, fallback string) (*child, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	const stdin, status, stdout, stderr = 0, 1, 2, 3
	split := r.req.Split
	mine, theirs, err := pipes(id.uid, id.gid, []bool{false, true, true, true}[:outputs(split, stderr)]...)
	if err != nil {
		return nil, err
	}
	defer closeAll(theirs)
	c := &child{mark: nextMark(), stdin: mine[stdin], stdout: mine[stdout], status: mine[status]}
	files := map[int]*os.File{0: null, 1: theirs[stdout], 2: theirs[stdout], fdStatus: theirs[status]}
	if r.in != nil {
		files[0] = theirs[stdin]
	}
	if split {
		c.stderr, files[2] = mine[stderr], theirs[stderr]
	}
	give(c.mark)
	argv := []string{execShim, strconv.FormatUint(c.mark, 10), dir, how, fallback}
	for _, word := range r.req.Argv {
		argv = append(argv, string(word))
	}
	c.process, err = id.launch(argv, base.environ(r.req.Env), files)
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}
