//go:build linux

package agent

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

func TestState(t *testing.T) {
	if len(stateCases) < 66 {
		t.Fatalf("only %d cases", len(stateCases))
	}
	for _, tc := range stateCases {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tmp := w.path("tmp")
			must(t, os.Mkdir(tmp, 0o777))
			must(t, os.Chmod(tmp, 0o777))
			place := strings.NewReplacer("{tmp}", tmp, "{home}", w.home)
			c := w.connect(t)
			var last *answer
			for _, command := range tc.commands {
				last = c.sh(place.Replace(command))
			}
			got := last.output()
			switch {
			case tc.has != "" && !strings.Contains(got, tc.has):
				t.Errorf("output %.500q has no %q", got, tc.has)
			case tc.hasNot != "" && strings.Contains(got, tc.hasNot):
				t.Errorf("output %.500q has %q", got, tc.hasNot)
			case tc.has == "" && tc.hasNot == "" && got != place.Replace(tc.output):
				t.Errorf("output %.500q, want %.500q", got, place.Replace(tc.output))
			}
			if last.code() != tc.code && !tc.anyCode || tc.anyCode && last.code() == 0 || last.exit.Reason != "" {
				t.Errorf("exit %+v, want %d", last.exit, tc.code)
			}
		})
	}
}

func TestConcurrentExportsAllLast(t *testing.T) {
	w := newWorld(t)
	c, d := w.connect(t), w.connect(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			on := []*client{c, d}[i%2]
			on.sh(fmt.Sprintf("export V%d=%d; f%d() { echo f%d; }; alias a%d='echo a%d'; sleep 0.05", i, i, i, i, i, i)).want("", 0)
		})
	}
	wg.Wait()
	c.sh("echo $V0$V1$V2$V3$V4$V5$V6$V7; f0; f7\na0; a7").want("01234567\nf0\nf7\na0\na7\n", 0)
}

// What a host marks as transient is for one command, even when the command itself exports it; other names are not touched.
func TestTransientVariablesNeverLast(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	c.run(wire.Run{
		Shell: []byte("export SESSION_ID=mine SESSION=2 WHO=3 WHOLE=4; echo $SESSION_ID$GIVEN"), Env: map[string][]byte{"GIVEN": []byte("x")},
		Transient: []string{"SESSION_*", "WHO"},
	}).want("minex\n", 0)
	c.sh("echo \"[${SESSION_ID-}${SESSION-}${WHO-}${WHOLE-}${GIVEN-}]\"").want("[24]\n", 0)
}

// A command that did not change directory must not undo what another did meanwhile.
func TestConcurrentCdIsNotUndone(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	slow := c.start(wire.Run{Shell: []byte("echo up; read -r _"), Stdin: true})
	slow.until("up")
	c.sh("cd /usr").want("", 0)
	slow.send(wire.TypeInput, []byte("\n"))
	slow.wait()
	c.sh("pwd").want("/usr\n", 0)
}

func TestDirectories(t *testing.T) {
	w := newWorld(t)
	must(t, os.MkdirAll(w.path("closed/inner"), 0o755))
	must(t, os.WriteFile(w.path("file"), nil, 0o644))
	must(t, os.Mkdir(w.home+"/sub", 0o777))
	c := w.connect(t)
	in := func(dir, fallback, text string) *answer {
		return c.run(wire.Run{Shell: []byte(text), Dir: []byte(dir), Fallback: []byte(fallback)})
	}
	in("~", "", "pwd").want(w.home+"\n", 0)
	in("~/sub", "", "pwd").want(w.home+"/sub\n", 0)
	in("/usr/../etc//", "", "pwd").want("/etc\n", 0)
	c.sh("pwd").want(w.home+"\n", 0) // a directory for one command is not a cd
	in("/usr", "", "cd lib").want("", 0)
	c.sh("pwd").want("/usr/lib\n", 0)

	for dir, why := range map[string]string{"/no/such": "no such directory", w.path("file"): "not a directory", "relative": "not an absolute path", "~nobody": "not an absolute path"} {
		a := in(dir, "", "echo must not run")
		if a.exit.Reason != wire.ReasonDirectory || !strings.Contains(a.exit.Text, dir) || !strings.Contains(a.exit.Text, why) || a.output() != "" {
			t.Errorf("%s: %+v, output %q", dir, a.exit, a.output())
		}
	}
	in("/no/such", "/etc", "pwd").want("/etc\n", 0)
	in("/no/such", "~", "pwd").want(w.home+"\n", 0)
	if a := in("/no/such", "/nor/this", "pwd"); a.exit.Reason != wire.ReasonDirectory || !strings.Contains(a.exit.Text, "/no/such") {
		t.Errorf("both missing: %+v", a.exit)
	}
	if os.Geteuid() == 0 { // for root itself nothing is closed
		must(t, os.Chmod(w.path("closed"), 0o700))
		if a := in(w.path("closed/inner"), "", "pwd"); a.exit.Reason != wire.ReasonDirectory {
			t.Errorf("closed: %+v", a.exit)
		}
		must(t, os.Chmod(w.path("closed"), 0o755))
	}

	// One that this agent has named and that is gone is no mistake of the host's.
	gone := w.path("gone/deep")
	in("/", "", "cd "+w.dir+"; mkdir -m 777 gone gone/deep 2>/dev/null; cd "+gone).want("", 0)
	must(t, os.RemoveAll(w.path("gone")))
	note := "dockerbox: " + gone + " no longer exists, running in " + w.dir + "\n"
	in(gone, "", "pwd").want(note+w.dir+"\n", 0)
	in(gone, "", "pwd").want(w.dir+"\n", 0)
	in(gone, "/etc", "pwd").want("/etc\n", 0)
	split := c.run(wire.Run{Shell: []byte("pwd"), Dir: []byte(w.home + "/sub")})
	split.want(w.home+"/sub\n", 0)
	must(t, os.Remove(w.home+"/sub"))
	a := c.run(wire.Run{Shell: []byte("pwd"), Dir: []byte(w.home + "/sub"), Split: true})
	if a.out.String() != w.home+"\n" || a.err.String() != "dockerbox: "+w.home+"/sub no longer exists, running in "+w.home+"\n" {
		t.Errorf("split: %q, %q", a.out.String(), a.err.String())
	}
}

func TestCwdIsReported(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	for text, want := range map[string]string{
		"cd /usr": "/usr", "cd /usr; exit 3": "/usr", "cd /usr; exec true": "", "cd " + w.dir + "; mkdir $'x\\n '; cd x*": w.path("x\n "),
	} {
		if got := string(c.sh(text).exit.Cwd); got != want {
			t.Errorf("%q: cwd %q, want %q", text, got, want)
		}
	}
	if a := c.argv("true"); a.exit.Cwd != nil {
		t.Errorf("words reported %q", a.exit.Cwd)
	}
}

// A variable of one command is in its environment and never in lasting state, whatever the command does with it.
func TestCommandVariables(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	with := func(env map[string][]byte, text string) *answer {
		return c.run(wire.Run{Shell: []byte(text), Env: env})
	}
	secret := map[string][]byte{"S": []byte("it's\n\xff \"$x\"")}
	with(secret, `printf %s "$S"; bash -c 'printf %s "$S"'`).want("it's\n\xff \"$x\"it's\n\xff \"$x\"", 0)
	c.sh(`echo "[${S-none}]"`).want("[none]\n", 0)
	with(secret, `export S="$S"; export T=lasts`).want("", 0)
	c.sh(`echo "[${S-none}$T]"`).want("[nonelasts]\n", 0)
	with(secret, "export S=changed").want("", 0)
	c.sh(`echo "[${S-none}]"`).want("[none]\n", 0)
	c.sh("export S=mine").want("", 0)
	with(secret, "unset S").want("", 0)
	with(secret, "exit 3").want("", 3)
	c.sh(`echo "[$S]"`).want("[mine]\n", 0)
	// It stands in no command line, and in no file that is still open.
	with(map[string][]byte{"S": []byte("needle1234")}, `grep -l needle1234 /proc/[0-9]*/cmdline 2>/dev/null; ls -l /proc/$$/fd | grep memfd; true`).want("", 0)

	for name, env := range map[string]map[string][]byte{"NUL": {"S": []byte("a\x00b")}, "name": {"S=1;x": nil}, "empty name": {"": nil}} {
		if a := with(env, "echo must not run"); a.exit.Reason != wire.ReasonInternal || a.output() != "" {
			t.Errorf("%s: %+v", name, a.exit)
		}
	}
	if a := c.sh("echo a\x00b"); a.exit.Reason != wire.ReasonInternal || !strings.Contains(a.exit.Text, "NUL") {
		t.Errorf("NUL in text: %+v", a.exit)
	}
}

func TestStateIsPerAccountAndOutlivesConnections(t *testing.T) {
	w := newWorld(t)
	c := w.connect(t)
	c.sh("cd /usr; export K=kept").want("", 0)
	c.close()
	d := w.connect(t)
	d.sh("echo $K $PWD").want("kept /usr\n", 0)
	if d.hello.Boot != c.hello.Boot || d.hello.Boot == "" {
		t.Errorf("boot ids %q and %q", c.hello.Boot, d.hello.Boot)
	}
	if os.Geteuid() == 0 {
		d.run(wire.Run{Shell: []byte(`echo "$(id -u) ${K-none}"`), User: "0", Dir: []byte("/")}).want("0 none\n", 0)
	}
}
