package rpc

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// errLineTooLong is returned for a line above the limit, after it was read to its end: the next line can be read.
var errLineTooLong = errors.New("line is longer than the limit")

// lineReader cuts a stream into lines. Not safe for concurrent use.
type lineReader struct {
	r   *bufio.Reader
	max int
}

// readBuffer holds the common lines, so that they are never copied. Of bulk that follows a line, this much is copied once more.
const readBuffer = 32 << 10

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, readBuffer), max: limit}
}

// next returns a line without its end, valid until the next call. A last line without an end is a line too. Memory grows only
// with bytes that arrived.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.long(line)
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if len(line) > l.max {
		return nil, errLineTooLong
	}
	return line, nil
}

// take returns the n bytes that follow a line, for the caller to keep. After an error nothing more can be read: where the next line begins is
// not known.
func (l *lineReader) take(n int64) ([]byte, error) {
	if n < 0 || n > MaxRaw {
		return nil, fmt.Errorf("%d raw bytes were announced, of at most %d", n, MaxRaw)
	}
	data := chunk(int(n))
	if _, err := io.ReadFull(l.r, data); err != nil {
		return nil, fmt.Errorf("%d raw bytes were announced and fewer came: %w", n, err)
	}
	return data, nil
}

// chunk returns n bytes of any content, from the pool when that is not a waste.
func chunk(n int) []byte {
	if n > wire.MaxData/2 && n <= wire.MaxData {
		return wire.Buffer()[:n]
	}
	return make([]byte, n)
}

// long collects a line that does not fit the read buffer, and throws it away once it is above the limit.
func (l *lineReader) long(start []byte) ([]byte, error) {
	line := append(make([]byte, 0, 2*len(start)), start...)
	tooLong := false
	for {
		part, err := l.r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > l.max+1; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case tooLong && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLineTooLong
		default:
			return line, err
		}
	}
}

// lineWriter sends whole lines, each in one write. Safe for concurrent use. The first error is final and closes broken.
type lineWriter struct {
	mu     sync.Mutex
	w      io.Writer
	err    error
	broken chan struct{}
}

func newLineWriter(w io.Writer) *lineWriter { return &lineWriter{w: w, broken: make(chan struct{})} }

func (l *lineWriter) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if _, l.err = l.w.Write(line); l.err != nil {
		close(l.broken)
	}
	return l.err
}

// buffers holds scratch space for lines.
var buffers sync.Pool

// keepBuffer is the largest scratch space worth keeping; more is left to the collector.
const keepBuffer = 384 << 10

func borrow() *[]byte {
	if b, ok := buffers.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

// giveBack returns scratch space, with what it grew to.
func giveBack(b *[]byte, grown []byte) {
	if cap(grown) <= keepBuffer {
		*b = grown
		buffers.Put(b)
	}
}

// send builds a line in scratch space and writes it.
func (l *lineWriter) send(build func([]byte) []byte) error {
	scratch := borrow()
	line := append(build((*scratch)[:0]), '\n')
	defer giveBack(scratch, line)
	return l.write(line)
}

// notify sends a notification whose params are encoded by encoding/json.
func (l *lineWriter) notify(method string, params any) error {
	encoded := mustMarshal(params)
	return l.send(func(b []byte) []byte { return appendMessage(b, 0, method, encoded) })
}

// appendMessage encodes a request, or a notification when id is 0.
func appendMessage(b []byte, id int64, method string, params []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0",`...)
	if id != 0 {
		b = append(b, `"id":`...)
		b = strconv.AppendInt(b, id, 10)
		b = append(b, ',')
	}
	b = append(b, `"method":"`...)
	b = append(b, method...)
	b = append(b, `","params":`...)
	b = append(b, params...)
	return append(b, '}')
}

// appendChunk encodes an output or stdin notification without a detour of data through encoding/json.
func appendChunk(b []byte, method string, call int64, data []byte, eof bool) []byte {
	b = append(b, `{"jsonrpc":"2.0","method":"`...)
	b = append(b, method...)
	b = append(b, `","params":{"call":`...)
	b = strconv.AppendInt(b, call, 10)
	b = append(b, `,"data":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	b = append(b, '"')
	if eof {
		b = append(b, `,"eof":true`...)
	}
	return append(b, `}}`...)
}

// appendRaw encodes a notification whose data follows its line.
func appendRaw(b []byte, method string, call int64, data []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","method":"`...)
	b = append(b, method...)
	b = append(b, `","params":{"call":`...)
	b = strconv.AppendInt(b, call, 10)
	b = append(b, `,"raw":`...)
	b = strconv.AppendInt(b, int64(len(data)), 10)
	return append(append(b, "}}\n"...), data...)
}

// appendCredit encodes a credit notification.
func appendCredit(b []byte, call, n int64) []byte {
	b = append(b, `{"jsonrpc":"2.0","method":"credit","params":{"call":`...)
	b = strconv.AppendInt(b, call, 10)
	b = append(b, `,"bytes":`...)
	b = strconv.AppendInt(b, n, 10)
	return append(b, `}}`...)
}

// appendResult encodes an answer.
func appendResult(b []byte, id int64, result []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"result":`...)
	b = append(b, result...)
	return append(b, '}')
}

// appendError encodes an answer that is an error. id is JSON: a number, a string or null.
func appendError(b []byte, id []byte, e *errorObject) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"error":`...)
	b = append(b, mustMarshal(e)...)
	return append(b, '}')
}
