package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// Stream is the hijacked connection of one exec: Read gives its standard output, Write feeds its standard input. One reader and one
// writer may work at the same time.
type Stream struct {
	conn   types.HijackedResponse
	stdout stdoutReader
	once   sync.Once
}

// Conn is what an exec's caller needs of its stream. Close makes a Read or Write under way return.
type Conn interface {
	io.ReadWriteCloser
	// Stderr is what the program complained about so far, for the message when the stream breaks.
	Stderr() string
}

var _ Conn = (*Stream)(nil)

// Exec runs argv in a container as user ("" = the container's own) with its three streams attached. It starts in /, because the container's own
// directory is one that not everybody may enter. The program ends when its
// standard input does, if it minds that; Close does not kill it.
func (e *Engine) Exec(ctx context.Context, id, user string, argv []string) (Conn, error) {
	did := fmt.Sprintf("starting %s in container %s", argv[0], short(id))
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	made, err := e.api.ContainerExecCreate(ctx, id, container.ExecOptions{
		User: user, Cmd: argv, WorkingDir: "/", AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return nil, e.explain(did, err)
	}
	conn, err := e.api.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return nil, e.explain(did, err)
	}
	// The client's own buffer holds an eighth of one of the daemon's pieces.
	return &Stream{conn: conn, stdout: stdoutReader{r: bufio.NewReaderSize(conn.Reader, readBuffer)}}, nil
}

// Read gives the exec's standard output.
func (s *Stream) Read(p []byte) (int, error) { return s.stdout.Read(p) }

// Write feeds the exec's standard input.
func (s *Stream) Write(p []byte) (int, error) { return s.conn.Conn.Write(p) }

// WriteVector feeds the exec's standard input with several pieces in one system call, where the connection has such a call.
func (s *Stream) WriteVector(pieces net.Buffers) error {
	_, err := pieces.WriteTo(s.conn.Conn)
	return err
}

// Close drops the connection; a Read or Write under way returns. Idempotent.
func (s *Stream) Close() error {
	s.once.Do(s.conn.Close)
	return nil
}

// Stderr is what the exec wrote to its standard error so far, at most a few kilobytes of it.
func (s *Stream) Stderr() string { return s.stdout.stderrText() }

// stdoutReader takes the standard output out of Docker's multiplexed stream as it is asked for. stdcopy.StdCopy pushes both streams
// into writers instead: that needs a pipe and a goroutine hand-over per piece on the road every command takes, and it grows its
// buffer to whatever size a header announces.
type stdoutReader struct {
	r    *bufio.Reader
	left int // bytes of the current stdout piece not yet read

	mu     sync.Mutex
	stderr []byte
}

const (
	readBuffer = 128 << 10
	headerSize = 8
	maxStderr  = 4 << 10
)

func (d *stdoutReader) Read(p []byte) (int, error) {
	for d.left == 0 {
		var header [headerSize]byte
		if _, err := io.ReadFull(d.r, header[:]); err != nil {
			return 0, err
		}
		size := int(binary.BigEndian.Uint32(header[4:]))
		switch stdcopy.StdType(header[0]) {
		case stdcopy.Stdin, stdcopy.Stdout: // the daemon's echo of the first counts as output, as in the docker CLI
			d.left = size
		case stdcopy.Stderr, stdcopy.Systemerr:
			if err := d.keepStderr(size); err != nil {
				return 0, err
			}
		default:
			return 0, fmt.Errorf("stream %d in docker's multiplexed output", header[0])
		}
	}
	n, err := d.r.Read(p[:min(len(p), d.left)])
	if d.left -= n; d.left > 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // more was announced
	}
	return n, err
}

// keepStderr keeps the first maxStderr bytes and passes over the rest.
func (d *stdoutReader) keepStderr(size int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	take := min(size, maxStderr-len(d.stderr))
	start := len(d.stderr)
	d.stderr = append(d.stderr, make([]byte, take)...)
	if _, err := io.ReadFull(d.r, d.stderr[start:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, d.r, int64(size-take))
	return err
}

func (d *stdoutReader) stderrText() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.stderr)
}
