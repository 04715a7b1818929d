package contract

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestStartDirectory(t *testing.T) {
	for requested, want := range map[string]string{
		"": "/home/pn", "~": "/home/pn", "~/acme/project": "/home/pn/acme/project", "~/..": "/home",
		"/srv": "/srv", "/home/pn/acme": "/home/pn/acme", "/root": "/root",
		"work": "/home/pn", "./x": "/home/pn", "~other": "/home/pn",
		"/Users/me/x": "/home/pn", `D:\.hermes`: "/home/pn", "e:/x": "/home/pn", `\\server\share`: "/home/pn",
	} {
		if got := StartDirectory(requested, "/home/pn"); got != want {
			t.Errorf("%q: %q, want %q", requested, got, want)
		}
	}
}

func TestCommandDirectory(t *testing.T) {
	for _, tc := range []struct{ dir, home, wantDir, wantFallback string }{
		{"/root", "/home/pn", "/root", "/home/pn"},
		{"/root", "/root", "/root", ""},
		{"/root/x", "/home/pn", "/root/x", ""},
		{"/srv", "/home/pn", "/srv", ""},
		{"", "/home/pn", "", ""},
		{"~", "/home/pn", "~", ""},
	} {
		if dir, fallback := CommandDirectory(tc.dir, tc.home); dir != tc.wantDir || fallback != tc.wantFallback {
			t.Errorf("%q in %q: %q, %q", tc.dir, tc.home, dir, fallback)
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	if f := Defaults().Validate(); f != nil {
		t.Fatal(f)
	}
}

// Each field is judged, and all faults come at once.
func TestValidateListsEveryFault(t *testing.T) {
	bad := Config{
		Name: "a/b", Profile: "x/y", User: "two words", CPUs: math.NaN(), MemoryMB: 1, PIDs: -1, ShmBytes: -1, Network: "host",
		Env: map[string]string{"A=B": "", "9": "", "OK": ""},
	}
	var keys []string
	for _, f := range bad.Validate() {
		keys = append(keys, f.Key)
		if f.Problem == "" || strings.HasSuffix(f.Problem, ".") {
			t.Errorf("%s: %q", f.Key, f.Problem)
		}
	}
	if got, want := strings.Join(keys, " "), "name profile user cpus memory pids shm-size network env env"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	for what, change := range map[string]func(*Config){
		"empty name":      func(c *Config) { c.Name = "" },
		"name of 300":     func(c *Config) { c.Name = strings.Repeat("a", 300) },
		"dash in front":   func(c *Config) { c.Name = "-x" },
		"newline":         func(c *Config) { c.Name = "a\nb" },
		"user with colon": func(c *Config) { c.User = "pn:" },
		"user like flag":  func(c *Config) { c.User = "-u" },
		"endless cpus":    func(c *Config) { c.CPUs = math.Inf(1) },
		"negative cpus":   func(c *Config) { c.CPUs = -0.5 },
		"hardly any cpu":  func(c *Config) { c.CPUs = 0.001 },
		"negative memory": func(c *Config) { c.MemoryMB = -1 },
		"memory overflow": func(c *Config) { c.MemoryMB = math.MaxInt64 },
		"too few pids":    func(c *Config) { c.PIDs = 63 },
		"too many pids":   func(c *Config) { c.PIDs = 4194305 },
		"no network name": func(c *Config) { c.Network = "" },
	} {
		c := Defaults()
		change(&c)
		if f := c.Validate(); len(f) != 1 || len(f.Error()) > 300 {
			t.Errorf("%s: %v", what, f)
		}
	}
	for what, change := range map[string]func(*Config){
		"no limits":       func(c *Config) { c.CPUs, c.MemoryMB, c.PIDs, c.ShmBytes = 0, 0, 0, 0 },
		"longest name":    func(c *Config) { c.Name = strings.Repeat("a", 128) },
		"colon":           func(c *Config) { c.Name = "p:x" },
		"numeric user":    func(c *Config) { c.User = "4242:100" },
		"smallest memory": func(c *Config) { c.MemoryMB = 6 },
		"fewest pids":     func(c *Config) { c.PIDs = 64 },
		"most pids":       func(c *Config) { c.PIDs = 4194304 },
		"smallest cpu":    func(c *Config) { c.CPUs = 0.01 },
	} {
		c := Defaults()
		change(&c)
		if f := c.Validate(); f != nil {
			t.Errorf("%s: %v", what, f)
		}
	}
}

func TestKilled(t *testing.T) {
	for name, tc := range map[string]struct {
		output string
		cause  error
		code   int
		want   string
	}{
		"time-out":      {"a\n", ErrTimedOut, 124, "a\n[Command timed out after 2s]"},
		"open line":     {"a", ErrTimedOut, 124, "a\n[Command timed out after 2s]"},
		"nothing":       {"", ErrInterrupted, 130, "[Command interrupted]"},
		"any cause":     {"", errors.New("shutdown"), 130, "[Command interrupted]"},
		"wrapped cause": {"", &BackendError{Err: ErrTimedOut}, 124, "[Command timed out after 2s]"},
	} {
		r := Killed(Result{ExitCode: 143, Output: []byte(tc.output)}, tc.cause, 2*time.Second)
		if r.ExitCode != tc.code || string(r.Output) != tc.want || r.TimedOut != (tc.code == 124) || r.Interrupted != (tc.code == 130) {
			t.Errorf("%s: %+v %q", name, r, r.Output)
		}
	}
}

func TestKilledNamesNoLimitItDoesNotKnow(t *testing.T) {
	if r := Killed(Result{}, ErrTimedOut, 0); string(r.Output) != "[Command timed out]" {
		t.Errorf("%q", r.Output)
	}
}

func TestStatuses(t *testing.T) {
	for f, want := range map[StartFailure]int{Started: 0, BadDirectory: 126, NotExecutable: 126, NotFound: 127} {
		if f.Status() != want {
			t.Errorf("%d: %d", f, f.Status())
		}
	}
	if Signalled(9) != 137 {
		t.Error(Signalled(9))
	}
}

func TestErrorsKeepTheirCause(t *testing.T) {
	cause := errors.New("cause")
	err := error(&BackendError{Reason: "it failed", Hint: "mend it", Err: cause})
	if !errors.Is(err, cause) || err.Error() != "it failed" {
		t.Error(err)
	}
	if got := (Faults{{"a", "is bad"}, {"b", "too"}}).Error(); got != "a: is bad; b: too" {
		t.Error(got)
	}
	if got := (&FileError{"/x", "missing"}).Error(); got != "/x: missing" {
		t.Error(got)
	}
}
