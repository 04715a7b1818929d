package environment

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// call is one command or one connection to a port under way on a conn. The conn's reader fills it; the goroutine in Execute consumes, or
// whoever reads from the connection.
type call struct {
	id uint32

	mu      sync.Mutex
	wake    chan struct{} // holds one token when something below changed
	pending []piece       // output not yet consumed
	spare   []byte        // storage of consumed output, reused
	owed    int           // bytes consumed and not yet granted back
	given   int           // bytes the agent may still send
	credit  int           // bytes of input the agent still takes
	eof     bool          // no more output comes; of a connection alone
	discard bool          // nobody wants output any more
	over    bool
	exit    wire.Exit
	err     error
	input   error      // why standard input could not be read to its end
	inputOK *sync.Cond // credit or over changed
}

// piece is a run of output of one stream.
type piece struct {
	kind wire.Type
	data []byte
}

func newCall() *call {
	k := &call{wake: make(chan struct{}, 1), given: wire.Window, credit: wire.Window}
	k.inputOK = sync.NewCond(&k.mu)
	return k
}

func (k *call) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// maxPieces bounds what is kept besides the bytes themselves. Beyond it the order between the two streams is given up, not that of either.
const maxPieces = 1024

// deliver takes output from the reader. An agent that sends more than it was granted loses the connection.
func (k *call) deliver(kind wire.Type, data []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(data) > k.given {
		return fmt.Errorf("the agent sent %d bytes of output with %d granted", len(data), k.given)
	}
	if len(data) == 0 {
		return nil // or empty frames, which cost no credit, could fill the memory
	}
	k.given -= len(data)
	if k.discard {
		return nil
	}
	n := len(k.pending)
	if n >= maxPieces && k.pending[n-1].kind != kind {
		n-- // the one before is of the other kind
	}
	if n > 0 && k.pending[n-1].kind == kind {
		k.pending[n-1].data = append(k.pending[n-1].data, data...)
	} else {
		k.pending = append(k.pending, piece{kind, append(k.spare[:0], data...)})
		k.spare = nil
	}
	k.signal()
	return nil
}

// take gives the consumer what arrived, and whether the command is over (then nothing follows).
func (k *call) take() (pieces []piece, over bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pieces, k.pending = k.pending, nil
	return pieces, k.over
}

// grantAfter is how much consumed output is gathered before the agent hears of it: a short command costs no Credit frame.
const grantAfter = wire.Window / 8

// consumed returns storage and says how many bytes to grant the agent now, usually none.
func (k *call) consumed(pieces []piece) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range pieces {
		k.owed += len(p.data)
		if cap(p.data) <= wire.Window {
			k.spare = p.data[:0]
		}
	}
	if k.owed < grantAfter || k.over {
		return 0
	}
	n := k.owed
	k.owed = 0
	k.given += n
	return n
}

// grant takes the agent's permission for n more bytes of input.
func (k *call) grant(n int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.credit += n; k.credit > wire.MaxFromHost {
		return errors.New("the agent granted more input than a command can take")
	}
	k.inputOK.Broadcast()
	return nil
}

// end marks the end of a connection's output.
func (k *call) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.eof = true
	k.signal()
}

func (k *call) isOver() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.over
}

// finish ends the call. The first end counts.
func (k *call) finish(x wire.Exit, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return
	}
	k.over, k.exit, k.err = true, x, err
	k.inputOK.Broadcast()
	k.signal()
}

// feed copies in to the command until its end, within the credit the agent gives. It ends early when the command is over: one that
// does not read its input to the end is no fault.
func (k *call) feed(out *wire.Writer, in io.Reader) {
	buf := wire.Buffer()
	defer wire.Recycle(buf)
	for {
		most := k.mayFeed(len(buf))
		if most == 0 {
			return
		}
		n, err := in.Read(buf[:most])
		frames := make([]wire.Frame, 0, 2)
		if n > 0 {
			frames = append(frames, wire.Frame{Type: wire.TypeInput, ID: k.id, Payload: buf[:n]})
		}
		if err != nil {
			frames = append(frames, wire.Frame{Type: wire.TypeEnd, ID: k.id})
		}
		if !k.fed(n, err) || out.Write(frames...) != nil || err != nil {
			return
		}
	}
}

// mayFeed waits until the agent takes input and returns how much, at most limit. 0 means that the command is over.
func (k *call) mayFeed(limit int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.credit == 0 && !k.over {
		k.inputOK.Wait()
	}
	if k.over {
		return 0
	}
	return min(k.credit, limit)
}

// fed accounts for what was read, before the agent hears of it, and reports whether the command still wants it.
func (k *call) fed(n int, err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.credit -= n
	if err != nil && !errors.Is(err, io.EOF) {
		k.input = err
	}
	return !k.over
}
