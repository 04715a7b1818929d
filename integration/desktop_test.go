//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	stdimage "image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/desktop"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/rfb"
)

// The tests of the screen use one sandbox without a network, each leaving the next one a screen that runs.
func TestDesktop(t *testing.T) {
	env := desktopSandbox(t, func(c *contract.Config) { c.Network = "none" })
	f := screenBox{env: env, name: env.Info().Name}
	for _, one := range []struct {
		name string
		test func(*testing.T, screenBox)
	}{
		{"without a screen", desktopNone},
		{"starts that meet make one screen", desktopOnce},
		{"nothing listens but the socket", desktopSocket},
		{"row 48 nothing blanks it", desktopNeverBlank},
		{"pictures", desktopPictures},
		{"its size can change", desktopResize},
		{"row 50 keys", desktopKeys},
		{"row 47 stale locks", desktopStaleLocks},
		{"row 54 a bus that was killed", desktopStaleBus},
		{"what a launcher that was killed left", desktopOrphans},
		{"stop leaves nothing", desktopStop},
		{"another's display", desktopTaken},
		{"failures say what the log says", desktopBroken},
	} {
		t.Run(one.name, func(t *testing.T) { one.test(t, f) })
	}
}

// screenBox is a sandbox whose screen tests share, and its name for the command line.
type screenBox struct {
	env  contract.Environment
	name string
}

// start starts the screen, or takes the one that runs.
func (f screenBox) start(t *testing.T) desktop.Status {
	t.Helper()
	st, err := desktop.Start(t.Context(), f.env, desktop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// look looks at it.
func (f screenBox) look(t *testing.T) desktop.Status {
	t.Helper()
	st, err := desktop.Look(t.Context(), f.env)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// on runs shell text with the variables of the screen.
func (f screenBox) on(t *testing.T, st desktop.Status, command string) string {
	t.Helper()
	r := run(t, f.env, contract.Request{Command: command, Env: st.Env, Timeout: time.Minute})
	if r.ExitCode != 0 {
		t.Fatalf("%q: status %d, %q", command, r.ExitCode, r.Output)
	}
	return string(r.Output)
}

// background starts a program on the screen.
func (f screenBox) background(t *testing.T, st desktop.Status, command string) {
	t.Helper()
	f.on(t, st, "setsid "+command+" </dev/null >/tmp/background.log 2>&1 &")
}

// await waits inside until a condition of the shell holds.
func (f screenBox) await(t *testing.T, st desktop.Status, condition string) {
	t.Helper()
	f.on(t, st, "until "+condition+"; do read -rt 0.05 <> <(:) || :; done 2>/dev/null")
}

// servers counts the display servers.
func (f screenBox) servers(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(sh(t, f.env, "pgrep -c 'X.*vnc'; true"))
}

// classes are the classes of the windows on a screen.
func classes(st desktop.Status) []string {
	var all []string
	for _, w := range st.Windows {
		all = append(all, w.Class)
	}
	slices.Sort(all)
	return all
}

// keepPicture leaves a picture for people to look at.
func keepPicture(t *testing.T, name string, picture stdimage.Image) {
	t.Helper()
	dir, err := filepath.Abs("../build/pictures")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// picture takes one and keeps it.
func (f screenBox) picture(t *testing.T, name string) *stdimage.RGBA {
	t.Helper()
	p, err := desktop.Screenshot(t.Context(), f.env)
	if err != nil {
		t.Fatal(err)
	}
	keepPicture(t, name, p)
	return p
}

// colours counts the different ones of a picture.
func colours(p stdimage.Image) int {
	seen := map[[3]uint32]bool{}
	for y := p.Bounds().Min.Y; y < p.Bounds().Max.Y; y++ {
		for x := p.Bounds().Min.X; x < p.Bounds().Max.X; x++ {
			r, g, b, _ := p.At(x, y).RGBA()
			seen[[3]uint32{r, g, b}] = true
		}
	}
	return len(seen)
}

// panelDrawn fails when nothing is on the panel.
func panelDrawn(t *testing.T, p *stdimage.RGBA) {
	t.Helper()
	if n := colours(p.SubImage(stdimage.Rect(0, 0, 1440, 34))); n < 20 {
		t.Errorf("the panel has %d colours: it is not drawn", n)
	}
}

func desktopNone(t *testing.T, f screenBox) {
	if st := f.look(t); st.Running {
		t.Errorf("%+v", st)
	}
	if got := cli(t, "desktop", "status", f.name); got.stdout != "not running\n" || got.status != 0 {
		t.Errorf("%+v", got)
	}
	if got := cli(t, "desktop", "status", "--json", f.name); got.stdout != `{"schema":1,"running":false}`+"\n" || got.status != 0 {
		t.Errorf("%+v", got)
	}
	file := filepath.Join(t.TempDir(), "p.png")
	got := cli(t, "desktop", "screenshot", "-o", file, f.name)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a file without a picture: %v", err)
	}
	want := fmt.Sprintf("dockerbox: error: sandbox %q has no screen at the moment\ndockerbox: hint: dockerbox desktop start %s\n", f.name, f.name)
	if got.status != contract.ExitBackend || got.stderr != want {
		t.Errorf("%+v", got)
	}
	if got := cli(t, "desktop", "stop", f.name); got.status != 0 || !strings.Contains(got.stderr, "had no screen running") {
		t.Errorf("%+v", got)
	}
}

func desktopOnce(t *testing.T, f screenBox) {
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if st, err := desktop.Start(t.Context(), f.env, desktop.Options{}); err != nil || st.Display != ":20" || st.Size != stdimage.Pt(1440, 900) {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
	all.Go(func() {
		got := cli(t, "desktop", "start", "--json", f.name)
		var st struct {
			Schema, Width, Height            int
			Running                          bool
			Display, Profile, Account, Since string
		}
		err := json.Unmarshal([]byte(got.stdout), &st)
		since, sinceErr := time.Parse(time.RFC3339, st.Since)
		if err != nil || sinceErr != nil || st.Schema != 1 || !st.Running || st.Display != ":20" || st.Profile != "default" || st.Account != "pn" || st.Width != 1440 || time.Since(since).Abs() > time.Minute {
			t.Errorf("%+v: %v, %v", got, err, sinceErr)
		}
	})
	all.Wait()
	if n := f.servers(t); n != "1" {
		t.Errorf("%s display servers", n)
	}
	st := f.look(t)
	if diff := cmp.Diff([]string{"Xfce4-panel", "Xfdesktop"}, classes(st)); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
	if again := f.start(t); !again.Since.Equal(st.Since) {
		t.Error("another screen was started")
	}
	// Asked for under another profile and size, it is still the sandbox's one screen.
	if other, err := desktop.Start(t.Context(), f.env, desktop.Options{Profile: "work", Geometry: "800x600"}); err != nil || other.Profile != "default" || other.Size != st.Size {
		t.Errorf("%+v, %v", other, err)
	}
}

func desktopSocket(t *testing.T, f screenBox) {
	st := f.start(t)
	// State 0A is a socket that is listened on.
	if got := sh(t, f.env, "cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | awk '$4 == \"0A\" || $4 == \"07\"'"); got != "" {
		t.Errorf("ports are open: %s", got)
	}
	wants(t, f.env, "stat -c '%U %a %F' "+st.Socket, "pn 600 socket\n")
	wants(t, f.env, "stat -c '%U %a' /tmp/hermes-bot-desktop/default", "pn 700\n")
	// What Hermes looks at before it takes a screen for one.
	if got := f.on(t, st, "cd /tmp/hermes-bot-desktop/default && kill -0 $(cat launcher.pid) && test -S rfb.sock && cut -d= -f1 env | sort | tr '\\n' ' '"); got != "DBUS_SESSION_BUS_ADDRESS DISPLAY XAUTHORITY XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR " {
		t.Errorf("published: %s", got)
	}
	if got := f.on(t, st, `ps -o sid= -p $(cat /tmp/hermes-bot-desktop/default/launcher.pid) | tr -d ' '; cat /tmp/hermes-bot-desktop/default/launcher.pid`); len(strings.Fields(got)) != 2 || strings.Fields(got)[0] != strings.Fields(got)[1] {
		t.Errorf("the launcher does not lead its session: %q", got)
	}
	if r := run(t, f.env, contract.Request{Command: "xdpyinfo", Env: map[string]string{"DISPLAY": ":20", "XAUTHORITY": "/dev/null"}}); r.ExitCode == 0 {
		t.Error("the display lets programs in that have no key")
	}
}

func desktopNeverBlank(t *testing.T, f screenBox) {
	st := f.start(t)
	got := f.on(t, st, "xset q")
	for _, want := range []string{"prefer blanking:  no", "timeout:  0"} {
		if !strings.Contains(got, want) {
			t.Errorf("xset q lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "DPMS is Enabled") {
		t.Errorf("the monitor is switched off when idle:\n%s", got)
	}
}

func desktopPictures(t *testing.T, f screenBox) {
	f.start(t)
	p := f.picture(t, "desktop")
	if p.Rect != stdimage.Rect(0, 0, 1440, 900) {
		t.Fatalf("%v", p.Rect)
	}
	panelDrawn(t, p)
	fast(t, 500*time.Millisecond, func() {
		if got := cli(t, "desktop", "screenshot", "-o", filepath.Join(t.TempDir(), "p.png"), f.name); got.status != 0 {
			t.Fatalf("%+v", got)
		}
	})
	// Without -o the file is named after sandbox and time and stands in the working directory.
	c := exec.Command(dockerboxBinary(t), "desktop", "screenshot", f.name)
	c.Dir = t.TempDir()
	got := programme(t, c)
	name := strings.TrimSuffix(got.stdout, "\n")
	if ok, err := filepath.Match(f.name+"-????????-??????.png", name); !ok || err != nil {
		t.Fatalf("%+v", got)
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	file, err := os.ReadFile(filepath.Join(c.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for where, b := range map[string][]byte{"the file": file, "stdout": []byte(cli(t, "desktop", "screenshot", "-o", "-", f.name).stdout)} {
		if p, err := png.Decode(bytes.NewReader(b)); err != nil || p.Bounds() != stdimage.Rect(0, 0, 1440, 900) {
			t.Errorf("%s: %v", where, err)
		}
	}
	if got := cli(t, "desktop", "screenshot", "-o", "/nonexistent/p.png", f.name); got.status != contract.ExitBackend || !strings.Contains(got.stderr, "/nonexistent/p.png") {
		t.Errorf("%+v", got)
	}
}

// dialScreen connects as a viewer does.
func (f screenBox) dialScreen(t *testing.T, st desktop.Status) *rfb.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own is over before it cleans up
	stream := desktop.Open(ctx, f.env, st)
	t.Cleanup(func() {
		defer cancel()
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := rfb.Dial(stream)
	if err != nil {
		t.Fatal(err, stream.Close())
	}
	return c
}

func desktopResize(t *testing.T, f screenBox) {
	st := f.start(t)
	c := f.dialScreen(t, st)
	if c.Name() != "dockerbox: default" {
		t.Errorf("the screen is called %q", c.Name())
	}
	if _, err := c.Frame(); err != nil {
		t.Fatal(err)
	}
	p, err := c.Resize(1024, 700)
	if err != nil || p.Rect != stdimage.Rect(0, 0, 1024, 700) {
		t.Fatalf("%v, %v", p, err)
	}
	// Panel and background follow.
	f.await(t, st, `[[ $(xprop -root -notype _NET_DESKTOP_GEOMETRY) == *"1024, 700" ]]`)
	if got := f.look(t).Size; got != stdimage.Pt(1024, 700) {
		t.Errorf("status says %v", got)
	}
	f.await(t, st, `[[ $(xprop -name xfce4-panel -notype _NET_WM_STRUT_PARTIAL) == *" 1023" || $(xwininfo -name xfce4-panel) == *"Width: 1024"* ]]`)
	f.picture(t, "resized")
	if _, err := c.Resize(1440, 900); err != nil {
		t.Error(err)
	}
}

func desktopKeys(t *testing.T, f screenBox) {
	const line = `@€ß äöü ~{[]}|\ "'$ をテ中🙂 é`
	st := f.start(t)
	f.on(t, st, "rm -f /tmp/keys")
	f.background(t, st, `xfce4-terminal --title typing -x bash -c 'IFS= read -r line; printf %s "$line" >/tmp/keys.new; mv /tmp/keys.new /tmp/keys; read -r'`)
	f.await(t, st, `xprop -id "$(xprop -root -notype _NET_ACTIVE_WINDOW | grep -o '0x[0-9a-f]*')" _NET_WM_NAME | grep -q typing`)
	c := f.dialScreen(t, st)
	if err := c.Type(line + "\n"); err != nil {
		t.Fatal(err)
	}
	f.await(t, st, "[[ -e /tmp/keys ]]")
	wants(t, f.env, "cat /tmp/keys", line)
	f.picture(t, "typed")
	if err := c.Type("\n"); err != nil {
		t.Fatal(err)
	}
}

// restart starts the container again, as after a power cut.
func (f screenBox) restart(t *testing.T) {
	t.Helper()
	docker(t, "restart", "--time", "0", f.env.Info().ContainerID)
}

func desktopStaleLocks(t *testing.T, f screenBox) {
	stranger := func(user, file string) {
		t.Helper()
		// Process 1 lives and is no display server.
		if r := run(t, f.env, contract.Request{User: user, Command: "rm -f " + file + "; printf '%10d\\n' 1 >" + file}); r.ExitCode != 0 {
			t.Fatalf("%s", r.Output)
		}
	}
	for name, before := range map[string]func(){
		"a restart alone":            func() {},
		"a stranger's number":        func() { stranger("pn", "/tmp/.X20-lock") },
		"a stranger's, left by root": func() { stranger("0", "/tmp/.X20-lock"); sh(t, f.env, "sudo touch /tmp/.X11-unix/X20") },
	} {
		f.start(t)
		f.restart(t)
		// Hermes takes any process of that number for a launcher that lives, so none may be named.
		if got := sh(t, f.env, "ls -A /tmp/hermes-bot-desktop/default | grep -E 'pid|sock|^env$'; ls /tmp/.X20-lock /tmp/.X11-unix/X20 2>/dev/null; true"); got != "" {
			t.Errorf("%s: left after the restart: %s", name, got)
		}
		before()
		began := time.Now()
		st := f.start(t)
		if took := time.Since(began); took > 30*time.Second || f.servers(t) != "1" || !st.Running {
			t.Errorf("%s: after %s %+v", name, took, st)
		}
		if diff := cmp.Diff([]string{"Xfce4-panel", "Xfdesktop"}, classes(f.look(t))); diff != "" {
			t.Errorf("%s: windows (-want +got):\n%s", name, diff)
		}
	}
	// The same between two runs of the container, before the agent looks: the lock names a living process from the start.
	f.restart(t)
	stranger("0", "/tmp/.X20-lock")
	f.restart(t)
	f.start(t)
	panelDrawn(t, f.picture(t, "restarted"))
}

func desktopStaleBus(t *testing.T, f screenBox) {
	f.start(t)
	const config = `<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen><pidfile>/run/dbus/pid</pidfile><fork/><policy context="default"><allow user="*"/></policy></busconfig>`
	bus := "printf %s '" + config + "' | sudo tee /run/dbus/system.conf >/dev/null; sudo dbus-daemon --config-file=/run/dbus/system.conf"
	sh(t, f.env, "sudo mkdir -p /run/dbus; sudo rm -f /run/dbus/pid; "+bus)
	sh(t, f.env, "sudo pkill -KILL -x dbus-daemon; echo 1 | sudo tee /run/dbus/pid")
	if r := run(t, f.env, contract.Request{Command: bus}); r.ExitCode == 0 {
		t.Fatal("the number of a living stranger does not keep a bus from starting: this test has lost its subject")
	}
	f.restart(t)
	sh(t, f.env, bus)
	if st := f.start(t); len(f.look(t).Windows) != 2 {
		t.Errorf("%+v", st)
	}
}

func desktopOrphans(t *testing.T, f screenBox) {
	f.start(t)
	sh(t, f.env, "kill -KILL $(cat /tmp/hermes-bot-desktop/default/launcher.pid)")
	f.start(t)
	if n := f.servers(t); n != "1" {
		t.Errorf("%s display servers", n)
	}
	if got := strings.TrimSpace(sh(t, f.env, "pgrep -c xfce4-panel; true")); got != "1" {
		t.Errorf("%s panels", got)
	}
}

func desktopStop(t *testing.T, f screenBox) {
	st := f.start(t)
	f.background(t, st, "xfce4-terminal")
	f.await(t, st, `xprop -root _NET_CLIENT_LIST | grep -q '0x.*0x.*0x'`)
	if got := cli(t, "desktop", "stop", f.name); got != (said{}) {
		t.Errorf("%+v", got)
	}
	f.await(t, desktop.Status{}, "! pgrep -u pn -f 'xf[cdsw]|Xvnc|dbus-|at-spi|launcher.sh' >/dev/null")
	wants(t, f.env, "ls -A /tmp/.X11-unix; ls -d /tmp/.X20-lock /tmp/hermes-bot-desktop 2>/dev/null; true", "")
	if got := cli(t, "desktop", "stop", "--json", f.name); got.stdout != `{"schema":1,"stopped":false}`+"\n" || got.status != 0 {
		t.Errorf("%+v", got)
	}
}

func desktopTaken(t *testing.T, f screenBox) {
	sh(t, f.env, "sudo sh -c 'setsid Xvnc :20 -rfbport -1 -rfbunixpath /run/other.sock -SecurityTypes None >/dev/null 2>&1 &'; until [[ -S /tmp/.X11-unix/X20 ]]; do read -rt 0.05 <> <(:) || :; done")
	got := cli(t, "desktop", "start", f.name)
	if got.status != contract.ExitBackend || !strings.Contains(got.stderr, "display :20 is served by Xvnc (process ") || strings.Count(got.stderr, "\n") != 2 {
		t.Errorf("%+v", got)
	}
	if n := f.servers(t); n != "1" {
		t.Errorf("%s display servers", n)
	}
	sh(t, f.env, "sudo pkill -x 'X.*vnc'; while pgrep 'X.*vnc' >/dev/null; do read -rt 0.05 <> <(:) || :; done")
}

func desktopBroken(t *testing.T, f screenBox) {
	sh(t, f.env, `printf '#!/bin/sh\necho cannot open the font "fixed" >&2\nexit 3\n' | sudo tee /usr/local/bin/Xvnc >/dev/null; sudo chmod 755 /usr/local/bin/Xvnc`)
	got := cli(t, "desktop", "start", f.name)
	for _, want := range []string{"did not start: Xvnc ended with status 3; its last words: ", `cannot open the font fixed`, "/tmp/hermes-bot-desktop/default/launcher.log inside the sandbox"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("%+v lacks %q", got, want)
		}
	}
	if got.status != contract.ExitBackend || strings.Count(got.stderr, "\n") != 2 {
		t.Errorf("%+v", got)
	}
	wants(t, f.env, "grep -c fixed /tmp/hermes-bot-desktop/default/launcher.log; pgrep -f launcher.sh; true", "1\n")
	sh(t, f.env, "sudo rm /usr/local/bin/Xvnc")
	f.start(t) // and once it is mended, it starts
}

// A screen needs programs that a plain image lacks, and the refusal names them.
func TestDesktopOfAnImageWithoutOne(t *testing.T) {
	env := desktopSandbox(t, func(c *contract.Config) { c.Image = image.BaseTag })
	_, err := desktop.Start(t.Context(), env, desktop.Options{})
	if err == nil || !strings.Contains(err.Error(), "has no screen to offer: it lacks Xvnc, ") {
		t.Fatal(err)
	}
}

// /tmp in memory is empty when the container starts, so the place of the display's socket has to be made by root; and where the home
// belongs to somebody else, settings go elsewhere.
func TestDesktopWithTmpInMemoryAndNoHome(t *testing.T) {
	env := desktopSandbox(t, func(c *contract.Config) {
		c.Network, c.ExtraArgs, c.Persistent = "none", []string{"--tmpfs", "/tmp:size=64m"}, false
	})
	f := screenBox{env: env, name: env.Info().Name}
	wants(t, env, "stat -c '%U %a' /tmp/.X11-unix; sudo chown root:root /home/pn; sudo chmod 755 /home/pn; sudo rm -rf /home/pn/.config", "root 1777\n")
	st := f.start(t)
	if diff := cmp.Diff([]string{"Xfce4-panel", "Xfdesktop"}, classes(f.look(t))); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
	if want := "/tmp/hermes-bot-desktop/default/config"; st.Env["XDG_CONFIG_HOME"] != want {
		t.Errorf("settings in %q, want %q", st.Env["XDG_CONFIG_HOME"], want)
	}
	panelDrawn(t, f.picture(t, "in-memory"))
}
