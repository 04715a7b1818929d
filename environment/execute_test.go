package environment

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// obedient plays an agent that says hello and then lets command decide about each run.
func obedient(boot string, command func(a *far, id uint32, run wire.Run), features ...string) func(int, *far) {
	return func(_ int, a *far) {
		if !a.hello(boot, features...) {
			return
		}
		for {
			id, run, ok := a.run()
			if !ok {
				return
			}
			command(a, id, run)
		}
	}
}

func TestExitsBecomeResults(t *testing.T) {
	for name, tc := range map[string]struct {
		exit   wire.Exit
		code   int
		output string
	}{
		"status":         {wire.Exit{Code: 3}, 3, ""},
		"signal":         {wire.Exit{Signal: 9}, 137, ""},
		"bad directory":  {wire.Exit{Reason: wire.ReasonDirectory, Text: "/no/such: no such directory"}, 126, "dockerbox: /no/such: no such directory\n"},
		"not executable": {wire.Exit{Reason: wire.ReasonNotExecutable, Text: "x: permission denied"}, 126, "dockerbox: x: permission denied\n"},
		"not found":      {wire.Exit{Reason: wire.ReasonNotFound, Text: "x: not found"}, 127, "dockerbox: x: not found\n"},
	} {
		t.Run(name, func(t *testing.T) {
			e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, _ wire.Run) { a.exit(id, tc.exit) })})
			r, err := e.Execute(t.Context(), contract.Request{Command: "x"})
			if err != nil || r.ExitCode != tc.code || string(r.Output) != tc.output {
				t.Fatalf("%d %q %v", r.ExitCode, r.Output, err)
			}
		})
	}
	for _, reason := range []string{wire.ReasonUser, wire.ReasonInternal, "from-the-future"} {
		e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, _ wire.Run) { a.exit(id, wire.Exit{Reason: reason, Text: "why"}) })})
		_, err := e.Execute(t.Context(), contract.Request{Command: "x"})
		if b := backend(t, err); !strings.Contains(b.Reason, "why") {
			t.Fatalf("%s: %s", reason, b.Reason)
		}
	}
}

func TestTimeoutAndInterruptKillAndSayWhich(t *testing.T) {
	for name, tc := range map[string]struct {
		timeout time.Duration
		cause   error
		code    int
		line    string
	}{
		"time-out":               {2 * time.Second, nil, 124, "part\n[Command timed out after 2s]"},
		"interrupt":              {0, contract.ErrInterrupted, 130, "part\n[Command interrupted]"},
		"time-out by the caller": {time.Hour, contract.ErrTimedOut, 124, "part\n[Command timed out after 1h0m0s]"},
		"any other cause":        {0, errors.New("shutting down"), 130, "part\n[Command interrupted]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var limit atomic.Int64
				e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, run wire.Run) {
					limit.Store(run.TimeoutMS)
					a.output(id, "part")
					if f, ok := a.next(wire.TypeKill); ok && f.ID == id {
						a.exit(id, wire.Exit{Signal: 15, Killed: true})
					}
				})})
				ctx, cancel := context.WithCancelCause(t.Context())
				if tc.cause != nil {
					time.AfterFunc(time.Second, func() { cancel(tc.cause) })
				}
				r, err := e.Execute(ctx, contract.Request{Command: "x", Timeout: tc.timeout})
				cancel(nil)
				if err != nil || r.ExitCode != tc.code || string(r.Output) != tc.line || r.TimedOut != (tc.code == 124) || r.Interrupted == r.TimedOut {
					t.Fatalf("%+v %v", r, err)
				}
				if want := int64(0); tc.timeout > 0 {
					want = (tc.timeout + time.Second).Milliseconds()
					if limit.Load() != want {
						t.Fatalf("the agent's own deadline is %d ms, want %d", limit.Load(), want)
					}
				}
			})
		})
	}
}

// A command that ended by itself just before the kill keeps its own status.
func TestStatusBeatsAKillThatCameTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, _ wire.Run) {
			a.next(wire.TypeKill)
			a.exit(id, wire.Exit{Code: 7, Cwd: []byte("/x")})
		})})
		r, err := e.Execute(t.Context(), contract.Request{Command: "x", Timeout: time.Second})
		if err != nil || r.ExitCode != 7 || r.TimedOut || r.Cwd != "/x" {
			t.Fatalf("%+v %v", r, err)
		}
	})
}

func TestOutputIsWindowedAndWhole(t *testing.T) {
	const total = 8 << 20
	var most atomic.Int64
	e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, _ wire.Run) {
		window, sent := wire.Window, 0
		data := bytes.Repeat([]byte("0123456789abcdef"), wire.MaxData/16)
		for sent < total {
			for window < len(data) {
				f, ok := a.next(wire.TypeCredit)
				if !ok {
					return
				}
				n, err := wire.ParseCredit(f)
				if err != nil {
					return
				}
				window += n
				most.Store(max(most.Load(), int64(window)))
			}
			a.send(wire.Frame{Type: wire.TypeOutput, ID: id, Payload: data})
			window -= len(data)
			sent += len(data)
		}
		a.exit(id, wire.Exit{})
	})})
	var got bytes.Buffer
	r, err := e.Execute(t.Context(), contract.Request{Command: "x", Stdout: &got})
	if err != nil || r.ExitCode != 0 || got.Len() != total {
		t.Fatalf("%d bytes of %d, %v", got.Len(), total, err)
	}
	if most.Load() > wire.Window {
		t.Fatalf("the agent was allowed %d bytes at once", most.Load())
	}
	if i := bytes.Index(got.Bytes(), []byte("f1")); i >= 0 {
		t.Fatal("pieces out of order")
	}
}

func TestSplitStreamsAndMergedOrder(t *testing.T) {
	e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, run wire.Run) {
		a.output(id, "o1 ")
		a.send(wire.Frame{Type: wire.TypeErrors, ID: id, Payload: []byte("e1 ")})
		a.output(id, "o2")
		a.exit(id, wire.Exit{})
	})})
	var out, errs bytes.Buffer
	if _, err := e.Execute(t.Context(), contract.Request{Argv: []string{"x"}, Stdout: &out, Stderr: &errs}); err != nil || out.String() != "o1 o2" || errs.String() != "e1 " {
		t.Fatalf("%q %q %v", &out, &errs, err)
	}
	r, err := e.Execute(t.Context(), contract.Request{Command: "x"})
	if err != nil || string(r.Output) != "o1 e1 o2" {
		t.Fatalf("%q %v", r.Output, err)
	}
}

func TestStdinKeepsToItsCreditAndEndsHalfClosed(t *testing.T) {
	const total = 5 << 20
	var got atomic.Int64
	var over atomic.Bool
	e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, run wire.Run) {
		credit := wire.Window
		for run.Stdin {
			f, err := a.in.Next()
			if err != nil {
				return
			}
			if f.Type == wire.TypeEnd {
				break
			}
			if f.Type != wire.TypeInput {
				continue
			}
			got.Add(int64(len(f.Payload)))
			if credit -= len(f.Payload); credit < 0 {
				over.Store(true)
			}
			if credit < wire.Window/2 {
				credit += wire.Window / 2
				a.send(wire.Credit(id, wire.Window/2))
			}
		}
		a.output(id, "end")
		a.exit(id, wire.Exit{})
	})})
	r, err := e.Execute(t.Context(), contract.Request{Command: "x", Stdin: io.LimitReader(zeros{}, total)})
	if err != nil || string(r.Output) != "end" || got.Load() != total || over.Load() {
		t.Fatalf("%q, %d of %d bytes, over credit %v, %v", r.Output, got.Load(), total, over.Load(), err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A command need not read its input: the result comes while the writer still holds more.
func TestUnreadStdinIsNoFault(t *testing.T) {
	e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, _ wire.Run) {
		a.next(wire.TypeInput)
		a.exit(id, wire.Exit{})
		a.drain() // net.Pipe has no buffer: take what the host still sends
	})})
	r, err := e.Execute(t.Context(), contract.Request{Command: "head -c1", Stdin: io.LimitReader(zeros{}, 20<<20)})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%+v %v", r, err)
	}
}

func TestBrokenStdinIsSaid(t *testing.T) {
	e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, _ wire.Run) {
		a.next(wire.TypeEnd)
		a.exit(id, wire.Exit{})
	})})
	_, err := e.Execute(t.Context(), contract.Request{Command: "x", Stdin: io.MultiReader(strings.NewReader("a"), brokenReader{})})
	if b := backend(t, err); !strings.Contains(b.Reason, "disk on fire") {
		t.Fatal(b.Reason)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

// When whoever reads the output is gone, the command ends too.
func TestBrokenOutputEndsTheCommand(t *testing.T) {
	killed := make(chan bool, 1)
	e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, _ wire.Run) {
		a.output(id, "x")
		_, ok := a.next(wire.TypeKill)
		killed <- ok
		a.exit(id, wire.Exit{Signal: 15, Killed: true})
	})})
	_, err := e.Execute(t.Context(), contract.Request{Command: "x", Stdout: brokenWriter{}})
	if b := backend(t, err); !errors.Is(err, io.ErrClosedPipe) || !strings.Contains(b.Reason, "output") || !<-killed {
		t.Fatal(err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestReconnects(t *testing.T) {
	const lost, dead, restarted = "lost in the middle", "dead before", "agent is another"
	for name, tc := range map[string]struct {
		boots     []string // of the first and second agent
		recreated bool
	}{
		dead:      {[]string{"one", "one"}, false},
		restarted: {[]string{"one", "two"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &testBox{}
			b.play = func(n int, a *far) {
				if !a.hello(tc.boots[n-1]) {
					return
				}
				id, _, ok := a.run()
				if ok {
					a.exit(id, wire.Exit{Code: n})
				}
			} // and hangs up after one command
			e := connect(t, b)
			for want := 1; want <= 2; want++ {
				r, err := e.Execute(t.Context(), contract.Request{Command: "x"})
				if err != nil || r.ExitCode != want || r.Recreated != (tc.recreated && want == 2) {
					t.Fatalf("command %d: %+v %v", want, r, err)
				}
				if c := e.conn; want == 1 {
					<-c.ended // the agent has hung up
				}
			}
		})
	}
	t.Run(lost, func(t *testing.T) {
		b := &testBox{}
		var runs atomic.Int32
		b.play = func(_ int, a *far) {
			if a.hello("one") {
				if id, run, ok := a.run(); ok {
					runs.Add(1)
					if string(run.Shell) == "works" {
						a.exit(id, wire.Exit{})
						a.drain()
					}
				}
			}
		}
		e := connect(t, b)
		_, err := e.Execute(t.Context(), contract.Request{Command: "lost"})
		if b := backend(t, err); !strings.Contains(b.Reason, "lost") || !strings.Contains(b.Hint, "in part") {
			t.Fatal(b)
		}
		if runs.Load() != 1 {
			t.Fatalf("a command that may have run was sent %d times", runs.Load())
		}
		if _, err := e.Execute(t.Context(), contract.Request{Command: "works"}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStoppedContainersAreRevivedAndPausedOnesSaid(t *testing.T) {
	once := func(_ int, a *far) {
		if a.hello("one") {
			if id, _, ok := a.run(); ok {
				a.exit(id, wire.Exit{})
			}
		}
	}
	for name, tc := range map[string]struct {
		state  State
		revive bool
		want   string
	}{
		"gone":             {Gone, true, ""},
		"stopped":          {Stopped, true, ""},
		"paused":           {Paused, true, "is paused"},
		"gone, for good":   {Gone, false, "not running any more"},
		"stopped for good": {Stopped, false, "not running any more"},
	} {
		t.Run(name, func(t *testing.T) {
			old, fresh := &testBox{play: once}, &testBox{play: once}
			o := Options{Container: old, Info: contract.Info{Name: "t", ContainerID: "old"}, Account: "pn"}
			if tc.revive {
				o.Revive = func(context.Context) (Container, contract.Info, error) {
					return fresh, contract.Info{Name: "t", ContainerID: "new"}, nil
				}
			}
			e, err := Connect(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Cleanup(context.Background(), false) }()
			if _, err := e.Execute(t.Context(), contract.Request{Command: "x"}); err != nil {
				t.Fatal(err)
			}
			<-e.conn.ended
			old.state = tc.state
			r, err := e.Execute(t.Context(), contract.Request{Command: "x"})
			if tc.want != "" {
				if b := backend(t, err); !strings.Contains(b.Reason, tc.want) {
					t.Fatal(b.Reason)
				}
				return
			}
			if err != nil || !r.Recreated || e.Info().ContainerID != "new" || e.Info().Home != "/home/pn" {
				t.Fatalf("%+v %+v %v", r, e.Info(), err)
			}
		})
	}
}

// A command in a container that was paused under it ends in a sentence that says so, long before the agent counts as dead.
func TestPauseUnderACommandIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &testBox{}
		b.play = func(_ int, a *far) {
			if !a.hello("one") {
				return
			}
			if _, _, ok := a.run(); ok {
				b.mu.Lock()
				b.state = Paused
				b.mu.Unlock()
				for { // frozen: it takes what the kernel buffers and answers nothing
					if _, err := a.in.Next(); err != nil {
						return
					}
				}
			}
		}
		e := connect(t, b)
		began := time.Now()
		_, err := e.Execute(t.Context(), contract.Request{Command: "x"})
		if got := backend(t, err); !strings.Contains(got.Reason, "is paused") || !strings.Contains(got.Hint, "unpause") || time.Since(began) > 3*pingEvery {
			t.Fatalf("%+v after %s", got, time.Since(began))
		}
	})
}

func TestDirectoriesAreCompleted(t *testing.T) {
	for name, tc := range map[string]struct {
		cwd  string // of the environment
		req  contract.Request
		want wire.Run
		code int
	}{
		"lasting":              {"", contract.Request{Command: "x"}, wire.Run{}, 0},
		"start directory":      {"/srv", contract.Request{Command: "x"}, wire.Run{Dir: []byte("/srv"), Fallback: []byte("/home/pn")}, 0},
		"start below home":     {"~/w", contract.Request{Command: "x"}, wire.Run{Dir: []byte("/home/pn/w"), Fallback: []byte("/home/pn")}, 0},
		"windows start":        {`D:\.hermes`, contract.Request{Command: "x"}, wire.Run{Dir: []byte("/home/pn"), Fallback: []byte("/home/pn")}, 0},
		"the host's no idea":   {"", contract.Request{Command: "x", Dir: "/root"}, wire.Run{Dir: []byte("/root"), Fallback: []byte("/home/pn")}, 0},
		"explicit":             {"/srv", contract.Request{Command: "x", Dir: "/opt"}, wire.Run{Dir: []byte("/opt")}, 0},
		"tilde stays literal":  {"", contract.Request{Command: "x", Dir: "~"}, wire.Run{Dir: []byte("~")}, 0},
		"windows per command":  {"", contract.Request{Command: "x", Dir: `D:\x`}, wire.Run{}, 126},
		"relative per command": {"", contract.Request{Command: "x", Dir: "work"}, wire.Run{}, 126},
	} {
		t.Run(name, func(t *testing.T) {
			var got wire.Run
			b := &testBox{play: obedient("one", func(a *far, id uint32, run wire.Run) { got = run; a.exit(id, wire.Exit{}) })}
			e, err := Connect(t.Context(), Options{Container: b, Account: "pn", Cwd: tc.cwd})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Cleanup(context.Background(), false); b.playing.Wait() }()
			r, err := e.Execute(t.Context(), tc.req)
			if err != nil || r.ExitCode != tc.code {
				t.Fatalf("%+v %v", r, err)
			}
			if tc.code == 126 {
				if !strings.Contains(string(r.Output), tc.req.Dir) {
					t.Fatalf("%q does not name the directory", r.Output)
				}
				return
			}
			if !bytes.Equal(got.Dir, tc.want.Dir) || !bytes.Equal(got.Fallback, tc.want.Fallback) || got.User != "pn" {
				t.Fatalf("dir %q fallback %q user %q", got.Dir, got.Fallback, got.User)
			}
		})
	}
}

// The start directory is for the first command alone: after one that named a directory, the lasting directory counts.
func TestStartDirectoryIsForTheFirstCommand(t *testing.T) {
	var dirs []string
	b := &testBox{play: obedient("one", func(a *far, id uint32, run wire.Run) {
		dirs = append(dirs, string(run.Dir))
		a.exit(id, wire.Exit{})
	})}
	e, err := Connect(t.Context(), Options{Container: b, Account: "pn", Cwd: "/srv"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Cleanup(context.Background(), false); b.playing.Wait() }()
	for _, dir := range []string{"/opt", ""} {
		if _, err := e.Execute(t.Context(), contract.Request{Command: "x", Dir: dir}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"/opt", ""}; !slices.Equal(dirs, want) {
		t.Fatalf("%q, want %q", dirs, want)
	}
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, _ wire.Run) { a.exit(id, wire.Exit{}) })})
	for name, req := range map[string]contract.Request{
		"nothing":       {},
		"both":          {Command: "x", Argv: []string{"x"}},
		"NUL in value":  {Command: "x", Env: map[string]string{"A": "b\x00c"}},
		"equals sign":   {Command: "x", Env: map[string]string{"A=B": "c"}},
		"name of zero":  {Command: "x", Env: map[string]string{"": "c"}},
		"NUL in a name": {Command: "x", Env: map[string]string{"A\x00": "c"}},
	} {
		if _, err := e.Execute(t.Context(), req); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			backend(t, err)
		}
	}
}

func TestFilesAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		send  string
		exit  wire.Exit
		stder string
		max   int64
		want  string
		err   string
	}{
		"whole":                {send: "abc\xff", max: 4, want: "abc\xff"},
		"no limit":             {send: "abc", want: "abc"},
		"agent says too large": {exit: wire.Exit{Code: 1}, stder: "too large\n", max: 3, err: contract.ErrTooLarge.Error()},
		"agent sends too much": {send: "abcd", max: 3, err: contract.ErrTooLarge.Error()},
		"missing":              {exit: wire.Exit{Code: 1}, stder: "no such file\n", err: "/f: no such file"},
		"no reason at all":     {exit: wire.Exit{Code: 1}, err: "/f: the agent could not read it"},
	} {
		t.Run(name, func(t *testing.T) {
			e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, run wire.Run) {
				if tc.send != "" {
					a.output(id, tc.send)
				}
				if tc.stder != "" {
					a.send(wire.Frame{Type: wire.TypeErrors, ID: id, Payload: []byte(tc.stder)})
				}
				a.exit(id, tc.exit)
			})})
			var got bytes.Buffer
			err := e.FetchFile(t.Context(), "/f", &got, tc.max)
			if tc.err == "" && (err != nil || got.String() != tc.want) || tc.err != "" && (err == nil || err.Error() != tc.err) {
				t.Fatalf("%q %v", &got, err)
			}
		})
	}
}

func TestCleanupIsIdempotentAndFinal(t *testing.T) {
	var released []bool
	b := &testBox{play: obedient("one", func(*far, uint32, wire.Run) {})}
	e, err := Connect(t.Context(), Options{Container: b, Account: "pn", Release: func(_ context.Context, remove bool) error {
		released = append(released, remove)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := e.Cleanup(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Cleanup(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if len(released) != 2 || released[0] || !released[1] {
		t.Fatalf("released %v", released)
	}
	_, err = e.Execute(t.Context(), contract.Request{Command: "x"})
	if got := backend(t, err).Reason; !strings.Contains(got, "cleaned up") {
		t.Fatal(got)
	}
	b.playing.Wait()
}
