package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Protocol is the version both sides name in their hello. It grows when an older peer would misunderstand.
const Protocol = 1

// Limits on one frame's payload, in bytes.
const (
	// MaxFromAgent is the most the host accepts: nothing an agent sends is longer, so a longer frame is a broken or hostile agent.
	MaxFromAgent = 1 << 20
	// MaxFromHost is the most an agent accepts: a whole command text with its variables travels in one frame.
	MaxFromHost = 64 << 20
	// MaxData is the most that one Input, Output or Errors frame carries.
	MaxData = 256 << 10
	// MaxHello bounds the first frame in either direction.
	MaxHello = 16 << 10
)

// Window is the number of bytes of Output and Errors (together) or of Input that may be under way for one command before the
// receiver grants more with a Credit frame. Each direction starts with this much.
const Window = 1 << 20

// Type says what a frame is.
type Type byte

// Frame types. ID is the command's number, or 0 for Hello.
const (
	TypeHello  Type = 'H' // both ways, first frame; payload Hello
	TypeRun    Type = 'R' // host → agent; payload Run
	TypeInput  Type = 'I' // host → agent; bytes for standard input
	TypeEnd    Type = 'E' // host → agent; end of standard input, no payload; for a Dial both ways
	TypeKill   Type = 'K' // host → agent; end the whole tree, no payload
	TypeOutput Type = 'O' // agent → host; bytes of stdout, or of both streams in order
	TypeErrors Type = 'P' // agent → host; bytes of stderr when Run.Split
	TypeExit   Type = 'X' // agent → host, last frame of its ID; payload Exit
	TypeCredit Type = 'W' // both ways; payload is a big-endian uint32 of bytes granted
	TypeResize Type = 'S' // host → agent; payload Size, of the terminal of a Run that has one
	TypeDial   Type = 'D' // host → agent; payload Dial
	TypeQuery  Type = 'Q' // host → agent; payload Query
	TypeAnswer Type = 'A' // agent → host; payload Answer, to a Query or a Dial
)

// header is u32 length of what follows it, u8 type, u32 id.
const (
	lengthSize = 4
	restSize   = 5
	headerSize = lengthSize + restSize
)

// Frame is one message. A Frame from a Reader is valid until the next call of Next.
type Frame struct {
	Type    Type
	ID      uint32
	Payload []byte
}

// ErrTooLong is returned for a frame above the reader's limit, ErrTooShort for one whose length cannot hold its own header.
var (
	ErrTooLong  = errors.New("frame is longer than the limit")
	ErrTooShort = errors.New("frame is shorter than its header")
)

// Reader decodes frames. Not safe for concurrent use.
type Reader struct {
	r   *bufio.Reader
	max int
	buf []byte
}

// ahead is how much a Reader reads at once while it does not know a frame's size. Small frames come many at a time; of a large one, which
// is read straight into its buffer, this much is copied once more.
const ahead = 16 << 10

// NewReader reads frames from r with payloads of at most limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, ahead), max: limit}
}

// SetLimit changes the limit for the frames that follow.
func (r *Reader) SetLimit(limit int) { r.max = limit }

// keep is the largest buffer a Reader holds on to between frames.
const keep = 512 << 10

// Next returns the next frame. At a clean end between frames the error is io.EOF, inside one io.ErrUnexpectedEOF. After any
// error the stream is lost.
func (r *Reader) Next() (Frame, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r.r, h[:]); err != nil {
		return Frame{}, err
	}
	n := binary.BigEndian.Uint32(h[:lengthSize])
	if n < restSize {
		return Frame{}, fmt.Errorf("%w: length %d", ErrTooShort, n)
	}
	size := uint64(n) - restSize
	if size > uint64(r.max) {
		return Frame{}, fmt.Errorf("%w: %d bytes of at most %d", ErrTooLong, size, r.max)
	}
	payload, err := r.read(int(size))
	if err != nil {
		return Frame{}, err
	}
	return Frame{Type: Type(h[lengthSize]), ID: binary.BigEndian.Uint32(h[lengthSize+1:]), Payload: payload}, nil
}

// read fills a buffer of size bytes. It grows with what arrives, so that a length alone, without the bytes, costs no memory.
func (r *Reader) read(size int) ([]byte, error) {
	if cap(r.buf) > keep {
		r.buf = nil
	}
	buf := r.buf[:0]
	for len(buf) < size {
		step := min(size-len(buf), max(len(buf), keep))
		if room := cap(buf) - len(buf); room >= step {
			buf = buf[:len(buf)+step] // append would clear what is about to be overwritten
		} else {
			buf = append(buf, make([]byte, step)...)
		}
		if _, err := io.ReadFull(r.r, buf[len(buf)-step:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	r.buf = buf
	return buf, nil
}

// Append encodes f behind b.
func Append(b []byte, f Frame) []byte {
	return append(appendHeader(b, f.Type, f.ID, len(f.Payload)), f.Payload...)
}

func appendHeader(b []byte, t Type, id uint32, size int) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(size+restSize))
	b = append(b, byte(t))
	return binary.BigEndian.AppendUint32(b, id)
}

// Vectored is a stream that takes several pieces as if they were one, as writev does.
type Vectored interface {
	WriteVector(pieces net.Buffers) error
}

// vectorFrom is from which size on a payload is worth a vector instead of a copy.
const vectorFrom = 32 << 10

// Writer encodes frames. Safe for concurrent use: the frames of one call stay together and go out in one write.
type Writer struct {
	mu     sync.Mutex
	w      io.Writer
	vector Vectored // nil when w is none
	buf    []byte
	err    error
}

// NewWriter writes frames to w. Large payloads are not copied when w is [Vectored].
func NewWriter(w io.Writer) *Writer {
	vector, _ := w.(Vectored)
	return &Writer{w: w, vector: vector}
}

// Write sends frames. The first error is final: every later call returns it.
func (w *Writer) Write(frames ...Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	b := w.buf[:0]
	if n := len(frames); n > 0 && w.vector != nil && len(frames[n-1].Payload) >= vectorFrom {
		last := frames[n-1]
		for _, f := range frames[:n-1] {
			b = Append(b, f)
		}
		b = appendHeader(b, last.Type, last.ID, len(last.Payload))
		w.buf = b
		w.err = w.vector.WriteVector(net.Buffers{b, last.Payload})
		return w.err
	}
	for _, f := range frames {
		b = Append(b, f)
	}
	if cap(b) <= keep {
		w.buf = b
	}
	_, w.err = w.w.Write(b)
	return w.err
}

// WriteBy sends a frame of n bytes of payload that send writes, behind the header it is given and in one go. Its error is as final as the
// stream's own.
func (w *Writer) WriteBy(t Type, id uint32, n int, send func(header []byte) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = send(appendHeader(nil, t, id, n))
	}
	return w.err
}

// Credit is a frame that grants n more bytes to id.
func Credit(id uint32, n int) Frame {
	return Frame{Type: TypeCredit, ID: id, Payload: binary.BigEndian.AppendUint32(nil, uint32(n))}
}

// ParseCredit returns the bytes a Credit frame grants.
func ParseCredit(f Frame) (int, error) {
	if len(f.Payload) != 4 {
		return 0, fmt.Errorf("credit frame with %d bytes", len(f.Payload))
	}
	n := binary.BigEndian.Uint32(f.Payload)
	if n > MaxFromHost {
		return 0, fmt.Errorf("credit of %d bytes", n)
	}
	return int(n), nil
}
