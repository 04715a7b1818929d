//go:build linux

package agent

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// The test binary is the agent's binary too: as a shim in front of the commands of an agent in this process, and, with asAgent in its
// environment, as the whole program.
const asAgent = "DOCKERBOX_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Args[0] == shellShim || os.Args[0] == execShim || os.Getenv(asAgent) != "" {
		os.Exit(Main(os.Args, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// patience is how long something that must happen may take on a busy machine.
const patience = 30 * time.Second

// world is an agent with a passwd, a profile and a temporary directory of its own. Nothing of it lies outside dir.
type world struct {
	t     *testing.T
	agent *Agent
	dir   string // everybody may write here
	home  string
	uid   int
	user  string
}

const (
	testUser = "tester"
	testUID  = 4242
)

// newWorld makes an agent whose account is testUser, as uid 4242 when the tests run as root, else as whoever they run as.
func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{dir: openDir(tb), uid: testUID, user: testUser}
	w.t, _ = tb.(*testing.T)
	gid := testUID
	if os.Geteuid() != 0 {
		w.uid, gid = os.Geteuid(), os.Getegid()
	}
	w.home = filepath.Join(w.dir, "home")
	must(tb, os.Mkdir(w.home, 0o700))
	must(tb, os.Chown(w.home, w.uid, gid))
	passwd := fmt.Sprintf("root:x:0:0::/root:/bin/bash\n%s:x:%d:%d::%s:/bin/bash\n", testUser, w.uid, gid, w.home)
	must(tb, os.WriteFile(w.path("passwd"), []byte(passwd), 0o644))
	must(tb, os.WriteFile(w.path("group"), []byte(fmt.Sprintf("root:x:0:\n%s:x:%d:\nextra:x:7777:%s\n", testUser, gid, testUser)), 0o644))
	must(tb, os.WriteFile(w.path("profile"), nil, 0o644))
	homes := w.path("homes")
	must(tb, os.Mkdir(homes, 0o777))
	must(tb, os.Chmod(homes, 0o777|os.ModeSticky))

	a, err := New([]string{"PATH=" + defaultPath, "HOME=/nowhere", "LANG=C.UTF-8", "odd.name=kept"})
	must(tb, err)
	a.files = files{passwd: w.path("passwd"), group: w.path("group"), homes: []string{homes}, profile: w.path("profile")}
	w.agent = a
	tb.Cleanup(func() {
		a.Close()
		w.endJobs(tb)
	})
	return w
}

// openDir is a temporary directory in which every account may work. tb.TempDir and its parent are for the owner alone.
func openDir(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		must(tb, os.Chmod(d, 0o777))
	}
	return dir
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// rc writes a file into the home.
func (w *world) rc(name, text string) {
	w.t.Helper()
	must(w.t, os.WriteFile(filepath.Join(w.home, name), []byte(text), 0o644))
}

// endJobs kills what commands left behind: everything below this process. Then the reaper has nothing left to wait for.
func (w *world) endJobs(tb testing.TB) {
	tb.Helper()
	for deadline := time.Now().Add(patience); ; {
		left := descendants()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("processes %v do not end", left)
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		awaitEnd(left, rescan)
	}
}

// descendants lists the living processes below this one.
func descendants() []int {
	all := processes()
	below := map[int]bool{os.Getpid(): true}
	for more := true; more; {
		more = false
		for pid, p := range all {
			if !below[pid] && below[p.parent] {
				below[pid], more = true, true
			}
		}
	}
	var list []int
	for pid := range below {
		if pid != os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}

// lost fails the test with what the agent says of the end of the connection.
func (c *client) lost(err error) {
	c.tb.Helper()
	select {
	case <-c.serve:
		c.tb.Fatalf("%v; the agent ended the connection: %v", err, c.err)
	case <-time.After(patience):
		c.tb.Fatal(err)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// client is a host: it reads all frames and keeps what belongs to each command.
type client struct {
	tb    testing.TB
	out   *wire.Writer
	close func()
	hello wire.Hello
	ended chan struct{} // the agent's side is at its end
	err   error         // what Serve returned, after served
	serve chan struct{}

	mu    sync.Mutex
	next  uint32
	calls map[uint32]*answer
}

// answer is what came for one id.
type answer struct {
	client  *client
	id      uint32
	hoard   bool // give no credit
	more    chan struct{}
	out     bytes.Buffer // O frames
	err     bytes.Buffer // P frames
	frames  []wire.Type
	credit  int // granted for input
	exit    wire.Exit
	answer  wire.Answer
	done    chan struct{}
	touched time.Time

	// Of a dial, nil else: closed when the connection stands, and when no more will come from it.
	connected, ended chan struct{}
}

// streamPair is two connected streams as the agent gets them: pipes, like those of an exec.
func streamPair(tb testing.TB) (hostIn, agentIn, agentOut, hostOut *os.File) {
	tb.Helper()
	agentIn, hostIn, err := os.Pipe()
	must(tb, err)
	hostOut, agentOut, err = os.Pipe()
	must(tb, err)
	return hostIn, agentIn, agentOut, hostOut
}

// connect joins w's agent as a host would.
func (w *world) connect(tb testing.TB) *client {
	tb.Helper()
	hostIn, agentIn, agentOut, hostOut := streamPair(tb)
	c := newClient(tb, hostIn, hostOut)
	go func() {
		c.err = w.agent.Serve(agentIn, agentOut, w.user)
		close(c.serve)
	}()
	c.greet(hostOut)
	return c
}

func newClient(tb testing.TB, in, out *os.File) *client {
	c := &client{tb: tb, out: wire.NewWriter(in), ended: make(chan struct{}), serve: make(chan struct{}), calls: map[uint32]*answer{}}
	c.close = sync.OnceFunc(func() { closeAll([]*os.File{in}); <-c.ended; closeAll([]*os.File{out}) })
	return c
}

// greet exchanges hellos and starts reading.
func (c *client) greet(from io.Reader) {
	c.tb.Helper()
	r := wire.NewReader(from, wire.MaxFromAgent)
	f, err := r.Next()
	must(c.tb, err)
	c.hello, err = wire.Decode[wire.Hello](f)
	must(c.tb, err)
	must(c.tb, c.out.Write(wire.Encode(wire.TypeHello, 0, wire.Hello{Name: wire.HostName, Protocol: wire.Protocol})))
	go c.read(r)
	c.tb.Cleanup(c.close)
}

func (c *client) read(r *wire.Reader) {
	defer close(c.ended)
	for {
		f, err := r.Next()
		if err != nil {
			c.mu.Lock()
			for _, a := range c.calls {
				close(a.done)
			}
			c.calls = nil
			c.mu.Unlock()
			return
		}
		c.mu.Lock()
		a := c.calls[f.ID]
		if a != nil {
			a.take(f)
		}
		c.mu.Unlock()
	}
}

// take stores one frame. c.mu is held.
func (a *answer) take(f wire.Frame) {
	a.frames = append(a.frames, f.Type)
	a.touched = time.Now()
	switch f.Type {
	case wire.TypeOutput, wire.TypeErrors:
		buf := &a.out
		if f.Type == wire.TypeErrors {
			buf = &a.err
		}
		buf.Write(f.Payload)
		if !a.hoard {
			// Not from here: the agent may be waiting for us to read while we wait for it to.
			n := len(f.Payload)
			go func() { _ = a.client.out.Write(wire.Credit(a.id, n)) }()
		}
	case wire.TypeCredit:
		n, err := wire.ParseCredit(f)
		if err != nil {
			panic(err)
		}
		a.credit += n
	case wire.TypeEnd:
		close(a.ended)
	case wire.TypeExit, wire.TypeAnswer:
		if f.Type == wire.TypeAnswer && a.connected != nil {
			close(a.connected)
			break
		}
		var err error
		if f.Type == wire.TypeExit {
			a.exit, err = wire.Decode[wire.Exit](f)
		} else {
			a.answer, err = wire.Decode[wire.Answer](f)
		}
		if err != nil {
			panic(err)
		}
		delete(a.client.calls, a.id)
		close(a.done)
	}
	select {
	case a.more <- struct{}{}:
	default:
	}
}

func (c *client) call(hoard bool, request func(id uint32) wire.Frame) *answer {
	c.tb.Helper()
	return c.send(&answer{hoard: hoard}, request)
}

// send begins what a is the answer to.
func (c *client) send(a *answer, request func(id uint32) wire.Frame) *answer {
	c.tb.Helper()
	c.mu.Lock()
	c.next++
	a.client, a.id, a.done, a.more = c, c.next, make(chan struct{}), make(chan struct{}, 1)
	if c.calls == nil {
		c.mu.Unlock()
		c.tb.Fatal("the connection has ended")
	}
	c.calls[a.id] = a
	c.mu.Unlock()
	must(c.tb, c.out.Write(request(a.id)))
	return a
}

// start begins a command.
func (c *client) start(r wire.Run) *answer {
	c.tb.Helper()
	return c.call(false, func(id uint32) wire.Frame { return wire.Encode(wire.TypeRun, id, r) })
}

func (c *client) query(q wire.Query) wire.Answer {
	c.tb.Helper()
	a := c.call(false, func(id uint32) wire.Frame { return wire.Encode(wire.TypeQuery, id, q) })
	a.wait()
	return a.answer
}

// run runs a command to its end.
func (c *client) run(r wire.Run) *answer {
	c.tb.Helper()
	return c.start(r).wait()
}

// sh runs a text with lasting state.
func (c *client) sh(text string) *answer {
	c.tb.Helper()
	return c.run(wire.Run{Shell: []byte(text)})
}

func (c *client) argv(words ...string) *answer {
	c.tb.Helper()
	return c.run(wire.Run{Argv: byteWords(words...)})
}

func byteWords(words ...string) [][]byte {
	list := make([][]byte, len(words))
	for i, w := range words {
		list[i] = []byte(w)
	}
	return list
}

func (a *answer) wait() *answer {
	a.client.tb.Helper()
	select {
	case <-a.done:
	case <-time.After(patience):
		a.client.tb.Fatalf("command %d does not end; so far %.300q", a.id, a.output())
	}
	return a
}

// until waits for output that contains text.
func (a *answer) until(text string) {
	a.client.tb.Helper()
	limit := time.After(patience)
	for !strings.Contains(a.output(), text) {
		select {
		case <-a.more:
		case <-a.done:
			if !strings.Contains(a.output(), text) {
				a.client.tb.Fatalf("command ended with %+v and without %q: %q", a.exit, text, a.output())
			}
		case <-limit:
			a.client.tb.Fatalf("no %q in %q", text, a.output())
		}
	}
}

func (a *answer) output() string {
	a.client.mu.Lock()
	defer a.client.mu.Unlock()
	return a.out.String()
}

// code is the exit status as a shell would see it.
func (a *answer) code() int {
	if a.exit.Signal > 0 {
		return 128 + a.exit.Signal
	}
	return a.exit.Code
}

func (a *answer) send(t wire.Type, payload []byte) {
	a.client.tb.Helper()
	if err := a.client.out.Write(wire.Frame{Type: t, ID: a.id, Payload: payload}); err != nil {
		a.client.lost(err)
	}
}

func (a *answer) kill() { a.client.tb.Helper(); a.send(wire.TypeKill, nil) }

// want checks output and status.
func (a *answer) want(output string, code int) *answer {
	a.client.tb.Helper()
	if got := a.output(); got != output || a.code() != code || a.exit.Reason != "" {
		a.client.tb.Errorf("output %.500q, exit %+v; want %.500q and %d", got, a.exit, output, code)
	}
	return a
}

// alive reports whether a process with exactly these words runs.
func alive(words ...string) bool {
	want := strings.Join(words, "\x00") + "\x00"
	for pid, p := range processes() {
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil && string(b) == want && !p.zombie {
			return true
		}
	}
	return false
}

// eventually waits for a condition that no event announces.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not so after %s: %s", patience, what)
		}
	}
}

// writable makes an empty file that every account may write to.
func writable(file string) error {
	const everybody = 0o666
	if err := os.WriteFile(file, nil, everybody); err != nil {
		return err
	}
	return os.Chmod(file, everybody)
}
