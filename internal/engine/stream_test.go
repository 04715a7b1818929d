package engine

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/docker/docker/pkg/stdcopy"
)

// multiplex writes what Docker would send.
func multiplex(t *testing.T, pieces ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	out, errs := stdcopy.NewStdWriter(&b, stdcopy.Stdout), stdcopy.NewStdWriter(&b, stdcopy.Stderr)
	for _, p := range pieces {
		w := out
		if p[0] == '!' {
			w, p = errs, p[1:]
		}
		if _, err := w.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestStdoutReaderTakesTheStreamsApart(t *testing.T) {
	raw := multiplex(t, "one ", "!bad ", "two", "!"+strings.Repeat("e", 3*maxStderr))
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(raw), "byte by byte": iotest.OneByteReader(bytes.NewReader(raw))} {
		d := stdoutReader{r: bufio.NewReader(r)}
		got, err := io.ReadAll(&d)
		if err != nil || string(got) != "one two" {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if text := d.stderrText(); len(text) != maxStderr || !strings.HasPrefix(text, "bad eee") {
			t.Errorf("%s: kept %d bytes of stderr", name, len(text))
		}
	}
	for name, raw := range map[string][]byte{
		"ends in header": raw[:5], "ends in stderr": multiplex(t, "!bad")[:10], "no such stream": {9, 0, 0, 0, 0, 0, 0, 1, 'x'},
	} {
		d := stdoutReader{r: bufio.NewReader(bytes.NewReader(raw))}
		if _, err := io.ReadAll(&d); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Our reader and Docker's own library agree on every stream that the library accepts.
func FuzzStdoutReader(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 2, 'h', 'i'})
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 1, 'x', 1, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		for rest := raw; len(rest) >= headerSize; {
			size := binary.BigEndian.Uint32(rest[4:])
			if size > 1<<16 {
				return // the library allocates what a header says
			}
			rest = rest[min(len(rest), headerSize+int(size)):]
		}
		var want, errs bytes.Buffer
		_, wantErr := stdcopy.StdCopy(&want, &errs, bytes.NewReader(raw))
		d := stdoutReader{r: bufio.NewReader(bytes.NewReader(raw))}
		got, err := io.ReadAll(&d)
		if wantErr == nil && err == nil && !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%q, want %q", got, want.Bytes())
		}
		if err != nil && wantErr == nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	})
}
