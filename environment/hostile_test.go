package environment

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// Whatever an agent says instead of a hello, connecting ends in a sentence and the stream is closed.
func TestConnectRefusesAgents(t *testing.T) {
	raw := func(b []byte) func(*far) {
		return func(a *far) {
			_, _ = a.Write(b) // the host may hang up in the middle
			a.drain()
		}
	}
	hello := func(h wire.Hello) func(*far) {
		return func(a *far) {
			a.send(wire.Encode(wire.TypeHello, 0, h))
			a.drain()
		}
	}
	for name, tc := range map[string]struct {
		play func(*far)
		want string
	}{
		"ends at once":     {func(*far) {}, "ended before it said hello"},
		"4 GB frame":       {raw([]byte{255, 255, 255, 255, 'H', 0, 0, 0, 0}), "longer than the limit"},
		"length too short": {raw([]byte{0, 0, 0, 1, 'H', 0, 0, 0, 0}), "shorter than its header"},
		"text":             {raw([]byte("OCI runtime exec failed: no such file")), "could not be reached: no such file (OCI runtime exec failed)"},
		"no process left": {
			raw([]byte("runtime: failed to create new OS thread (have 2 already; errno=11)\nruntime: may need to increase max user processes (ulimit -u)\nfatal error: newosproc\n\nruntime stack:\nruntime.throw({0x5a967d?, 0x7fff}) runtime/panic.go:1229 +0x48\n")),
			"could not be reached: the processes or the memory that the sandbox may have are used up",
		},
		"no process for the runtime": {
			raw([]byte("OCI runtime exec failed: exec failed: unable to start container process: read init-p: connection reset by peer: unknown")),
			"could not be reached: the processes or the memory that the sandbox may have are used up",
		},
		"another frame":     {raw(wire.Append(nil, wire.Frame{Type: wire.TypeExit, ID: 1, Payload: []byte("{}")})), "instead of its hello"},
		"broken JSON":       {raw(wire.Append(nil, wire.Frame{Type: wire.TypeHello, Payload: []byte("{")})), "H frame"},
		"another program":   {hello(wire.Hello{Name: "sshd", Protocol: 1}), `calls itself "sshd"`},
		"later protocol":    {hello(wire.Hello{Name: wire.AgentName, Protocol: 99}), "protocol 99"},
		"its own complaint": {hello(wire.Hello{Name: wire.AgentName, Protocol: 1, Error: "name is\nheld \x1b[31mby uid 7"}), "name is held [31mby uid 7"},
		"endless hello": {func(a *far) {
			_, _ = a.Write(binary.BigEndian.AppendUint32(nil, wire.MaxHello))
			_, _ = a.Write([]byte{'H', 0, 0, 0, 0, '{'})
			for { // one byte a second, for ever
				time.Sleep(time.Second)
				if _, err := a.Write([]byte(" ")); err != nil {
					return
				}
			}
		}, "said nothing for 20s"},
		"silence": {(*far).drain, "said nothing for 20s"},
		"silence after the hello": {func(a *far) {
			a.send(wire.Encode(wire.TypeHello, 0, wire.Hello{Name: wire.AgentName, Protocol: wire.Protocol}))
			a.drain()
		}, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &testBox{play: func(_ int, a *far) { tc.play(a) }}
				_, err := Connect(t.Context(), Options{Container: b, Account: "pn"})
				if got := backend(t, err).Reason; !strings.Contains(got, tc.want) {
					t.Fatalf("reason %q does not say %q", got, tc.want)
				}
				b.playing.Wait() // the stream was closed
			})
		})
	}
}

func TestConnectRefusesAccounts(t *testing.T) {
	for name, tc := range map[string]struct {
		answer wire.Answer
		want   string
	}{
		"unknown":        {wire.Answer{Error: "no such user"}, "no account"},
		"in its words":   {wire.Answer{Error: `the sandbox has no group "x"`}, `the sandbox has no group "x"`},
		"none at all":    {wire.Answer{}, `the sandbox has no account "pn"`},
		"relative home":  {wire.Answer{Account: &wire.Account{Home: "home"}}, "not an absolute path"},
		"no home":        {wire.Answer{Account: &wire.Account{}}, "not an absolute path"},
		"another home":   {wire.Answer{Account: &wire.Account{Home: "/srv/pn"}}, "/srv/pn inside the sandbox, but its volume was mounted at /home/pn"},
		"home of 5000 B": {wire.Answer{Account: &wire.Account{Home: "/" + strings.Repeat("x", 5000)}}, "not an absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &testBox{play: func(_ int, a *far) {
				a.send(wire.Encode(wire.TypeHello, 0, wire.Hello{Name: wire.AgentName, Protocol: wire.Protocol}))
				if _, ok := a.next(wire.TypeHello); !ok {
					return
				}
				f, ok := a.next(wire.TypeQuery)
				if ok {
					a.send(wire.Encode(wire.TypeAnswer, f.ID, tc.answer))
				}
				a.drain()
			}}
			_, err := Connect(t.Context(), Options{Container: b, Account: "pn", Home: "/home/pn"})
			if got := backend(t, err).Reason; !strings.Contains(got, tc.want) || len(got) > 1000 || strings.Count(got, "has no") > 1 {
				t.Fatalf("reason %q does not say %q", got, tc.want)
			}
			b.playing.Wait()
		})
	}
}

// What the agent calls its temporary directory is a path, or /tmp is taken.
func TestConnectTakesNoTempDirThatIsNone(t *testing.T) {
	for temp, want := range map[string]string{
		"": "/tmp", "/var/tmp": "/var/tmp", "tmp": "/tmp", "/a\nb": "/tmp", "/" + strings.Repeat("x", 5000): "/tmp",
	} {
		t.Run(temp[:min(len(temp), 20)], func(t *testing.T) {
			b := &testBox{play: func(_ int, a *far) {
				a.send(wire.Encode(wire.TypeHello, 0, wire.Hello{Name: wire.AgentName, Protocol: wire.Protocol}))
				if _, ok := a.next(wire.TypeHello); !ok {
					return
				}
				if f, ok := a.next(wire.TypeQuery); ok {
					a.send(wire.Encode(wire.TypeAnswer, f.ID, wire.Answer{Account: &wire.Account{Home: "/home/pn", Temp: temp}}))
				}
				a.drain()
			}}
			env, err := Connect(t.Context(), Options{Container: b, Account: "pn", Home: "/home/pn"})
			if err != nil {
				t.Fatal(err)
			}
			if got := env.Info().TempDir; got != want {
				t.Errorf("it is %q, want %q", got, want)
			}
			if err := env.Cleanup(t.Context(), false); err != nil {
				t.Error(err)
			}
			b.playing.Wait()
		})
	}
}

// An agent that breaks the rules while a command runs costs its connection and an error, and nothing hangs.
func TestExecuteSurvivesAgents(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(a *far, id uint32)
		want string
	}{
		"goes away":              {func(*far, uint32) {}, "the stream ended"},
		"4 GB frame":             {func(a *far, id uint32) { _, _ = a.Write([]byte{255, 255, 255, 255, 'O', 0, 0, 0, 1}); a.drain() }, "longer than the limit"},
		"more output than asked": {func(a *far, id uint32) { flood(a, id) }, "granted"},
		"broken exit": {func(a *far, id uint32) {
			a.send(wire.Frame{Type: wire.TypeExit, ID: id, Payload: []byte("[")})
			a.drain()
		}, "X frame"},
		"broken credit": {func(a *far, id uint32) {
			a.send(wire.Frame{Type: wire.TypeCredit, ID: id, Payload: []byte{1}})
			a.drain()
		}, "credit frame"},
		"credit without end": {func(a *far, id uint32) {
			for a.out.Write(wire.Credit(id, wire.MaxFromHost)) == nil { // the host hangs up
			}
		}, "granted more input"},
		"silence": {func(a *far, _ uint32) { a.drain() }, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &testBox{play: func(_ int, a *far) {
					if !a.hello("one") {
						return
					}
					if id, _, ok := a.run(); ok {
						tc.play(a, id)
					}
				}}
				e := connect(t, b)
				// A reader that is stuck until the end, so that the window is not replenished.
				stuck := &gate{open: make(chan struct{})}
				go func() { time.Sleep(time.Hour); close(stuck.open) }()
				_, err := e.Execute(t.Context(), contract.Request{Command: "x", Stdout: stuck})
				if got := backend(t, err).Reason; !strings.Contains(got, tc.want) {
					t.Fatalf("reason %q does not say %q", got, tc.want)
				}
				time.Sleep(2 * time.Hour) // lets the opener above end
			})
		})
	}
}

// gate is a writer that blocks until it is opened.
type gate struct{ open chan struct{} }

func (g *gate) Write(p []byte) (int, error) { <-g.open; return len(p), nil }

func flood(a *far, id uint32) {
	data := bytes.Repeat([]byte("x"), wire.MaxData)
	for a.out.Write(wire.Frame{Type: wire.TypeOutput, ID: id, Payload: data}) == nil { // the host hangs up
	}
}

func TestKillThatIsNotObeyedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &testBox{play: func(_ int, a *far) {
			if a.hello("one") {
				for { // lives, answers, and never ends its command
					if _, _, ok := a.run(); !ok {
						return
					}
				}
			}
		}}
		e := connect(t, b)
		began := time.Now()
		_, err := e.Execute(t.Context(), contract.Request{Command: "x", Timeout: 2 * time.Second})
		if got := backend(t, err).Reason; !strings.Contains(got, "did not end the command") {
			t.Fatal(got)
		}
		if took := time.Since(began); took > 2*time.Second+killLimit {
			t.Fatalf("took %s", took)
		}
	})
}

// Frames for commands that are not there are ignored, cost no memory, and do not disturb the one that is.
func TestUnknownIDsCostNothing(t *testing.T) {
	const frames = 2000
	b := &testBox{play: func(_ int, a *far) {
		if !a.hello("one") {
			return
		}
		id, _, ok := a.run()
		if !ok {
			return
		}
		data := bytes.Repeat([]byte("x"), wire.MaxData)
		for i := range uint32(frames) {
			a.send(wire.Frame{Type: wire.TypeOutput, ID: 1000 + i, Payload: data})
		}
		a.exit(1000, wire.Exit{Code: 9}) // exit of what never started
		a.send(wire.Frame{Type: 'z', ID: id, Payload: data}, wire.Encode(wire.TypeAnswer, 77, wire.Answer{}))
		a.output(id, "fine")
		a.exit(id, wire.Exit{Cwd: []byte("/home/pn")})
		a.exit(id, wire.Exit{Code: 8}) // a second end
		a.drain()
	}}
	e := connect(t, b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := e.Execute(t.Context(), contract.Request{Command: "x"})
	runtime.ReadMemStats(&after)
	if err != nil || string(r.Output) != "fine" || r.ExitCode != 0 || r.Cwd != "/home/pn" {
		t.Fatalf("%+v %v", r, err)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Fatalf("%d MB of frames for nobody left %d bytes behind", frames*wire.MaxData>>20, grown)
	}
}

// Output that changes stream with every byte, or has no bytes, must not cost more than the window while its reader is stuck.
func TestAlternatingOutputCostsNoMoreThanTheWindow(t *testing.T) {
	for name, tc := range map[string]struct {
		data   string
		frames int
	}{
		"a byte each": {"x", wire.Window},
		"empty":       {"", wire.Window},
	} {
		t.Run(name, func(t *testing.T) {
			sent := make(chan struct{})
			b := &testBox{play: func(_ int, a *far) {
				if !a.hello("one") {
					return
				}
				id, _, ok := a.run()
				if !ok {
					return
				}
				const batch = 1024
				pairs := make([]wire.Frame, 0, batch)
				for len(pairs) < batch {
					pairs = append(pairs, wire.Frame{Type: wire.TypeOutput, ID: id, Payload: []byte(tc.data)}, wire.Frame{Type: wire.TypeErrors, ID: id, Payload: []byte(tc.data)})
				}
				for range tc.frames / batch {
					a.send(pairs...)
				}
				a.exit(id, wire.Exit{})
				close(sent)
				a.drain()
			}}
			e := connect(t, b)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			stuck := &gate{open: make(chan struct{})}
			go func() {
				<-sent
				runtime.GC()
				runtime.ReadMemStats(&after)
				close(stuck.open)
			}()
			var errs bytes.Buffer
			if r, err := e.Execute(t.Context(), contract.Request{Command: "x", Stdout: stuck, Stderr: &errs}); err != nil || r.ExitCode != 0 {
				t.Fatalf("%+v %v", r, err)
			}
			if want := len(tc.data) * tc.frames / 2; errs.Len() != want {
				t.Errorf("%d bytes of stderr came, want %d", errs.Len(), want)
			}
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
				t.Errorf("%d frames hold %d bytes", tc.frames, grown)
			}
		})
	}
}

// A status is one that a process can have.
func TestConcludeKeepsStatusesInRange(t *testing.T) {
	for _, tc := range []struct {
		exit wire.Exit
		want int
	}{
		{wire.Exit{Code: -1 << 40}, 255},
		{wire.Exit{Code: 1 << 40}, 255},
		{wire.Exit{Code: 255}, 255},
		{wire.Exit{Signal: 9}, 137},
		{wire.Exit{Signal: 1 << 40}, 255},
		{wire.Exit{Signal: -5, Code: 3}, 3},
	} {
		exit, want := tc.exit, tc.want
		r, err := conclude(exit, newSink(contract.Request{}))
		if err != nil || r.ExitCode != want {
			t.Errorf("%+v: status %d, %v, want %d", exit, r.ExitCode, err, want)
		}
	}
}

// What a kernel does not take is no matter of bash or of limits.
func TestConcludeTellsWhatIsTooLarge(t *testing.T) {
	_, err := conclude(wire.Exit{Reason: wire.ReasonInternal, Text: "start as pn: argument list too long"}, newSink(contract.Request{}))
	if b := backend(t, err); !strings.Contains(b.Reason, "larger than the kernel takes") || !strings.Contains(b.Hint, "128 KiB") {
		t.Error(err)
	}
}

// Nothing from inside is taken at its word.
func TestConcludeDoubts(t *testing.T) {
	for name, tc := range map[string]struct {
		exit wire.Exit
		cwd  string
	}{
		"relative": {wire.Exit{Cwd: []byte("tmp")}, ""},
		"endless":  {wire.Exit{Cwd: bytes.Repeat([]byte("/x"), maxPath)}, ""},
		"usual":    {wire.Exit{Cwd: []byte("/tmp/n\nl ")}, "/tmp/n\nl "},
	} {
		r, err := conclude(tc.exit, newSink(contract.Request{}))
		if err != nil || r.Cwd != tc.cwd {
			t.Errorf("%s: cwd %q, %v", name, r.Cwd, err)
		}
	}
}

// Whatever bytes an agent sends, connecting and running end, and end in a result or a BackendError.
func FuzzAgent(f *testing.F) {
	f.Add([]byte("garbage"), []byte("more"))
	f.Add([]byte{}, wire.Append(wire.Append(nil, wire.Frame{Type: wire.TypeOutput, ID: 2, Payload: []byte("x")}), wire.Encode(wire.TypeExit, 2, wire.Exit{Code: 1})))
	f.Add([]byte{}, wire.Append(nil, wire.Credit(2, 1<<30)))
	f.Add([]byte{}, []byte{255, 255, 255, 255, 'X', 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, instead, after []byte) {
		b := &testBox{play: func(n int, a *far) {
			if len(instead) > 0 && n == 1 {
				_, _ = a.Write(instead)
				return
			}
			if !a.hello("one") {
				return
			}
			if _, _, ok := a.run(); ok {
				_, _ = a.Write(after)
			}
		}}
		defer b.playing.Wait()
		e, err := Connect(context.Background(), Options{Container: b, Account: "pn"})
		if err != nil {
			backend(t, err)
			return
		}
		defer func() { _ = e.Cleanup(context.Background(), false) }()
		if _, err := e.Execute(context.Background(), contract.Request{Command: "x"}); err != nil {
			backend(t, err)
		}
	})
}
