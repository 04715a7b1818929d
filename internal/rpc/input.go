package rpc

import (
	"io"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// grantStep is how much input a command consumes before credit for it is sent: far below InputWindow, so nobody waits for it, and
// far above a line's cost.
const grantStep = 256 << 10

// input is the standard input of one command, filled by notifications and read by the environment. It is bounded by the credit
// the client has.
type input struct {
	grant func(n int64) // sends credit; may block on the stream, so it is called without the lock

	mu       sync.Mutex
	changed  sync.Cond
	chunks   [][]byte // guarded by mu
	at       int      // bytes of the first chunk that were read
	size     int      // bytes in chunks
	consumed int      // bytes read and not yet granted
	eof      bool     // no more will come
	closed   bool     // nobody reads any more
}

func newInput(grant func(int64)) *input {
	in := &input{grant: grant}
	in.changed.L = &in.mu
	return in
}

// push queues data. It never blocks, and reports false when the client sent more than it had credit for.
func (in *input) push(data []byte, eof bool) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || in.eof {
		return true
	}
	if in.size+in.consumed+len(data) > InputWindow {
		return false
	}
	if len(data) > 0 {
		in.chunks = append(in.chunks, data)
		in.size += len(data)
	}
	in.eof = eof
	in.changed.Signal()
	return true
}

// Read waits for input. The end of input and the end of the command are both io.EOF.
func (in *input) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	in.mu.Lock()
	for len(in.chunks) == 0 && !in.eof && !in.closed {
		in.changed.Wait()
	}
	if in.closed || len(in.chunks) == 0 {
		in.mu.Unlock()
		return 0, io.EOF
	}
	n := 0
	for len(in.chunks) > 0 && n < len(p) {
		m := copy(p[n:], in.chunks[0][in.at:])
		n += m
		if in.at += m; in.at == len(in.chunks[0]) {
			wire.Recycle(in.chunks[0])
			in.chunks[0] = nil
			in.chunks, in.at = in.chunks[1:], 0
		}
	}
	in.size -= n
	in.consumed += n
	grant := 0
	if in.consumed >= grantStep && !in.eof {
		grant, in.consumed = in.consumed, 0
	}
	in.mu.Unlock()
	if grant > 0 {
		in.grant(int64(grant))
	}
	return n, nil
}

// close ends a Read that waits and drops what is queued.
func (in *input) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed, in.chunks, in.size = true, nil, 0
	in.changed.Broadcast()
}
