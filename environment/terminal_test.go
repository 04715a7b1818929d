package environment

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// withTerminals plays an agent that knows terminals and lets command decide about each run.
func withTerminals(command func(a *far, id uint32, run wire.Run)) *testBox {
	return &testBox{play: obedient("one", command, wire.FeatureTerminal)}
}

func TestTerminalIsAskedFor(t *testing.T) {
	got := make(chan wire.Run, 1)
	e := connect(t, withTerminals(func(a *far, id uint32, run wire.Run) {
		got <- run
		a.output(id, "shown")
		a.exit(id, wire.Exit{Code: 5})
	}))
	var out, said bytes.Buffer
	r, err := e.Execute(t.Context(), contract.Request{
		Argv: []string{"x"}, Stdout: &out, Stderr: &said, Terminal: &contract.Terminal{Size: contract.TerminalSize{Rows: 40, Cols: 132}},
	})
	if err != nil || r.ExitCode != 5 || out.String() != "shown" || said.Len() > 0 {
		t.Errorf("%+v, %v, %q, %q", r, err, out.String(), said.String())
	}
	if run := <-got; run.Terminal == nil || *run.Terminal != (wire.Size{Rows: 40, Cols: 132}) || run.Split {
		t.Errorf("%+v", run)
	}
}

// What dockerbox itself has to say does not go to the terminal when there is another place.
func TestTerminalIsNotForComplaints(t *testing.T) {
	e := connect(t, withTerminals(func(a *far, id uint32, _ wire.Run) { a.exit(id, wire.Exit{Reason: wire.ReasonNotFound, Text: "no x"}) }))
	var out, said bytes.Buffer
	r, err := e.Execute(t.Context(), contract.Request{Argv: []string{"x"}, Stdout: &out, Stderr: &said, Terminal: &contract.Terminal{}})
	if err != nil || r.ExitCode != contract.ExitNotFound || out.Len() > 0 || said.String() != "dockerbox: no x\n" {
		t.Errorf("%+v, %v, %q, %q", r, err, out.String(), said.String())
	}
}

// Sizes arrive one by one and in order while the command runs, and nothing waits for them afterwards.
func TestTerminalSizesArePassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []wire.Size
		e := connect(t, withTerminals(func(a *far, id uint32, _ wire.Run) {
			for range 3 {
				f, ok := a.next(wire.TypeResize)
				var s wire.Size
				if !ok || f.ID != id || json.Unmarshal(f.Payload, &s) != nil {
					return
				}
				got = append(got, s)
			}
			a.exit(id, wire.Exit{})
		}))
		sizes := make(chan contract.TerminalSize)
		go func() {
			for n := range uint16(3) {
				sizes <- contract.TerminalSize{Rows: n, Cols: 10 * n}
			}
		}()
		if _, err := e.Execute(t.Context(), contract.Request{Argv: []string{"x"}, Terminal: &contract.Terminal{Resize: sizes}}); err != nil {
			t.Fatal(err)
		}
		if len(got) != 3 || got[0] != (wire.Size{}) || got[1] != (wire.Size{Rows: 1, Cols: 10}) || got[2] != (wire.Size{Rows: 2, Cols: 20}) {
			t.Errorf("%v", got)
		}
		synctest.Wait()
		select {
		case sizes <- contract.TerminalSize{}:
			t.Error("a size was taken after the end")
		default:
		}
	})
}

// A closed channel is no size.
func TestTerminalWithoutMoreSizes(t *testing.T) {
	resized := make(chan bool, 1)
	e := connect(t, withTerminals(func(a *far, id uint32, _ wire.Run) {
		for {
			if f, err := a.in.Next(); err != nil || f.Type == wire.TypeEnd || f.Type == wire.TypeResize {
				resized <- err != nil || f.Type == wire.TypeResize
				break
			}
		}
		a.exit(id, wire.Exit{})
	}))
	sizes := make(chan contract.TerminalSize)
	close(sizes)
	r, err := e.Execute(t.Context(), contract.Request{Argv: []string{"x"}, Stdin: strings.NewReader(""), Terminal: &contract.Terminal{Resize: sizes}})
	if err != nil || r.ExitCode != 0 || <-resized {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTerminalIsForAnArgv(t *testing.T) {
	e := connect(t, withTerminals(func(a *far, id uint32, _ wire.Run) { a.exit(id, wire.Exit{}) }))
	_, err := e.Execute(t.Context(), contract.Request{Command: "x", Terminal: &contract.Terminal{}})
	if b := backend(t, err); !strings.Contains(b.Reason, "terminal") {
		t.Error(b.Reason)
	}
}

// An agent that does not know terminals would run the program on pipes, so it is not asked.
func TestTerminalOfAnOlderAgent(t *testing.T) {
	ran := false
	e := connect(t, &testBox{play: obedient("one", func(a *far, id uint32, _ wire.Run) { ran = true; a.exit(id, wire.Exit{}) })})
	_, err := e.Execute(t.Context(), contract.Request{Argv: []string{"x"}, Terminal: &contract.Terminal{}})
	if b := backend(t, err); !strings.Contains(b.Reason, "older version") || !strings.Contains(b.Hint, "up --recreate") || ran {
		t.Error(b.Reason, b.Hint, ran)
	}
}
