//go:build linux

package agent

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

func TestProfileIsTheFirstState(t *testing.T) {
	w := newWorld(t)
	must(t, os.WriteFile(w.path("profile"), []byte("export SYSTEM=1\nPATH=/usr/bin:/bin\nexport PATH\n"), 0o644))
	w.rc(".profile", "_h() { echo helper; }\nw() { _h; }\nalias al='echo alias'\nexport USERP=1\ncd /usr\n")
	w.rc(".bashrc", "rc() { echo rc; }\nexport RC=1\n")
	c := w.connect(t)
	for range 2 {
		c.sh("w; al; rc; echo $SYSTEM$USERP$RC; pwd").want("helper\nalias\nrc\n111\n"+w.home+"\n", 0)
	}
	c.argv("sh", "-c", "echo $SYSTEM$USERP$RC").want("111\n", 0)
}

func TestWhichProfile(t *testing.T) {
	for name, tc := range map[string]struct {
		rc   map[string]string
		want string
	}{
		"bash_profile wins":         {map[string]string{".bash_profile": "export P=b", ".bash_login": "export P=l", ".profile": "export P=p"}, "b"},
		"then bash_login":           {map[string]string{".bash_login": "export P=l", ".profile": "export P=p"}, "l"},
		"then profile":              {map[string]string{".profile": "export P=p"}, "p"},
		"bashrc is not read twice":  {map[string]string{".profile": "[ -f ~/.bashrc ] && . ~/.bashrc", ".bashrc": "export P=x$P"}, "x"},
		"bashrc for the rest of us": {map[string]string{".bashrc": "case $- in *i*) ;; *) export P=early; return;; esac; export P=late"}, "early"},
		"none":                      {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for file, text := range tc.rc {
				w.rc(file, text+"\n")
			}
			w.connect(t).sh("echo $P").want(tc.want+"\n", 0)
		})
	}
}

// A profile that does not behave costs itself and, at most once, its time.
func TestHostileProfile(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want string // of A, set before the trouble, and B, set by .bashrc
	}{
		"reads":               {"export A=1\nread -r x\nread -r y; cat >/dev/null", "1 2"},
		"exits":               {"export A=1\nexit 3", "1 2"},
		"execs":               {"export A=1\nexec true", " 2"},
		"kills itself":        {"export A=1\nkill -9 $$", " 2"},
		"set -eu":             {"export A=1\nset -eu\n: $NOPE", "1 2"},
		"set -e and false":    {"export A=1\nset -e\nfalse", "1 2"},
		"set -e and all well": {"export A=1\nset -eu", "1 2"},
		"return 1":            {"export A=1\nreturn 1", "1 2"},
		"syntax error":        {"export A=1\nif then fi (", "1 2"},
		"writes":              {"export A=1\nyes | head -c 1000000; yes | head -c 1000000 >&2", "1 2"},
		"garbles the report":  {"export A=1\necho x >&247", " 2"},
		"own EXIT trap":       {"export A=1\ntrap 'echo bye' EXIT", "1 2"},
		"DEBUG trap":          {"export A=1\ntrap 'echo D; false' DEBUG ERR", "1 2"},
		"closes everything":   {"export A=1\nexec <&- >&- 2>&-", "1 2"},
		"aliases":             {"export A=1\nalias builtin='echo B' declare=false printf=false", "1 2"},
		"functions":           {"export A=1\ndeclare() { :; }; printf() { :; }; pwd() { exit; }; trap() { :; }; eval() { :; }", "1 2"},
		"background":          {"export A=1\nsleep 86801 &", "1 2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.rc(".profile", tc.text+"\n")
			w.rc(".bashrc", "export B=2\n")
			began := time.Now()
			c := w.connect(t)
			c.sh(`\echo "$A $B"`).want(tc.want+"\n", 0)
			if took := time.Since(began); took > loginLimit {
				t.Errorf("took %s", took)
			}
			c.sh(`\echo "$A $B"`).want(tc.want+"\n", 0)
		})
	}
}

func TestEndlessProfile(t *testing.T) {
	for name, text := range map[string]string{
		"loops": "export A=1\nwhile :; do :; done", "sleeps": "export A=1\nsleep 86811; sleep 86811",
		"deaf": "export A=1\ntrap '' TERM\nwhile :; do sleep 86811; done",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.agent.loginLimit = 300 * time.Millisecond
			must(t, os.WriteFile(w.path("profile"), []byte("export S=1\n"), 0o644))
			w.rc(".profile", text+"\n")
			c := w.connect(t)
			a := c.sh("echo $S")
			a.want("1\n", 0)
			if left := runningWith("86811"); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			began := time.Now()
			c.sh("true").want("", 0)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the second command took %s", took)
			}
		})
	}
}

// A Kill does not wait for the profile.
func TestKillDuringLogin(t *testing.T) {
	w := newWorld(t)
	w.rc(".profile", "sleep 86821\n")
	c := w.connect(t)
	a := c.start(wire.Run{Shell: []byte("echo must not run")})
	began := time.Now()
	a.kill()
	a.wait()
	if took := time.Since(began); !a.exit.Killed || a.output() != "" || took > 2*time.Second {
		t.Errorf("after %s: %+v, %q", took, a.exit, a.output())
	}
}

func TestImagePathSurvivesTheProfile(t *testing.T) {
	w := newWorld(t)
	w.agent.env["PATH"] = "/opt/t/bin:/usr/bin:/opt/t/bin:/opt/u"
	must(t, os.WriteFile(w.path("profile"), []byte("PATH=/usr/local/bin:/usr/bin:/bin\n"), 0o644))
	c := w.connect(t)
	c.sh("echo $PATH").want("/opt/t/bin:/opt/u:/usr/local/bin:/usr/bin:/bin\n", 0)
	c.sh("export PATH=/bin").want("", 0)
	c.sh("echo $PATH").want("/bin\n", 0) // what a command does to it is meant
}

// An empty word in PATH is the current directory, which nobody asked for.
func TestEmptyImagePathAddsNothing(t *testing.T) {
	for _, image := range []string{"", ":/opt/t/bin", "/opt/t/bin:"} {
		w := newWorld(t)
		w.agent.env["PATH"] = image
		must(t, os.WriteFile(w.path("profile"), []byte("PATH=/usr/bin:/bin\n"), 0o644))
		want := "/usr/bin:/bin\n"
		if image != "" {
			want = "/opt/t/bin:" + want
		}
		w.connect(t).sh("echo $PATH").want(want, 0)
	}
}

func TestMissingHome(t *testing.T) {
	w := newWorld(t)
	must(t, os.Remove(w.home))
	c := w.connect(t)
	c.sh("pwd").want("/\n", 0)
	c.argv("pwd").want(w.dir+"\n", 0)
	if a := c.run(wire.Run{Shell: []byte("pwd"), Dir: []byte("~")}); !strings.HasSuffix(a.output(), w.dir+"\n") || a.exit.Code != 0 {
		t.Errorf("%q, %+v", a.output(), a.exit)
	}
}
