//go:build linux

package agent

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dialing runs the verb dial as a program of its own: it is about descriptors 0 and 1.
func dialing(t *testing.T, network, address string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	c := exec.CommandContext(t.Context(), self, "dial", network, address)
	c.Env = append(os.Environ(), asAgent+"=1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	return c, &stderr
}

// listenOn serves one connection of the network with talk. The address is what dial is told.
func listenOn(t *testing.T, network string, talk func(net.Conn)) (address string) {
	t.Helper()
	address = "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	must(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			return // the test ended first
		}
		defer c.Close()
		talk(c)
	}()
	t.Cleanup(func() { must(t, l.Close()); <-served })
	return l.Addr().String()
}

// endsInput closes the sending half.
func endsInput(c net.Conn) error {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return errors.New("not a connection with halves")
	}
	return half.CloseWrite()
}

func TestDialCarriesBytesAndTheEndOfInput(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			sent := bytes.Repeat([]byte("all\x00bytes\xff\n"), 200_000)
			address := listenOn(t, network, func(c net.Conn) {
				got, err := io.ReadAll(c) // returns when the end of input came through
				if err == nil {
					_, err = c.Write(got)
				}
				if err != nil {
					t.Error(err)
				}
			})
			c, stderr := dialing(t, network, address)
			c.Stdin = bytes.NewReader(sent)
			got, err := c.Output()
			if err != nil || !bytes.Equal(got, sent) {
				t.Fatalf("%d bytes of %d came back, %v, %s", len(got), len(sent), err, stderr)
			}
		})
	}
}

// A peer that has said everything may still be listening.
func TestDialPassesOnTheEndOfOutputAlone(t *testing.T) {
	got := make(chan string, 1)
	address := listenOn(t, "unix", func(c net.Conn) {
		if _, err := c.Write([]byte("bye")); err != nil {
			t.Error(err)
		}
		if err := endsInput(c); err != nil {
			t.Error(err)
		}
		rest, err := io.ReadAll(c)
		if err != nil {
			t.Error(err)
		}
		got <- string(rest)
	})
	c, stderr := dialing(t, "unix", address)
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	said, err := io.ReadAll(out) // returns although input is still open
	if err != nil || string(said) != "bye" {
		t.Fatalf("%q, %v", said, err)
	}
	_, err = io.WriteString(in, "and you")
	must(t, err)
	must(t, in.Close())
	if err := c.Wait(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %s", err, stderr)
	}
	if rest := <-got; rest != "and you" {
		t.Fatalf("%q came through", rest)
	}
}

// Nobody closes the input of a program that waits for the peer's answer: the peer's end must be enough.
func TestDialEndsWhenThePeerIsGone(t *testing.T) {
	address := listenOn(t, "unix", func(c net.Conn) {
		if _, err := c.Write([]byte("last")); err != nil {
			t.Error(err)
		}
	})
	c, stderr := dialing(t, "unix", address)
	in, err := c.StdinPipe()
	must(t, err)
	defer in.Close()
	var out bytes.Buffer
	c.Stdout = &out
	must(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		if err != nil || out.String() != "last" || stderr.Len() > 0 {
			t.Fatalf("%v, %q, %s", err, out.String(), stderr)
		}
	case <-time.After(patience):
		t.Fatal("dial outlives its peer")
	}
}

func TestDialSaysWhatCannotBeReached(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	must(t, l.Close())
	for name, tc := range map[string]struct {
		network, address, want string
		status                 int
	}{
		"nobody listens": {"unix", dead, "unix " + dead + ": connection refused", exitFailed},
		"no socket":      {"unix", filepath.Join(dir, "none"), "no such file or directory", exitFailed},
		"no port":        {"tcp", "127.0.0.1:1", "tcp 127.0.0.1:1: connection refused", exitFailed},
		"another host":   {"tcp", "192.0.2.1:80", "is not a port of this sandbox", exitUsage},
		"a name":         {"tcp", "localhost:80", "is not a port of this sandbox", exitUsage},
		"port zero":      {"tcp", "127.0.0.1:0", "is not a port of this sandbox", exitUsage},
		"relative":       {"unix", "s", "is not the absolute path", exitUsage},
		"long":           {"unix", "/" + strings.Repeat("x", 108), "at most 107 bytes", exitUsage},
		"network":        {"udp", "127.0.0.1:1", "neither unix nor tcp", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			c, stderr := dialing(t, tc.network, tc.address)
			out, err := c.Output()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != tc.status || len(out) > 0 {
				t.Errorf("%v, %q; want status %d and no output", err, out, tc.status)
			}
			if strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("it says %q, want one line with %q", stderr, tc.want)
			}
		})
	}
}
