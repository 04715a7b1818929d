//go:build linux

package agent

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
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
		err := newOneWay(w, func() {}).WriteVector(pieces)
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
	hungUp := 0
	o := newOneWay(w, func() { hungUp++ })
	if err := o.WriteVector(net.Buffers{[]byte("x")}); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("without a reader: %v", err)
	}
	_ = w.Close()
	if err := o.WriteVector(net.Buffers{[]byte("x")}); err == nil {
		t.Error("a closed file took it")
	}
	if hungUp != 2 {
		t.Errorf("hung up %d times", hungUp)
	}
}

// What reaches the host is the same whether it is spliced or not, and frames stay whole while the command takes back some of what it wrote.
func TestFloods(t *testing.T) {
	for name, c := range map[string]struct{ socket, thief bool }{"pipe": {}, "socket": {socket: true}, "thief": {thief: true}} {
		t.Run(name, func(t *testing.T) {
			from, command, err := os.Pipe()
			must(t, err)
			host, agent, err := os.Pipe()
			if c.socket {
				var pair [2]int
				pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
				host, agent = os.NewFile(uintptr(pair[0]), "host"), os.NewFile(uintptr(pair[1]), "agent")
			}
			must(t, err)
			defer closeAll([]*os.File{from, host, agent})
			way := newOneWay(agent, func() {})
			if (way.pipe == nil) != c.socket {
				t.Fatalf("a %s is taken for something else", name)
			}
			o := newOutput(1, wire.NewWriter(way), way)
			o.visit = new(courtesy).begin()
			defer o.visit.over()

			const size = 40 << 20
			want := make([]byte, size)
			for i := range want {
				want[i] = byte(i * i >> 7)
			}
			var parts sync.WaitGroup
			defer parts.Wait()
			parts.Go(func() { // the command
				defer command.Close()
				for rest := want; len(rest) > 0; {
					n := min(len(rest), 1+len(rest)%300_000)
					if _, err := command.Write(rest[:n]); err != nil {
						t.Error(err)
						return
					}
					rest = rest[n:]
				}
			})
			stolen := 0
			stop := make(chan struct{})
			if c.thief {
				parts.Go(func() {
					buf := make([]byte, 1000)
					for ; ; time.Sleep(time.Millisecond) {
						select {
						case <-stop:
							return
						default:
							n, _ := from.Read(buf) // at the end it is nothing
							stolen += n
						}
					}
				})
			}
			parts.Go(func() { // the agent
				if !o.pump(from, wire.TypeOutput) {
					t.Error("the end was not seen")
				}
				close(stop)
				o.finish(wire.Frame{Type: wire.TypeExit, ID: 1})
			})

			var got []byte
			largest := 0
			for in := wire.NewReader(host, wire.MaxFromAgent); ; {
				f, err := in.Next()
				must(t, err)
				if f.Type == wire.TypeExit {
					break
				}
				got = append(got, f.Payload...)
				largest = max(largest, len(f.Payload))
				o.grant(len(f.Payload))
			}
			parts.Wait()
			if len(got) != size-stolen || o.total() != int64(len(got)) || !c.thief && !bytes.Equal(got, want) {
				t.Errorf("%d bytes came, %d were counted, %d stolen, %d written, or they are others", len(got), o.total(), stolen, size)
			}
			if largest > wire.MaxData {
				t.Errorf("a frame of %d bytes", largest)
			}
			if c.thief && stolen == 0 {
				t.Error("nothing was stolen: the test shows nothing")
			}
		})
	}
}
