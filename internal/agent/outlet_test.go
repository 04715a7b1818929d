//go:build linux

package agent

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// A pipe takes a part at a time, which may end anywhere in any piece.
func TestWriteVector(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var pieces net.Buffers
	var want []byte
	for i, n := range []int{1, 0, 100_000, 3, 70_000, 65_536} {
		pieces = append(pieces, bytes.Repeat([]byte{byte('a' + i)}, n))
		want = append(want, pieces[i]...)
	}
	written := make(chan error, 1)
	go func() {
		err := writeVector(w, pieces)
		_ = w.Close()
		written <- err
	}()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}

	r, w, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if err := writeVector(w, net.Buffers{[]byte("x")}); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("without a reader: %v", err)
	}
	_ = w.Close()
	if err := writeVector(w, net.Buffers{[]byte("x")}); err == nil {
		t.Error("a closed file took it")
	}
}
