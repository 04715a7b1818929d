//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

const (
	forwardName = "dockerbox forward"
	execRoad    = "docker exec -i"
)

// What listens in the sandbox: one takes everything and says ok, one gives the file of the bulk part, one echoes.
const forwardServers = `
import socket, threading
def take(c):
    buf = bytearray(1 << 20)
    while c.recv_into(buf):
        pass
    c.sendall(b"ok")
def give(c):
    with open("` + boxDir + `/t-bench-bulk", "rb") as f:
        c.sendfile(f)
def echo(c):
    while data := c.recv(1 << 16):
        c.sendall(data)
def serve(port, talk):
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    def one(c):
        with c:
            talk(c)
    while True:
        threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()
for port, talk in (7001, take), (7002, give), (7003, echo):
    threading.Thread(target=serve, args=(port, talk)).start()
`

// runForward moves as much through a forwarded port as through docker exec, each a process on this machine.
func runForward(ctx context.Context, b *bench) ([]row, error) {
	all, err := b.subjects(ctx, goName, execName)
	if err != nil {
		return nil, err
	}
	inGo, plain := all[0].(*goPath), all[1].(*dockerExec) //nolint:errcheck // what these names stand for
	if err := onEach(ctx, all, bulkMake); err != nil {
		return nil, err
	}
	start := "python3 -c '" + strings.ReplaceAll(forwardServers, "'", `"`) + "' >/dev/null 2>&1 & for p in 7001 7002 7003; do until : <>/dev/tcp/127.0.0.1/$p; do sleep 0.01; done 2>/dev/null; done"
	if err := inGo.one(ctx, job{Command: start, Output: -1}); err != nil {
		return nil, fmt.Errorf("start what listens: %w", err)
	}
	ports, err := b.forward(ctx, inGo.env, 7001, 7002, 7003)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, c := range []struct {
		what    string
		forward func() error
		exec    job
	}{
		{"64 MB out of a port", func() error { return takeFrom(ctx, ports[1], bulkSize) }, job{Command: "cat " + bulkFile, Output: bulkSize}},
		{"64 MB into a port", func() error { return giveTo(ctx, ports[0], bulkSize) }, job{Command: fmt.Sprintf(`[ "$(wc -c)" = %d ]`, bulkSize), Stdin: bulkSize, Output: -1}},
	} {
		taken, err := rounds(ctx, b.count(6, 1), []string{forwardName, execRoad}, func(ctx context.Context, who string) (time.Duration, error) {
			began := time.Now()
			if who == forwardName {
				err := c.forward()
				return time.Since(began), err
			}
			c.exec.Count = 1
			_, err := plain.do(ctx, c.exec)
			return time.Since(began), err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.what, err)
		}
		perSecond := func(ms float64) float64 { return bulkSize / 1e3 / ms }
		through := measured("forward", c.what, forwardName, inMBPerSecond, taken[forwardName].each(perSecond))
		beside := measured("forward", c.what, execRoad, inMBPerSecond, taken[execRoad].each(perSecond))
		rows = append(rows, through.note(as(beside), through.faster(beside), "×"), beside)
	}
	var connects []time.Duration
	for range b.count(200, 20) {
		began := time.Now()
		if err := ping(ctx, ports[2]); err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		connects = append(connects, time.Since(began))
	}
	return append(rows, measured("forward", "a new connection and one byte back", forwardName, inMS, milliseconds(connects))), nil
}

// forward starts dockerbox forward, which ends with the run, and returns where each port is reached.
func (b *bench) forward(ctx context.Context, env contract.Environment, ports ...int) ([]string, error) {
	args := []string{"forward", env.Info().Name}
	for _, port := range ports {
		args = append(args, fmt.Sprintf("0:%d", port))
	}
	c := exec.CommandContext(ctx, b.dockerbox, args...)
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	b.atEnd("end the forward", func(context.Context) error {
		return errors.Join(c.Process.Signal(syscall.SIGTERM), c.Wait())
	})
	var local []string
	for lines := bufio.NewScanner(out); len(local) < len(ports) && lines.Scan(); {
		at, _, _ := strings.Cut(lines.Text(), " -> ")
		local = append(local, at)
	}
	if len(local) < len(ports) {
		return nil, errors.New("dockerbox forward ended at once")
	}
	return local, nil
}

// connected calls do with a connection to a port.
func connected(ctx context.Context, address string, do func(*net.TCPConn) error) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return errors.Join(fmt.Errorf("%T is no TCP connection", c), c.Close())
	}
	return errors.Join(do(tcp), c.Close())
}

func takeFrom(ctx context.Context, address string, size int64) error {
	return connected(ctx, address, func(c *net.TCPConn) error {
		var got discard
		if _, err := io.Copy(&got, c); err != nil {
			return err
		}
		if got.bytes != size {
			return fmt.Errorf("it gave %d bytes, not %d", got.bytes, size)
		}
		return nil
	})
}

func giveTo(ctx context.Context, address string, size int64) error {
	return connected(ctx, address, func(c *net.TCPConn) error {
		if _, err := io.CopyBuffer(struct{ io.Writer }{c}, endless(size), make([]byte, 1<<18)); err != nil {
			return err
		}
		if err := c.CloseWrite(); err != nil {
			return err
		}
		answer, err := io.ReadAll(c)
		if err == nil && string(answer) != "ok" {
			err = fmt.Errorf("it answers %q", answer)
		}
		return err
	})
}

func ping(ctx context.Context, address string) error {
	return connected(ctx, address, func(c *net.TCPConn) error {
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	})
}
