//go:build integration

package integration

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
)

// starterScript reads Debian's settings as its launcher does and prints what the browser would be started with, one word a line.
const starterScript = `starter() { dash -c 'CHROMIUM_FLAGS=; . /etc/chromium.d/dockerbox; printf "%s\n" $CHROMIUM_FLAGS "$@"' chromium "$@"; }; `

// words are the lines of starter's answer that are not always there.
func words(answer string) []string {
	var all []string
	for line := range strings.Lines(answer) {
		switch word := strings.TrimSuffix(line, "\n"); word {
		case "--force-renderer-accessibility", "--no-first-run", "--no-default-browser-check", "--disable-gpu", "--enable-unsafe-swiftshader", "--hide-crash-restore-bubble":
		default:
			all = append(all, word)
		}
	}
	return all
}

// Hermes and agent-browser pass --no-sandbox because they see a container.
func TestChromiumKeepsItsSandbox(t *testing.T) {
	env := desktopSandbox(t, nil)
	for given, want := range map[string][]string{
		"--no-sandbox --disable-dev-shm-usage http://x/": {"http://x/"},
		"--no-zygote --no-sandbox '--a b' c":             {"--a b", "c"},
		"--user-data-dir=/tmp/d '' 'é \"$HOME\"'":        {"--user-data-dir=/tmp/d", "", `é "$HOME"`},
		"--disable-namespace-sandbox --headless=new":     {"--headless=new"},
	} {
		if diff := cmp.Diff(want, words(sh(t, env, starterScript+"starter "+given))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", given, diff)
		}
	}
	if got := sh(t, env, starterScript+`export NO_AT_BRIDGE=1 GTK_A11Y=none; dash -c 'CHROMIUM_FLAGS=; . /etc/chromium.d/dockerbox; echo "${NO_AT_BRIDGE-no} ${GTK_A11Y-no} $CHROMIUM_FLAGS"'`); !strings.HasPrefix(got, "no no ") || !strings.Contains(got, "--force-renderer-accessibility") {
		t.Errorf("without an accessibility tree: %q", got)
	}
	// root has no use for it: Chromium refuses to start.
	if got := words(sh(t, env, starterScript+`sudo -n dash -c 'CHROMIUM_FLAGS=; . /etc/chromium.d/dockerbox; printf "%s\n" $CHROMIUM_FLAGS "$@"' chromium x`)); !cmp.Equal(got, []string{"--no-sandbox", "x"}) {
		t.Errorf("as root: %q", got)
	}
}

// Where user namespaces are forbidden, as by Docker's own profile, a browser without its sandbox is better than none; and where /dev/shm has
// Docker's 64 MB, shared memory belongs on the disk.
func TestChromiumStartsUnderDockersOwnSettings(t *testing.T) {
	name := freshName("plain")
	docker(t, "run", "-d", "--rm", "--name", name, "--init", "--network", "none", image.DefaultTag)
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "rm", "-f", name).CombinedOutput(); err != nil {
			t.Errorf("remove %s: %v: %s", name, err, out)
		}
	})
	got := words(docker(t, "exec", name, "bash", "-c", starterScript+"starter --no-sandbox x") + "\n")
	if diff := cmp.Diff([]string{"--no-sandbox", "--disable-dev-shm-usage", "--no-sandbox", "x"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	page := docker(t, "exec", name, "bash", "-c", "chromium --headless=new --dump-dom 'data:text/html,<h1>here</h1>' 2>/dev/null")
	if !strings.Contains(page, "<h1>here</h1>") {
		t.Errorf("the page is %q", page)
	}
}

// Row 51: an account that cannot write its home has a browser all the same.
func TestChromiumStartsWithoutAHome(t *testing.T) {
	env := desktopSandbox(t, nil)
	for _, home := range []string{"/nonexistent", "/proc", "/root"} {
		for _, flags := range []string{"", "--user-data-dir=/tmp/profile"} {
			r := run(t, env, contract.Request{Command: "HOME=" + home + " XDG_CONFIG_HOME= chromium --headless=new " + flags + " --dump-dom 'data:text/html,<h1>here</h1>' 2>/tmp/log; tail -n 3 /tmp/log >&2"})
			if !strings.Contains(string(r.Output), "<h1>here</h1>") {
				t.Errorf("HOME=%s %s: %s", home, flags, r.Output)
			}
		}
	}
	if got := words(sh(t, env, "export HOME=/nonexistent; "+starterScript+"starter; starter; stat -c '%U %a' /tmp/chromium-1000")); !cmp.Equal(got, []string{"--user-data-dir=/tmp/chromium-1000", "--user-data-dir=/tmp/chromium-1000", "pn 700"}) {
		t.Errorf("%q", got)
	}
	// Somebody else's directory of that name is not used.
	if got := words(sh(t, env, "sudo -n chown root /tmp/chromium-1000; export HOME=/nonexistent; "+starterScript+"starter")); len(got) != 1 || !strings.HasPrefix(got[0], "--user-data-dir=/tmp/tmp.") {
		t.Errorf("%q", got)
	}
}

// The lock of a profile names a host and a process. It may outlive both, and then keeps every later browser from the profile.
func TestChromiumsLockIsClearedWhenItsOwnerIsGone(t *testing.T) {
	env := desktopSandbox(t, nil)
	const profile = "/home/pn/.config/chromium"
	locked := func(owner, socket string) string {
		return fmt.Sprintf("mkdir -p %[1]s && cd %[1]s && rm -f Singleton* && ln -s %[2]s SingletonLock && ln -s %[3]s SingletonSocket && ln -s 1 SingletonCookie; cd; ", profile, owner, socket)
	}
	const cleared, kept = "", "SingletonCookie\nSingletonLock\nSingletonSocket\n"
	starter := starterScript + "starter >/dev/null; ls -A " + profile + " | grep Singleton || :"
	// A chromium of another profile, whose pid a lock may name by accident, and a socket of the kind a browser holds.
	sh(t, env, `cp /usr/bin/python3 /tmp/python; cat >/tmp/hold.py <<'END'
import os, socket, time
os.makedirs("/tmp/.org.chromium.X", exist_ok=True)
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/.org.chromium.X/SingletonSocket"); s.listen()
open("/tmp/ready", "w").close()
time.sleep(600)
END
nohup python3 /tmp/hold.py >/dev/null 2>&1 & echo $! >/tmp/holder; until [ -e /tmp/ready ]; do read -rt 0.05 <> <(:) || :; done`)
	sh(t, env, `nohup chromium --headless=new --user-data-dir=/tmp/other about:blank >/dev/null 2>&1 & until [ -L /tmp/other/SingletonSocket ]; do read -rt 0.05 <> <(:) || :; done`)
	for _, test := range []struct{ name, owner, socket, more, want string }{
		{"another host", "elsewhere-1", "/tmp/none", "", cleared},
		{"a dead process", "$(uname -n)-4190000", "/tmp/none", "", cleared},
		{"a process that is no browser", "$(uname -n)-$(cat /tmp/holder)", "/tmp/none", "", cleared},
		{"another browser's pid, long ago", "$(uname -n)-$(pgrep -o -f other)", "/tmp/none", "touch -h -d '5 minutes ago' " + profile + "/SingletonLock; ", cleared},
		{"a browser that is just starting", "$(uname -n)-$(pgrep -o -f other)", "/tmp/none", "", kept},
		{"a browser at work", "$(uname -n)-4190000", "/tmp/.org.chromium.X/SingletonSocket", "", kept},
		{"a browser at work, the host renamed", "elsewhere-1", "/tmp/.org.chromium.X/SingletonSocket", "", kept},
		{"a socket nobody holds", "elsewhere-1", "/tmp/.org.chromium.Y/SingletonSocket", "", cleared},
	} {
		if got := sh(t, env, locked(test.owner, test.socket)+test.more+starter); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	// The real thing: the browser above is at work on its profile, and a second start does not take it over.
	if got := sh(t, env, `a=$(readlink /tmp/other/SingletonLock); `+starterScript+`starter --user-data-dir=/tmp/other >/dev/null; [ "$a" = "$(readlink /tmp/other/SingletonLock)" ] && echo same`); got != "same\n" {
		t.Errorf("the lock of a living browser: %q", got)
	}
	// And a lock from another host does not keep a browser from starting.
	if got := sh(t, env, locked("elsewhere-77", "/tmp/none")+`chromium --headless=new --dump-dom 'data:text/html,<h1>here</h1>' 2>&1`); !strings.Contains(got, "<h1>here</h1>") {
		t.Errorf("behind a foreign lock: %q", got)
	}
}
