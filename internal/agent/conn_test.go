//go:build linux

package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// raw connects without a hello and returns both streams and what Serve returns.
func (w *world) raw() (in, out *os.File, served <-chan error) {
	w.t.Helper()
	hostIn, agentIn, agentOut, hostOut := streamPair(w.t)
	ch := make(chan error, 1)
	go func() { ch <- w.agent.Serve(agentIn, agentOut, w.user) }()
	w.t.Cleanup(func() { closeAll([]*os.File{hostIn, hostOut}) })
	return hostIn, hostOut, ch
}

var hostHello = wire.Append(nil, wire.Encode(wire.TypeHello, 0, wire.Hello{Name: wire.HostName, Protocol: wire.Protocol}))

func frame(t wire.Type, id uint32, payload []byte) []byte {
	return wire.Append(nil, wire.Frame{Type: t, ID: id, Payload: payload})
}

// What breaks the rules ends its own connection and nothing else.
func TestBrokenHostsLoseTheirConnectionAlone(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	running := c.start(wire.Run{Shell: []byte("echo up; read -r x; echo $x"), Stdin: true})
	running.until("up")
	sleeper := wire.Append(nil, wire.Encode(wire.TypeRun, 1, wire.Run{Shell: []byte("sleep 86901"), Stdin: true}))
	hello := func(parts ...[]byte) []byte { return bytes.Join(append([][]byte{hostHello}, parts...), nil) }
	length := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for name, bytes := range map[string][]byte{
		"text":                       []byte("GET / HTTP/1.1\r\n\r\n"),
		"another frame first":        frame(wire.TypeRun, 1, []byte("{}")),
		"another protocol":           wire.Append(nil, wire.Encode(wire.TypeHello, 0, wire.Hello{Protocol: 99})),
		"hello that is no JSON":      frame(wire.TypeHello, 0, []byte("x")),
		"hello too long":             frame(wire.TypeHello, 0, make([]byte, wire.MaxHello+1)),
		"4 GiB frame":                hello(length(1<<32-1), []byte("Rxxxx")),
		"frame without a header":     hello(length(4), []byte("xxxxx")),
		"run that is no JSON":        hello(frame(wire.TypeRun, 1, []byte("{"))),
		"run with number 0":          hello(frame(wire.TypeRun, 0, []byte("{}"))),
		"number in use":              hello(sleeper, sleeper),
		"query that is no JSON":      hello(frame(wire.TypeQuery, 1, []byte("["))),
		"credit of the wrong size":   hello(sleeper, frame(wire.TypeCredit, 1, []byte{1})),
		"credit above all bounds":    hello(sleeper, frame(wire.TypeCredit, 1, length(wire.MaxFromHost))),
		"input frame too long":       hello(sleeper, frame(wire.TypeInput, 1, make([]byte, wire.MaxData+1))),
		"input beyond the window":    hello(sleeper, bytesRepeat(frame(wire.TypeInput, 1, make([]byte, wire.MaxData)), 40)),
		"input after its end":        hello(sleeper, frame(wire.TypeEnd, 1, nil), frame(wire.TypeInput, 1, []byte("x"))),
		"ends inside a frame":        nil,
		"ends inside a frame header": nil,
	} {
		in, out, served := w.raw()
		if bytes == nil {
			_, err := in.Write(append(hello(sleeper), length(100)[:2+len(name)%2]...))
			must(t, err)
			must(t, in.Close())
		} else if _, err := in.Write(bytes); err != nil && !errors.Is(err, os.ErrClosed) && !strings.Contains(err.Error(), "broken pipe") {
			t.Fatal(err)
		}
		select {
		case err := <-served:
			if err == nil {
				t.Errorf("%s: taken for a clean end", name)
			}
		case <-time.After(patience):
			t.Fatalf("%s: the connection goes on", name)
		}
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left := runningWith("86901"); len(left) > 0 {
			t.Errorf("%s: left %q", name, left)
		}
	}
	running.send(wire.TypeInput, []byte("fine\n"))
	running.wait().want("up\nfine\n", 0)
}

func bytesRepeat(b []byte, n int) []byte { return bytes.Repeat(b, n) }

func TestSilentHostIsLetGo(t *testing.T) {
	w := newWorld(t)
	w.agent.helloLimit = 50 * time.Millisecond
	_, _, served := w.raw()
	select {
	case err := <-served:
		if err == nil {
			t.Error("taken for a clean end")
		}
	case <-time.After(patience):
		t.Fatal("waits for ever")
	}
}

// A later host may say more than this agent knows, and frames cross with the end of their command.
func TestUnknownFramesAreIgnored(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	a := c.start(wire.Run{Shell: []byte("echo up; read -r x"), Stdin: true})
	a.until("up")
	for _, f := range []wire.Frame{
		{Type: 'Z', ID: a.id}, {Type: 0, ID: 0, Payload: []byte("x")}, {Type: wire.TypeOutput, ID: a.id, Payload: []byte("x")}, {Type: wire.TypeExit, ID: a.id},
		{Type: wire.TypeHello}, {Type: wire.TypeKill, ID: 999}, {Type: wire.TypeInput, ID: 999, Payload: []byte("x")}, {Type: wire.TypeCredit, ID: 999, Payload: []byte("x")}, {Type: wire.TypeEnd, ID: 999},
	} {
		must(t, c.out.Write(f))
	}
	must(t, c.out.Write(wire.Frame{Type: wire.TypeRun, ID: 77, Payload: []byte(`{"shell":"` + "dHJ1ZQ==" + `","later":[1]}`)}))
	a.send(wire.TypeEnd, nil)
	a.wait().want("up\n", 1)
}

func TestTooManyCommands(t *testing.T) {
	w := newWorld(t)
	c := &conn{agent: w.agent, user: w.user, live: map[uint32]served{}, gone: make(chan struct{})}
	var got bytes.Buffer
	c.w = wire.NewWriter(&got)
	for id := range uint32(maxRuns) {
		c.live[id+1] = newRun(c, id+1, wire.Run{})
	}
	must(t, c.start(maxRuns+1, newRun(c, maxRuns+1, wire.Run{Shell: []byte("true")})))
	f, err := wire.NewReader(&got, wire.MaxFromAgent).Next()
	must(t, err)
	if x, err := wire.Decode[wire.Exit](f); err != nil || f.ID != maxRuns+1 || x.Reason != wire.ReasonInternal || !strings.Contains(x.Text, "512 commands") {
		t.Errorf("%+v, %v", x, err)
	}
}

// A waiting shell that somebody ended is replaced, and the command never hears of it.
func TestDeadWaitingShellIsReplaced(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	c.sh("export K=kept")
	acc, _, err := w.agent.account(w.user)
	must(t, err)
	for _, input := range []bool{false, true} {
		for _, stopFirst := range []bool{false, true} {
			eventually(t, "a shell waits", func() bool {
				acc.mu.Lock()
				defer acc.mu.Unlock()
				return acc.warm != nil
			})
			acc.mu.Lock()
			warm := acc.warm
			acc.mu.Unlock()
			if stopFirst { // it gets the command and dies before it reads it
				warm.signal(19)
				a := c.start(wire.Run{Shell: []byte("echo $K; cat"), Stdin: input})
				eventually(t, "the shell was taken", func() bool {
					acc.mu.Lock()
					defer acc.mu.Unlock()
					return acc.warm != warm
				})
				warm.signal(9)
				<-warm.done
				if input {
					eventually(t, "it was replaced", func() bool { return warm.ended() })
					a.send(wire.TypeInput, []byte("in"))
					a.send(wire.TypeEnd, nil)
					a.wait()
					if a.exit.Reason == "" && a.output() != "kept\nin" {
						t.Errorf("%q, %+v", a.output(), a.exit)
					}
					continue
				}
				a.wait().want("kept\n", 0)
				continue
			}
			warm.signal(9)
			<-warm.done
			a := c.start(wire.Run{Shell: []byte("echo $K; cat"), Stdin: input})
			if input {
				a.send(wire.TypeInput, []byte("in"))
				a.send(wire.TypeEnd, nil)
				a.wait().want("kept\nin", 0)
				continue
			}
			a.wait().want("kept\n", 0)
		}
	}
}

// A fault of the agent's own in one command is that command's, and is told.
func TestPanicIsReported(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	c.sh("true")
	acc, _, err := w.agent.account(w.user)
	must(t, err)
	acc.mu.Lock()
	acc.dropWarm()
	good := acc.now
	acc.now = nil
	acc.mu.Unlock()
	if a := c.sh("echo hi"); a.exit.Reason != wire.ReasonInternal || !strings.Contains(a.exit.Text, "the agent failed") {
		t.Errorf("%+v", a.exit)
	}
	acc.mu.Lock()
	acc.now = good
	acc.mu.Unlock()
	c.sh("echo hi").want("hi\n", 0)
}

func TestNothingIsLeft(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("use", func(t *testing.T) {
		w := newWorld(t)
		c, d := w.connect(t), w.connect(t)
		c.sh("sleep 86911 & setsid -f sleep 86912; yes | head -100000 >/dev/null")
		a := d.start(wire.Run{Shell: []byte("sleep 86913"), Stdin: true})
		a.send(wire.TypeInput, []byte("x"))
		a.kill()
		a.wait()
		c.run(wire.Run{Argv: byteWords("nosuch"), Split: true})
		d.start(wire.Run{Shell: []byte("yes")})
	})
	goleak.VerifyNone(t, before)
}

// Hundreds of commands of all kinds leave no descriptor, goroutine, process or file behind.
func TestNoGrowth(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	kinds := []wire.Run{
		{Shell: []byte("true")}, {Shell: []byte("echo x; exit 3")}, {Shell: []byte("export N=$((N+1)); cd /usr")}, {Shell: []byte("kill -9 $$")}, {Shell: []byte("echo e >&2"), Split: true},
		{Argv: byteWords("true")}, {Argv: byteWords("nosuch")}, {Shell: []byte("exec true")}, {Shell: []byte("true"), Dir: []byte("/no/such")}, {Shell: []byte("(true &)")},
	}
	round := func(n int) {
		for i := range n {
			c.run(kinds[i%len(kinds)])
		}
	}
	settled := func() (fds, processes, files int) {
		acc, _, err := w.agent.account(w.user)
		must(t, err)
		eventually(t, "a shell waits and leftovers are gone", func() bool {
			w.agent.mu.Lock()
			left := len(w.agent.leftovers)
			w.agent.mu.Unlock()
			acc.mu.Lock()
			defer acc.mu.Unlock()
			return left == 0 && acc.warm != nil && acc.warm.from == acc.now && len(descendants()) == 1
		})
		list, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		tmp, err := os.ReadDir(w.dir)
		must(t, err)
		return len(list), len(descendants()), len(tmp)
	}
	round(50)
	fds, procs, files := settled()
	round(300)
	if a, b, c := settled(); a != fds || b != procs || c != files {
		t.Errorf("descriptors %d → %d, processes %d → %d, files %d → %d", fds, a, procs, b, files, c)
	}
	if n := len(w.agent.accounts); n != 1 {
		t.Errorf("%d accounts", n)
	}
}

// Many accounts do not mean many waiting shells.
func TestWaitingShellsAreBounded(t *testing.T) {
	if os.Geteuid() != 0 {
		// Only root has other accounts to serve; the bound itself can be seen without them.
		w := newWorld(t)
		for range 2 * maxWarm {
			w.agent.warmed(&account{agent: w.agent})
		}
		if n := len(w.agent.warmOrder); n != maxWarm {
			t.Errorf("%d", n)
		}
		return
	}
	w := newWorld(t)
	c := w.connect(t)
	for i := range maxWarm + 4 {
		c.run(wire.Run{Shell: []byte("true"), User: string(rune('1'+i%9)) + "000" + string(rune('0'+i/9))}).want("", 0)
	}
	eventually(t, "at most the bound waits", func() bool { return len(descendants()) <= maxWarm })
}

// Whatever frames arrive, the agent neither falls nor grows, and serves the next connection.
func FuzzConn(f *testing.F) {
	hello := func(parts ...[]byte) []byte { return bytes.Join(append([][]byte{hostHello}, parts...), nil) }
	run := func(id uint32, r wire.Run) []byte { return wire.Append(nil, wire.Encode(wire.TypeRun, id, r)) }
	f.Add(hello(run(1, wire.Run{Shell: []byte("true")}), frame(wire.TypeKill, 1, nil)))
	f.Add(hello(run(1, wire.Run{Argv: byteWords("cat"), Stdin: true}), frame(wire.TypeInput, 1, []byte("x")), frame(wire.TypeEnd, 1, nil)))
	f.Add(hello(frame(wire.TypeQuery, 1, []byte(`{"op":"ping"}`)), frame(wire.TypeCredit, 1, []byte{0, 0, 0, 1})))
	f.Add([]byte{0, 0, 0, 5, 'H', 0, 0, 0, 0})
	f.Add(hello([]byte{255, 255, 255, 255}))
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		if !harmless(in) {
			return // what a fuzzer writes is not to be run on this machine
		}
		done := make(chan struct{})
		r := io.NopCloser(bytes.NewReader(in))
		go func() {
			defer close(done)
			_ = w.agent.Serve(r, discard0{}, w.user)
		}()
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("the connection does not end")
		}
		// What was cut off may take a moment to be seen as over.
		eventually(t, "nothing is left of the connection", func() bool {
			w.agent.mu.Lock()
			defer w.agent.mu.Unlock()
			return len(w.agent.conns) == 0 && len(w.agent.accounts) <= 1 && len(w.agent.leftovers) == 0
		})
	})
}

// harmless reports whether every command in a stream of frames is one of the seeds'.
func harmless(in []byte) bool {
	r := wire.NewReader(bytes.NewReader(in), wire.MaxFromHost)
	for {
		f, err := r.Next()
		if err != nil {
			return true
		}
		run, err := wire.Decode[wire.Run](f)
		if f.Type != wire.TypeRun || err != nil {
			continue
		}
		text, words := string(run.Shell), string(bytes.Join(run.Argv, []byte(" ")))
		if text != "" && text != "true" || words != "" && words != "cat" || run.User != "" {
			return false
		}
	}
}

// discard0 is a host that takes everything.
type discard0 struct{}

func (discard0) Write(p []byte) (int, error) { return len(p), nil }
func (discard0) Close() error                { return nil }
