//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Ports of the sandbox under test, each with something else behind it. Nothing listens on the last.
const (
	echoPort   = 7001 // gives back what comes, as it comes
	answerPort = 7002 // gives the hash of all that comes, when its client has ended
	greetPort  = 7003 // says bye, ends, and then writes the hash of all that comes to /tmp/heard
	floodPort  = 7004 // sends for ever
	resetPort  = 7006 // says half of something and breaks off
	sinkPort   = 7007 // says go, reads to the end, and writes how that was to /tmp/end
	nonePort   = 7999
)

const portServers = `
import hashlib, os, socket, struct, threading
def serve(port, talk):
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    def one(c):
        try:
            talk(c)
        except OSError:
            pass  # whoever was there has gone
        c.close()
    def accept():
        while True:
            threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()
    threading.Thread(target=accept).start()
def echo(c):
    while data := c.recv(1 << 18):
        c.sendall(data)
def hashed(c):
    h, buf = hashlib.sha256(), bytearray(1 << 20)
    while n := c.recv_into(buf):
        h.update(memoryview(buf)[:n])
    return h.hexdigest()
def put(name, text):
    with open("/tmp/." + name, "w") as f:
        f.write(text)
    os.rename("/tmp/." + name, "/tmp/" + name)
def answer(c):
    c.sendall(hashed(c).encode())
def greet(c):
    c.sendall(b"bye")
    c.shutdown(socket.SHUT_WR)
    put("heard", hashed(c))
def flood(c):
    while True:
        c.sendall(bytes(1 << 18))
def reset(c):
    c.sendall(b"half")
    c.recv(1)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
def sink(c):
    c.sendall(b"go")
    try:
        while c.recv(1 << 18):
            pass
        put("end", "end")
    except ConnectionResetError:
        put("end", "reset")
for port, talk in (7001, echo), (7002, answer), (7003, greet), (7004, flood), (7006, reset), (7007, sink):
    serve(port, talk)
put("ready", "")
`

// whenThere waits in the sandbox for a file, takes it away and returns what was in it.
func whenThere(t *testing.T, env contract.Environment, file string) string {
	t.Helper()
	r := run(t, env, contract.Request{Command: "until [ -e " + file + " ]; do read -rt 0.05 <> <(:) || :; done; cat " + file + "; rm " + file, Timeout: 2 * patience})
	if r.ExitCode != 0 {
		t.Fatalf("%s: %+v", file, r)
	}
	return string(r.Output)
}

// servePorts starts what listens in a sandbox.
func servePorts(t *testing.T, env contract.Environment) {
	t.Helper()
	run(t, env, contract.Request{Command: "cat >/tmp/ports.py", Stdin: strings.NewReader(portServers)})
	sh(t, env, "nohup python3 /tmp/ports.py >/tmp/ports.log 2>&1 &")
	whenThere(t, env, "/tmp/ready")
}

// forwarding is a dockerbox forward at work.
type forwarding struct {
	t     *testing.T
	cmd   *exec.Cmd
	local map[int]string // where a port of the sandbox is reached
	lines []string
	ended chan struct{} // closed when it has
	err   error         // how, then

	mu    sync.Mutex
	said  bytes.Buffer // on stderr
	heard chan struct{}
}

// Write is stderr.
func (f *forwarding) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said.Write(p)
	select {
	case f.heard <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (f *forwarding) stderr() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.said.String()
}

// untilSaid waits for a line of stderr.
func (f *forwarding) untilSaid(text string) {
	f.t.Helper()
	for limit := time.After(patience); !strings.Contains(f.stderr(), text); {
		select {
		case <-f.heard:
		case <-limit:
			f.t.Fatalf("it says %q, and not %q", f.stderr(), text)
		}
	}
}

// startForward forwards free ports of this machine to ports of box, until the test ends.
func startForward(t *testing.T, variables []string, box string, ports ...int) *forwarding {
	t.Helper()
	f := &forwarding{t: t, local: map[int]string{}, ended: make(chan struct{}), heard: make(chan struct{}, 1)}
	args := []string{"forward", box}
	for _, port := range ports {
		args = append(args, fmt.Sprintf("0:%d", port))
	}
	f.cmd = exec.Command(dockerboxBinary(t), args...)
	f.cmd.Env = append(os.Environ(), variables...)
	f.cmd.Stderr = f
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range ports {
		if !lines.Scan() {
			t.Fatalf("it ends after %q: %s", f.lines, f.stderr())
		}
		f.lines = append(f.lines, lines.Text())
		var port int
		local, remote, _ := strings.Cut(lines.Text(), " -> ")
		if _, err := fmt.Sscanf(remote, box+":%d", &port); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		f.local[port] = local
	}
	go func() {
		defer close(f.ended)
		if rest, err := io.ReadAll(out); len(rest) > 0 {
			f.err = fmt.Errorf("it goes on with %q, %w", rest, err)
			return
		}
		f.err = f.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = f.cmd.Process.Kill() // most have ended
		<-f.ended
	})
	return f
}

// end wants a signal to end it with status 0.
func (f *forwarding) end(sig os.Signal) {
	f.t.Helper()
	if err := f.cmd.Process.Signal(sig); err != nil {
		f.t.Fatal(err)
	}
	select {
	case <-f.ended:
	case <-time.After(patience):
		f.t.Fatalf("%s does not end it", sig)
	}
	if f.err != nil {
		f.t.Errorf("%s: it ends with %v, %s", sig, f.err, f.stderr())
	}
}

// open connects to a port of the sandbox.
func (f *forwarding) open(port int) *net.TCPConn {
	f.t.Helper()
	c, err := net.Dial("tcp", f.local[port])
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() }) // most were
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		f.t.Fatalf("%T", c)
	}
	if err := tcp.SetDeadline(time.Now().Add(4 * patience)); err != nil { // so that nothing hangs
		f.t.Fatal(err)
	}
	return tcp
}

// fillSink sends something to the sink, and not its end.
func (f *forwarding) fillSink() {
	f.t.Helper()
	c := f.open(sinkPort)
	_, err := io.ReadFull(c, make([]byte, len("go")))
	if err == nil {
		_, err = c.Write(make([]byte, 1<<20))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// echoes sends data to an echo and wants it back.
func (f *forwarding) echoes(port int, data []byte) {
	f.t.Helper()
	if err := echoed(f.open(port), data); err != nil {
		f.t.Errorf("port %d: %v; it says %q", port, err, f.stderr())
	}
}

func echoed(c *net.TCPConn, data []byte) error {
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(data)
		sent <- errors.Join(err, c.CloseWrite())
	}()
	back := sha256.New()
	_, err := io.Copy(back, c)
	if err = errors.Join(err, <-sent, c.Close()); err != nil {
		return err
	}
	if want := sha256.Sum256(data); !bytes.Equal(back.Sum(nil), want[:]) {
		return errors.New("something else came back")
	}
	return nil
}

// distinct is size bytes that no other seed gives.
func distinct(seed, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1, byte(seed), byte(seed >> 8)}).Read(data) // it never fails
	return data
}

func TestForward(t *testing.T) {
	_, env := newSandbox(t)
	servePorts(t, env)
	box := env.Info().Name
	f := startForward(t, nil, box, echoPort, answerPort, greetPort, floodPort, resetPort, nonePort)
	for name, do := range map[string]func(*testing.T, *forwarding, contract.Environment){
		"half-closes": forwardHalves, "slow client": forwardSlow, "broken off": forwardReset,
	} {
		t.Run(name, func(t *testing.T) { do(t, f, env) })
	}
	t.Run("100 at once", func(t *testing.T) { forwardHundred(t, f) })
	t.Run("a gigabyte", func(t *testing.T) { forwardGigabyte(t, f) })
	t.Run("1000 leave nothing", func(t *testing.T) { forwardThousand(t, f, env) })
	if said := f.stderr(); said != "" {
		t.Errorf("it says %q", said)
	}
	f.end(syscall.SIGTERM)
}

func forwardHundred(t *testing.T, f *forwarding) {
	const connections, size = 100, 1 << 20
	var all sync.WaitGroup
	for i := range connections {
		c := f.open(echoPort) // all stand before the first is used up
		all.Go(func() {
			if err := echoed(c, distinct(i, size)); err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

func forwardGigabyte(t *testing.T, f *forwarding) {
	const size = 1 << 30
	c := f.open(answerPort)
	began, sent := time.Now(), sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{c}, io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{7}), size), sent), make([]byte, 1<<18)); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if want := fmt.Sprintf("%x", sent.Sum(nil)); err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	t.Logf("%.0f MB/s, hashed on both sides", size/1e6/time.Since(began).Seconds())
}

// Each side may end first, and still hear the other out.
func forwardHalves(t *testing.T, f *forwarding, env contract.Environment) {
	data := distinct(200, 3<<20)
	want := fmt.Sprintf("%x", sha256.Sum256(data))
	c := f.open(answerPort)
	if _, err := c.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || string(got) != want {
		t.Errorf("after the client's end %q came, %v; want %q", got, err, want)
	}
	c = f.open(greetPort)
	if got, err := io.ReadAll(c); err != nil || string(got) != "bye" {
		t.Errorf("%q, %v before the server's end", got, err)
	}
	if _, err := c.Write(data); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := whenThere(t, env, "/tmp/heard"); got != want {
		t.Errorf("after its end the server heard %q, want %q", got, want)
	}
}

// A client that reads nothing holds up itself alone.
func forwardSlow(t *testing.T, f *forwarding, _ contract.Environment) {
	slow := f.open(floodPort)
	if _, err := io.ReadFull(slow, make([]byte, 8<<20)); err != nil { // it floods by now
		t.Fatal(err)
	}
	for i := range 5 {
		f.echoes(echoPort, distinct(300+i, 4<<20))
	}
	if _, err := io.ReadFull(slow, make([]byte, 8<<20)); err != nil {
		t.Errorf("afterwards the slow one has nothing more: %v", err)
	}
}

func forwardReset(t *testing.T, f *forwarding, env contract.Environment) {
	c := f.open(resetPort)
	got := make([]byte, 4)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "half" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := c.Read(got); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes and %v, want that it is broken off", n, err)
	}
}

// forwardThousand counts what the client and the agent hold before and after.
func forwardThousand(t *testing.T, f *forwarding, env contract.Environment) {
	held := func() [4]int {
		inside := docker(t, "exec", "-u", "0", env.Info().ContainerID, "bash", "-c",
			`p=$(pgrep -f "^dockerbox-agent resident" -u 0); ls /proc/$p/fd | wc -l; ls /proc/$p/task | wc -l`)
		own := fmt.Sprintf("/proc/%d/", f.cmd.Process.Pid)
		var n [4]int
		for i, dir := range []string{own + "fd", own + "task"} {
			all, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			n[i] = len(all)
		}
		for i, word := range strings.Fields(inside) {
			v, err := strconv.Atoi(word)
			if err != nil || i > 1 {
				t.Fatalf("%q: %v", inside, err)
			}
			n[2+i] = v
		}
		return n
	}
	const rounds, atOnce = 100, 10
	round := func() {
		var all sync.WaitGroup
		for i := range atOnce {
			c := f.open(echoPort)
			all.Go(func() {
				if err := echoed(c, []byte(strings.Repeat("x", i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	round()
	before := held()
	for range rounds {
		round()
	}
	const some = 6 // that are just ending, or a thread that the runtime keeps
	var after [4]int
	for limit := time.Now().Add(patience); ; {
		after = held()
		grown := false
		for i := range after {
			grown = grown || after[i] > before[i]+some
		}
		if !grown {
			break
		}
		if time.Now().After(limit) {
			t.Errorf("files and threads of the client and of the agent: %v before, %v after", before, after)
			break
		}
	}
	t.Logf("files and threads of the client and of the agent: %v before, %v after", before, after)
}

// A connection that finds nothing is closed, which is said once for each port, and what comes later is found.
func TestForwardOutlivesWhatItLeadsTo(t *testing.T) {
	_, env := newSandbox(t)
	box := env.Info().Name
	f := startForward(t, nil, box, echoPort, nonePort)
	nowhere := func(port int) {
		t.Helper()
		c, err := net.Dial("tcp", f.local[port])
		if err == nil {
			_, err = c.Read(make([]byte, 1))
			_ = c.Close() // it is broken off
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("port %d: %v, want that it is broken off", port, err)
		}
	}
	nothing := func(port int) string {
		return fmt.Sprintf("dockerbox: nothing listens on port %d in sandbox %q, so what connects is closed until something does, on 127.0.0.1 or on all addresses\n", port, box)
	}
	for range 3 {
		nowhere(echoPort)
		nowhere(nonePort)
	}
	want := nothing(echoPort) + nothing(nonePort)
	if got := f.stderr(); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	servePorts(t, env)
	f.echoes(echoPort, []byte("now"))

	// A restart ends what is open, and is no end of the forward.
	open := f.open(echoPort)
	if _, err := open.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(open, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	docker(t, "restart", "-t", "1", env.Info().ContainerID)
	if _, err := open.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("what was open: %v", err)
	}
	servePorts(t, env)
	f.echoes(echoPort, []byte("again"))

	// Stopped it stays stopped; made anew it is reached.
	if got := cli(t, "stop", box); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	nowhere(echoPort)
	nowhere(echoPort)
	f.untilSaid(fmt.Sprintf("dockerbox: sandbox %q is not running any more; dockerbox start %s starts it again\n", box, box))
	if state := docker(t, "inspect", "-f", "{{.State.Running}}", env.Info().ContainerID); state != "false" {
		t.Errorf("running: %s", state)
	}
	if got := cli(t, "up", "--recreate", "--memory", "3g", box); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	servePorts(t, env)
	f.echoes(echoPort, []byte("anew"))
	f.untilSaid(fmt.Sprintf("dockerbox: sandbox %q is reached again\n", box))
	f.end(syscall.SIGINT)
}

// Everything goes over the daemon's own connection, so a remote one does. When that breaks, it is said once, and the next connection goes
// over a new one.
func TestForwardThroughAnotherEndpoint(t *testing.T) {
	_, env := newSandbox(t)
	servePorts(t, env)
	r := newRelay(t)
	f := startForward(t, []string{"DOCKER_HOST=" + r.address, "DOCKER_CONTEXT="}, env.Info().Name, echoPort, sinkPort)
	f.echoes(echoPort, distinct(1, 1<<20))
	if len(r.took()) == 0 {
		t.Error("another daemon was asked")
	}
	var open []*net.TCPConn
	for range 10 {
		c := f.open(echoPort)
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	f.fillSink()
	r.drop()
	for _, c := range open {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("what was open: %v, want that it is broken off", err)
		}
	}
	// What listens inside sees that not everything came.
	if end := whenThere(t, env, "/tmp/end"); end != "reset" {
		t.Errorf("inside it looks like %q", end)
	}
	f.echoes(echoPort, []byte("again"))
	name := env.Info().Name
	want := regexp.MustCompile(fmt.Sprintf(`^dockerbox: the connection to sandbox %q was lost: (the stream ended|connection reset by peer|broken pipe); connect again; dockerbox ps shows whether the sandbox still runs
dockerbox: sandbox %q is reached again
$`, name, name))
	if got := f.stderr(); !want.MatchString(got) {
		t.Errorf("it says %q, want %s", got, want)
	}
	f.end(syscall.SIGTERM)
}

// drop ends all connections, as a network does; new ones pass.
func (r *relay) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.passing {
		_ = c.Close() // so that its two ends see it
	}
	r.passing = nil
}

func TestForwardInJSONAndItsEnds(t *testing.T) {
	_, env := newSandbox(t)
	servePorts(t, env)
	box := env.Info().Name
	c := exec.Command(dockerboxBinary(t), "forward", "--json", "--address", "::1", box, ":7001", "0:7007")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var answer struct {
		Schema   int
		Forwards []struct {
			Local  string
			Remote int
		}
	}
	if err := errors.Join(err, json.Unmarshal(line, &answer)); err != nil || answer.Schema != 1 || len(answer.Forwards) != 2 || answer.Forwards[0].Remote != 7001 {
		t.Fatalf("%s: %v", line, err)
	}
	f := &forwarding{t: t, local: map[int]string{echoPort: answer.Forwards[0].Local, sinkPort: answer.Forwards[1].Local}}
	if !strings.HasPrefix(f.local[echoPort], "[::1]:") {
		t.Errorf("%s", line)
	}
	f.echoes(echoPort, []byte("six"))
	// A client that is killed has not ended what it carried.
	f.fillSink()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if end := whenThere(t, env, "/tmp/end"); end != "reset" {
		t.Errorf("inside it looks like %q", end)
	}
	var status *exec.ExitError
	if err := c.Wait(); !errors.As(err, &status) {
		t.Errorf("%v", err)
	}
}
