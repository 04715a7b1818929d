package desktop

import (
	"context"
	"errors"
	"image"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// box is a sandbox that answers each request by what it runs.
type box struct {
	contract.Environment
	info   contract.Info
	answer func(contract.Request) (contract.Result, error)
	asked  []contract.Request
}

func (b *box) Info() contract.Info { return b.info }

func (b *box) Execute(_ context.Context, r contract.Request) (contract.Result, error) {
	b.asked = append(b.asked, r)
	return b.answer(r)
}

func newBox(answer func(contract.Request) (contract.Result, error)) *box {
	return &box{info: contract.Info{Name: "b", Image: "i:1", User: "pn", TempDir: "/tmp/"}, answer: answer}
}

// says answers every request alike.
func says(status int, records ...string) func(contract.Request) (contract.Result, error) {
	return func(contract.Request) (contract.Result, error) {
		return contract.Result{ExitCode: status, Output: []byte(strings.Join(records, "\x00"))}, nil
	}
}

// aReport is what a script prints of a living screen.
var aReport = []string{
	"profile=default", "socket=/tmp/hermes-bot-desktop/default/rfb.sock", "since=1796040000", "env=DISPLAY=:20", "env=XAUTHORITY=/a=b",
	"env=LD_PRELOAD=/evil.so", "size=1440, 900", "",
}

func TestStatus(t *testing.T) {
	windows := []string{
		`window="xfce4-terminal", "Xfce4-terminal"` + "\t" + `"a \"b\" \\ ` + "\x1b[31mred" + `"`, "window=\tnot found", `window="only"` + "\t",
	}
	st, err := Look(t.Context(), newBox(says(0, append(windows, aReport...)...)))
	want := Status{
		Running: true, Profile: "default", Account: "pn", Display: ":20", Size: image.Pt(1440, 900), Since: time.Unix(1796040000, 0),
		Socket: "/tmp/hermes-bot-desktop/default/rfb.sock", Env: map[string]string{"DISPLAY": ":20", "XAUTHORITY": "/a=b"},
		Windows: []Window{{"Xfce4-terminal", `a "b" \ [31mred`}, {"", ""}, {"only", ""}},
	}
	if diff := cmp.Diff(want, st); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if st, err := Look(t.Context(), newBox(says(0))); err != nil || st.Running || st.Display != "" {
		t.Fatalf("no screen: %+v, %v", st, err)
	}
}

// A sandbox that says odd things must not send a program to another screen or another file.
func TestStatusOfABentSandbox(t *testing.T) {
	for name, change := range map[string][2]string{
		"another socket":  {"socket=/tmp/hermes-bot-desktop/default/rfb.sock", "socket=/run/docker.sock"},
		"another profile": {"profile=default", "profile=../.."},
		"another machine": {"env=DISPLAY=:20", "env=DISPLAY=evil.example:0"},
		"no display":      {"env=DISPLAY=:20", "env=X=1"},
	} {
		t.Run(name, func(t *testing.T) {
			all := strings.Replace(strings.Join(aReport, "\x00"), change[0], change[1], 1)
			_, err := Look(t.Context(), newBox(says(0, all)))
			var b *contract.BackendError
			if !errors.As(err, &b) || !strings.Contains(b.Reason, "makes no sense") {
				t.Fatalf("%v", err)
			}
		})
	}
	many := strings.Repeat("window=\"a\"\t\""+strings.Repeat("x", 1000)+"\"\x00", 1000)
	st, err := Look(t.Context(), newBox(says(0, many+strings.Join(aReport, "\x00"))))
	if err != nil || len(st.Windows) != maxWindows || len(st.Windows[0].Title) > maxTitle+3 {
		t.Fatalf("%d windows, %v", len(st.Windows), err)
	}
}

func TestWhoseScreen(t *testing.T) {
	for name, tc := range map[string]struct {
		user   string
		hasPN  bool
		want   string
		probes int
	}{
		"pn is the default":     {"pn", true, "pn", 0},
		"the image has pn":      {"root", true, "pn", 1},
		"the image has no pn":   {"dev", false, "dev", 1},
		"a number with a group": {"1000:1000", true, "pn", 1},
	} {
		t.Run(name, func(t *testing.T) {
			probes := 0
			b := newBox(func(r contract.Request) (contract.Result, error) {
				if cmp.Equal(r.Argv, []string{"id", "-u", "pn"}) {
					probes++
					if tc.hasPN {
						return contract.Result{}, nil
					}
					return contract.Result{ExitCode: 1}, nil
				}
				return says(0, aReport...)(r)
			})
			b.info.User = tc.user
			st, err := Start(t.Context(), b, Options{})
			if last := b.asked[len(b.asked)-1]; err != nil || st.Account != tc.want || last.User != tc.want || probes != tc.probes {
				t.Fatalf("account %q, run as %q after %d probes, %v", st.Account, last.User, probes, err)
			}
		})
	}
}

func TestStartHandsOverItsOptions(t *testing.T) {
	b := newBox(says(0, aReport...))
	if _, err := Start(t.Context(), b, Options{Profile: "work", Geometry: "800x600"}); err != nil {
		t.Fatal(err)
	}
	r := b.asked[0]
	if diff := cmp.Diff([]string{"/tmp/hermes-bot-desktop", "work", "800x600"}, r.Argv[4:]); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	input, err := io.ReadAll(r.Stdin)
	if err != nil || string(input) != launcherScript || !strings.HasPrefix(launcherScript, "#!/bin/bash\n") {
		t.Errorf("%v, %d bytes of a launcher", err, len(input))
	}
	if strings.Contains(r.Argv[2], "\n. ") || !strings.Contains(r.Argv[2], "take_lock()") {
		t.Error("the script still sources another")
	}
	// A longer one would not be taken as a single argument.
	if len(r.Argv[2]) >= 128<<10 {
		t.Errorf("the script has %d bytes", len(r.Argv[2]))
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Options
		want string
	}{
		"a path":          {Options{Profile: "../x"}, "not the name of a Hermes profile"},
		"a hidden one":    {Options{Profile: ".x"}, "not the name of a Hermes profile"},
		"a long one":      {Options{Profile: strings.Repeat("x", 65)}, "not the name of a Hermes profile"},
		"a shell command": {Options{Geometry: "1x1; reboot"}, "not the size of a screen"},
		"words":           {Options{Geometry: "big"}, "not the size of a screen"},
		"too small":       {Options{Geometry: "199x400"}, "cannot be had"},
		"too large":       {Options{Geometry: "16385x400"}, "cannot be had"},
		"too many":        {Options{Geometry: "16000x16000"}, "cannot be had"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(says(0, aReport...))
			_, err := Start(t.Context(), b, tc.o)
			var fault *contract.BackendError
			if !errors.As(err, &fault) || !strings.Contains(fault.Reason, tc.want) || fault.Hint == "" || len(b.asked) > 0 {
				t.Fatalf("%v after %d requests", err, len(b.asked))
			}
		})
	}
}

func TestStartFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		status       int
		said, log    string
		reason, hint string
	}{
		"an image without a screen": {
			exitLacking, "fault=Xvnc xfwm4\x00", "",
			"image i:1 has no screen to offer: it lacks Xvnc, xfwm4", "dockerbox image verify i:1 lists all that is missing; dockerbox/desktop:latest has it",
		},
		"a launcher that failed": {
			exitFailed, "fault=Xvnc ended with status 1\x00", "one\n\ttwo\n\nthree \x1b[0m\n",
			`the screen of sandbox "b" did not start: Xvnc ended with status 1; its last words: one | two | three [0m`,
			"all it said is in /tmp/hermes-bot-desktop/default/launcher.log inside the sandbox",
		},
		"another's display": {
			exitTaken, "fault=display :20 is served by Xvfb (process 7), which no launcher of this account started\x00", "",
			`sandbox "b": display :20 is served by Xvfb (process 7), which no launcher of this account started`,
			"end that one first: a sandbox has one screen, and it is display :20",
		},
		"no bash": {
			127, "dockerbox: cannot run \"bash\": no such program\n", "",
			`the screen of sandbox "b" could not be started: dockerbox: cannot run "bash": no such program`,
			"the image must have bash, and the files of the screen must be of account pn",
		},
		"silence": {
			1, "", "", `the screen of sandbox "b" could not be started: a script ended with status 1`,
			"the image must have bash, and the files of the screen must be of account pn",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(func(r contract.Request) (contract.Result, error) {
				if r.Argv[0] == "tail" {
					return contract.Result{Output: []byte(tc.log)}, nil
				}
				return contract.Result{ExitCode: tc.status, Output: []byte(tc.said)}, nil
			})
			_, err := Start(t.Context(), b, Options{})
			var fault *contract.BackendError
			if !errors.As(err, &fault) || fault.Reason != tc.reason || fault.Hint != tc.hint {
				t.Fatalf("%+v", fault)
			}
		})
	}
}

// What another account's dead server left, root removes; then the start is tried once more, and only once.
func TestStartSweepsAsRootOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		helps bool
		want  int
	}{"it helps": {true, 3}, "it does not": {false, 3}} {
		t.Run(name, func(t *testing.T) {
			swept := false
			b := newBox(func(r contract.Request) (contract.Result, error) {
				switch {
				case r.User == "0":
					swept = true
					return contract.Result{}, nil
				case swept && tc.helps:
					return says(0, aReport...)(r)
				default:
					return says(exitStale, "fault=/tmp/.X20-lock is left", "")(r)
				}
			})
			_, err := Start(t.Context(), b, Options{})
			if (err == nil) != tc.helps || len(b.asked) != tc.want {
				t.Fatalf("%v after %d requests", err, len(b.asked))
			}
		})
	}
	b := newBox(func(r contract.Request) (contract.Result, error) {
		if r.User == "0" {
			return contract.Result{ExitCode: 1, Output: []byte("remove /tmp/.X20-lock: read-only file system\n")}, nil
		}
		return says(exitStale, "fault=x", "")(r)
	})
	if _, err := Start(t.Context(), b, Options{}); err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Fatal(err)
	}
}

func TestStop(t *testing.T) {
	for said, want := range map[string]bool{"stopped=default\x00": true, "": false} {
		if got, err := Stop(t.Context(), newBox(says(0, said))); err != nil || got != want {
			t.Errorf("%q: %v, %v", said, got, err)
		}
	}
	if _, err := Stop(t.Context(), newBox(says(exitFailed, "fault=/tmp/x cannot be removed", ""))); err == nil || !strings.Contains(err.Error(), "/tmp/x cannot be removed") {
		t.Error(err)
	}
}

func TestScreenshotNeedsAScreen(t *testing.T) {
	_, err := Screenshot(t.Context(), newBox(says(0)))
	var fault *contract.BackendError
	if !errors.As(err, &fault) || fault.Reason != `sandbox "b" has no screen at the moment` || fault.Hint != "dockerbox desktop start b" {
		t.Fatalf("%v", err)
	}
}

// The road's own fault says more than what the protocol noticed of it.
func TestScreenshotSaysWhyTheStreamEnded(t *testing.T) {
	answer := func(r contract.Request) (contract.Result, error) {
		if r.Argv[1] != "dial" {
			return says(0, aReport...)(r)
		}
		_, err := io.WriteString(r.Stderr, "dockerbox-agent: unix /s: connection refused\n"+strings.Repeat("x", 9999))
		return contract.Result{ExitCode: 1}, err
	}
	_, err := Screenshot(t.Context(), newBox(answer))
	if err == nil || !strings.HasPrefix(err.Error(), `the screen of sandbox "b" cannot be reached: dockerbox-agent: unix /s: connection refused x`) || len(err.Error()) > 500 {
		t.Fatal(err)
	}
	_, err = Screenshot(t.Context(), newBox(func(r contract.Request) (contract.Result, error) {
		if r.Argv[1] != "dial" {
			return says(0, aReport...)(r)
		}
		_, err := io.WriteString(r.Stdout, "SSH-2.0-Open")
		return contract.Result{}, err
	}))
	if err == nil || !strings.Contains(err.Error(), `cannot be read: rfb handshake: the server begins with "SSH-2.0-Open"`) {
		t.Fatal(err)
	}
}

func TestPanelsPlaceIsChecked(t *testing.T) {
	for text, want := range map[string]image.Rectangle{
		"0 0 1440 34": image.Rect(0, 0, 1440, 34), "-3 866 20 34": image.Rect(-3, 866, 17, 900), "": {}, "1 2 3": {}, "1 2 3 4 5": {}, "0 0 0 34": {}, "0 0 99999999999 1": {}, "0 0 70000 1": {}, "a b c d": {},
	} {
		if got, ok := parseRect(text); ok == want.Empty() || ok && got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

func TestPlain(t *testing.T) {
	p := image.NewRGBA(image.Rect(5, 5, 8, 8))
	if !plain(p) || !plain(image.NewRGBA(image.Rectangle{})) {
		t.Error("a picture of one colour has several")
	}
	p.Pix[len(p.Pix)-2]++
	if plain(p) {
		t.Error("a picture with another colour at its end has one")
	}
}

// A new screen is not handed over before its panel is drawn.
func TestStartWaitsUntilThePanelIsDrawn(t *testing.T) {
	hello := "RFB 003.008\n\x01\x01\x00\x00\x00\x00" + "\x00\x02\x00\x01" + strings.Repeat("\x00", 16) + "\x00\x00\x00\x00"
	update := func(second string) string {
		return "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x02\x00\x01\x00\x00\x00\x00" + "\x00\x00\x00\x00" + second
	}
	const black, white = "\x00\x00\x00\x00", "\xff\xff\xff\x00"
	// The server ends when it has been told so many bytes, or when the stream is closed.
	answer := func(server string, told int64) func(contract.Request) (contract.Result, error) {
		return func(r contract.Request) (contract.Result, error) {
			if r.Argv[1] != "dial" {
				return says(0, append([]string{"panel=0 0 2 1"}, aReport...)...)(r)
			}
			wrote := make(chan error, 1)
			go func() { _, err := io.WriteString(r.Stdout, server); wrote <- err }()
			if _, err := io.CopyN(io.Discard, r.Stdin, told); err != nil && !errors.Is(err, io.EOF) {
				return contract.Result{}, err
			}
			return contract.Result{}, <-wrote
		}
	}
	const handshake, request = 12 + 1 + 1 + 20 + 16, 10
	b := newBox(answer(hello+update(black)+update(white)+update(white), 1000))
	if st, err := Start(t.Context(), b, Options{}); err != nil || !st.Running || len(b.asked) != 2 {
		t.Errorf("%+v, %v after %d requests", st, err, len(b.asked))
	}
	b = newBox(answer(hello+update(black), handshake+2*request))
	if _, err := Start(t.Context(), b, Options{}); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("a screen that went away: %v", err)
	}
}
