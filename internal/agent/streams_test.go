//go:build linux

package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

func TestOutputOfBothStreamsIsInOrder(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	var want strings.Builder
	for i := range 200 {
		want.WriteString("o" + strings.Repeat("x", i) + "\ne\n")
	}
	c.sh(`p=; for i in {1..200}; do echo "o$p"; echo e >&2; p+=x; done`).want(want.String(), 0)
	a := c.run(wire.Run{Shell: []byte("echo o; echo e >&2; echo o"), Split: true})
	if a.out.String() != "o\no\n" || a.err.String() != "e\n" {
		t.Errorf("split: %q, %q", a.out.String(), a.err.String())
	}
	a = c.run(wire.Run{Argv: byteWords("bash", "-c", "echo o; echo e >&2"), Split: true})
	if a.out.String() != "o\n" || a.err.String() != "e\n" {
		t.Errorf("split words: %q, %q", a.out.String(), a.err.String())
	}
}

func TestExitIsTheLastFrame(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	for range 50 {
		a := c.start(wire.Run{Shell: []byte("cat; echo e >&2; head -c 100000 /dev/zero"), Stdin: true, Split: true})
		a.send(wire.TypeInput, []byte("in"))
		a.send(wire.TypeEnd, nil)
		a.wait()
		k := kinds(a)
		if k[len(k)-1] != 'X' || bytes.Count(k, []byte("X")) != 1 || a.out.Len() != 100002 || a.err.String() != "e\n" {
			t.Fatalf("frames %q, %d bytes, %q", k, a.out.Len(), a.err.String())
		}
	}
}

// A short command's output and end go out together: the host is woken once.
func TestShortOutputTravelsWithTheExit(t *testing.T) {
	var writes [][]byte
	o := newOutput(1, wire.NewWriter(writerFunc(func(p []byte) (int, error) {
		writes = append(writes, bytes.Clone(p))
		return len(p), nil
	})), nil)
	o.put(wire.TypeOutput, []byte("a"), 1)
	o.put(wire.TypeOutput, []byte("b"), 1)
	o.put(wire.TypeErrors, []byte("c"), 1)
	o.finish(wire.Encode(wire.TypeExit, 1, wire.Exit{}))
	o.put(wire.TypeOutput, []byte("late"), 4)
	o.finish(wire.Encode(wire.TypeExit, 1, wire.Exit{}))
	// The timer may have fired on a slow machine; the order may not change.
	r := wire.NewReader(bytes.NewReader(bytes.Join(writes, nil)), wire.MaxFromAgent)
	var got []string
	for {
		f, err := r.Next()
		if err != nil {
			break
		}
		got = append(got, string(rune(f.Type)))
	}
	if s := strings.Join(got, ""); s != "OPX" && s != "OOPX" || len(writes) > 3 {
		t.Fatalf("%d writes with frames %v", len(writes), got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestLittleOutputIsNotHeldBack(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	a := c.start(wire.Run{Shell: []byte("printf prompt; read -r x; echo $x"), Stdin: true})
	a.until("prompt")
	a.send(wire.TypeInput, []byte("answer\n"))
	a.wait().want("promptanswer\n", 0)
}

// Never more than the window is under way, in one stream or two, and what waits for credit blocks nobody else.
func TestFlowControl(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	for _, split := range []bool{false, true} {
		a := c.call(true, func(id uint32) wire.Frame {
			return wire.Encode(wire.TypeRun, id, wire.Run{Shell: []byte("head -c 3000000 /dev/zero | tee /dev/stderr"), Split: split})
		})
		received := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return a.out.Len() + a.err.Len()
		}
		eventually(t, "the window is filled", func() bool { return received() >= wire.Window-2*wire.MaxData })
		for range 20 {
			c.sh("echo quick").want("quick\n", 0)
		}
		if n := received(); n > wire.Window {
			t.Fatalf("%d bytes with %d granted", n, wire.Window)
		}
		const step = 100_000
		for granted := wire.Window; received() < 6_000_000; granted += step {
			if n := received(); n > granted {
				t.Fatalf("%d bytes with %d granted", n, granted)
			}
			a.send(wire.TypeCredit, binary.BigEndian.AppendUint32(nil, step))
			// Each stream may have reserved what one frame holds.
			eventually(t, "more comes", func() bool { return received() >= min(granted+step-2*wire.MaxData, 6_000_000) })
		}
		a.wait()
		if n := received(); n != 6_000_000 || a.exit.Code != 0 {
			t.Fatalf("%d bytes, exit %+v", n, a.exit)
		}
	}
}

// What a command itself wrote before it ended is delivered, however late the credit for it comes.
func TestOutputWaitsForCreditBeyondTheEnd(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	const size = wire.Window + 30_000 // the rest fits into the pipe, so the command can end
	a := c.call(true, func(id uint32) wire.Frame {
		return wire.Encode(wire.TypeRun, id, wire.Run{Argv: byteWords("head", "-c", "1078576", "/dev/zero")})
	})
	if size != 1078576 {
		t.Fatal(size)
	}
	eventually(t, "the window is filled", func() bool { return len(a.output()) == wire.Window })
	time.Sleep(2 * quiet) // nothing announces that nothing happens
	select {
	case <-a.done:
		t.Fatal("the Exit did not wait")
	default:
	}
	a.send(wire.TypeCredit, binary.BigEndian.AppendUint32(nil, size))
	a.wait()
	if n := len(a.output()); n != size {
		t.Fatalf("%d bytes", n)
	}
}

func TestBackgroundJobDoesNotHoldTheExit(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	for text, bound := range map[string]time.Duration{
		"setsid sleep 86701 & disown; echo d":                 500 * time.Millisecond * 2, // quiet, and room for a busy machine
		"(while :; do echo noise; sleep 0.05; done) & echo d": restless + 2*time.Second,
		"(while :; do echo noise; done) & echo d":             restless + 2*time.Second,
		"sleep 86702 >/dev/null 2>&1 & echo d":                2 * time.Second,
		"exec > >(sleep 0.1; cat); echo d":                    2 * time.Second,
	} {
		began := time.Now()
		a := c.sh(text)
		if took := time.Since(began); took > bound {
			t.Errorf("%q took %s", text, took)
		}
		if !strings.Contains(a.output(), "d\n") || a.exit.Code != 0 {
			t.Errorf("%q: %.100q, %+v", text, a.output(), a.exit)
		}
	}
	eventually(t, "the background jobs go on", func() bool { return alive("sleep", "86701") && alive("sleep", "86702") })
}

// A job that goes on writing after its command's Exit is not ended by a closed pipe, and its output bothers nobody.
func TestSurvivingJobMayWrite(t *testing.T) {
	w := newWorld(t)
	must(t, writable(w.path("log")))
	c := w.connect(t)
	c.sh("(sleep 0.5; head -c 3000000 /dev/zero && echo wrote >"+w.path("log")+"; exec sleep 86703) & echo started").want("started\n", 0)
	eventually(t, "the job has written 3 MB to nowhere and goes on", func() bool { return alive("sleep", "86703") })
	c.sh("cat "+w.path("log")).want("wrote\n", 0)
}

func TestInput(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	data := make([]byte, 5_000_000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	for _, r := range []wire.Run{{Shell: []byte("cat")}, {Argv: byteWords("cat")}} {
		r.Stdin = true
		a := c.start(r)
		a.feed(data)
		a.send(wire.TypeEnd, nil)
		a.wait()
		if sha256.Sum256(a.out.Bytes()) != sha256.Sum256(data) {
			t.Errorf("%d bytes came back of %d, or not the same", a.out.Len(), len(data))
		}
	}
	// Not reading it, in part or at all, is no error, and the window does not run dry.
	a := c.start(wire.Run{Shell: []byte("head -c 1; exec 0<&-; echo; read -r -u 9 9<<<x; sleep 0.2; echo end"), Stdin: true})
	a.feed(data)
	a.send(wire.TypeEnd, nil)
	a.wait()
	if !strings.HasSuffix(a.output(), "\nend\n") || a.exit.Code != 0 {
		t.Errorf("%q, %+v", a.output(), a.exit)
	}
	a = c.start(wire.Run{Argv: byteWords("true"), Stdin: true})
	a.feed(data[:wire.Window])
	a.wait().want("", 0)
	// An end without any input, again and again.
	for range 100 {
		a := c.start(wire.Run{Shell: []byte("cat | wc -c"), Stdin: true})
		a.send(wire.TypeEnd, nil)
		a.wait().want("0\n", 0)
	}
	// Input that was not announced goes nowhere.
	a = c.start(wire.Run{Shell: []byte("cat; echo end")})
	a.send(wire.TypeInput, []byte("x"))
	a.wait().want("end\n", 0)
}

// feed sends data within the window, as long as the command is there.
func (a *answer) feed(data []byte) {
	a.client.tb.Helper()
	limit := time.After(patience)
	for sent := 0; sent < len(data); {
		a.client.mu.Lock()
		room := wire.Window + a.credit - sent
		a.client.mu.Unlock()
		if n := min(room, wire.MaxData, len(data)-sent); n > 0 {
			a.send(wire.TypeInput, data[sent:sent+n])
			sent += n
			continue
		}
		select {
		case <-a.more:
		case <-a.done:
			return
		case <-limit:
			a.client.tb.Fatalf("%d bytes sent, %d granted, and no more", sent, wire.Window+a.credit)
		}
	}
}

// Small amounts are gathered, so a host always has most of the window left.
func TestConsumedInputIsGranted(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	a := c.start(wire.Run{Shell: []byte("cat >/dev/null"), Stdin: true})
	const size = 3_000_000
	a.feed(make([]byte, size))
	eventually(t, "all is granted but a quarter of the window", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return a.credit > size-wire.Window/4 && a.credit <= size
	})
	a.send(wire.TypeEnd, nil)
	a.wait()
}

func TestLongText(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	c.sh("echo "+strings.Repeat("q", 2_000_000)+" | wc -c").want("2000001\n", 0)
}

// A host that takes a command's output bit by bit gets all of it, however long the command has been over, and whatever else begins meanwhile.
func TestSlowHostGetsAllOfAnEndedCommand(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	const rest, step = 300_000, 10_000
	a := c.call(true, func(id uint32) wire.Frame {
		return wire.Encode(wire.TypeRun, id, wire.Run{Argv: byteWords("head", "-c", strconv.Itoa(wire.Window+rest), "/dev/zero")})
	})
	eventually(t, "the window is filled", func() bool { return len(a.output()) == wire.Window })
	for granted := 0; granted < rest; granted += step {
		c.sh("true").want("", 0)
		a.send(wire.TypeCredit, binary.BigEndian.AppendUint32(nil, step))
		time.Sleep(restless / 20) // what is slow about the host: three times as long as a job may be restless, in all
	}
	a.wait()
	if n := len(a.output()); n != wire.Window+rest || a.exit.Code != 0 {
		t.Fatalf("%d bytes of %d, exit %+v", n, wire.Window+rest, a.exit)
	}
}
