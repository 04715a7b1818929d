//go:build linux

package enginetest

import (
	"context"

	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// Op is a kind of call that a daemon answers.
type Op string

// The kinds of calls.
const (
	OpPing         Op = "ping"
	OpInfo         Op = "info"
	OpVersion      Op = "version"
	OpCreate       Op = "create"
	OpStart        Op = "start"
	OpInspect      Op = "inspect"
	OpList         Op = "list"
	OpUpdate       Op = "update"
	OpKill         Op = "kill"
	OpRemove       Op = "remove"
	OpReadFile     Op = "read file"
	OpFileSize     Op = "file size"
	OpWriteFile    Op = "write file"
	OpExec         Op = "exec"
	OpImage        Op = "image"
	OpPull         Op = "pull"
	OpBuild        Op = "build"
	OpDeleteImage  Op = "delete image"
	OpCreateVolume Op = "create volume"
	OpRemoveVolume Op = "remove volume"
	OpVolume       Op = "volume"

	OpFreeze         Op = "freeze"
	OpThaw           Op = "thaw"
	OpLogs           Op = "logs"
	OpStats          Op = "stats"
	OpWrittenSize    Op = "written size"
	OpListVolumes    Op = "list volumes"
	OpVolumeSizes    Op = "volume sizes"
	OpNamelessImages Op = "nameless images"

	OpVolumeUsers     Op = "volume users"
	OpMakeDirectories Op = "make directories"
)

// faults is what is to go wrong, guarded by the engine's mu.
type faults struct {
	fail   map[Op][]error
	before map[Op][]func()
	down   bool
	cut    int64 // bytes a stream opened from now on gives; negative: all
	calls  []Op
}

func newFaults() faults {
	return faults{fail: map[Op][]error{}, before: map[Op][]func(){}, cut: -1}
}

// Fail makes the next call of op fail with err; called again, the one after that too. A nil err lets one pass.
func (e *Engine) Fail(op Op, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults.fail[op] = append(e.faults.fail[op], err)
}

// Before has f run before the next call of op does anything, in its caller's goroutine: the moment in which somebody else is faster. Called
// again, it is for the call after that.
func (e *Engine) Before(op Op, f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults.before[op] = append(e.faults.before[op], f)
}

// Down sets whether the daemon answers at all. Containers and open streams go on, as they may while a daemon restarts.
func (e *Engine) Down(down bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults.down = down
}

// CutAfter makes each stream that is opened from now on break after it gave n bytes to its reader. Negative: none does.
func (e *Engine) CutAfter(n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults.cut = n
}

// Calls counts the calls of op so far, failed ones included.
func (e *Engine) Calls(op Op) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, call := range e.faults.calls {
		if call == op {
			n++
		}
	}
	return n
}

// enter begins a call: it gives the fault that is due.
func (e *Engine) enter(ctx context.Context, op Op) error {
	e.mu.Lock()
	e.faults.calls = append(e.faults.calls, op)
	var first func()
	if hooks := e.faults.before[op]; len(hooks) > 0 {
		first = hooks[0]
		e.faults.before[op] = hooks[1:]
	}
	e.mu.Unlock()
	if first != nil {
		first()
	}
	if err := ctx.Err(); err != nil {
		return failure(err, "%s: no answer in time", op)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.faults.down {
		return failure(engine.ErrUnreachable, "%s: the daemon does not answer", op)
	}
	if errs := e.faults.fail[op]; len(errs) > 0 {
		e.faults.fail[op] = errs[1:]
		return errs[0]
	}
	return nil
}
