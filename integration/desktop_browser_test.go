//go:build integration

package integration

import (
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// agent-browser as Hermes runs it: headed, on the sandbox's screen, with the profile that the screen's own browser uses and the switches
// that Hermes adds because it sees a container.
const agentBrowser = "AGENT_BROWSER_HEADED=1 AGENT_BROWSER_PROFILE=/home/pn/.hermes/bot-desktop/browser-profile AGENT_BROWSER_ARGS=--no-sandbox,--disable-dev-shm-usage agent-browser "

func TestBrowserOnTheScreen(t *testing.T) {
	env := desktopSandbox(t, func(c *contract.Config) { c.Network = "none" })
	f := screenBox{env: env, name: env.Info().Name}
	st := f.start(t)
	sh(t, env, `mkdir -p /tmp/www; echo '<meta charset=utf-8><title>Served inside</title><h1>Here I am</h1><p>をテ中 € ß 🙂 <a href=x>a link</a>' >/tmp/www/index.html
nohup python3 -m http.server 8123 --bind 127.0.0.1 --directory /tmp/www >/dev/null 2>&1 &
until curl -sf http://127.0.0.1:8123/ >/dev/null; do read -rt 0.05 <> <(:) || :; done`)

	// Row 52: the account that is not root gets its page.
	if got := f.on(t, st, agentBrowser+"open http://127.0.0.1:8123/ && "+agentBrowser+"snapshot"); !strings.Contains(got, `heading "Here I am"`) {
		t.Errorf("the snapshot lacks the heading:\n%s", got)
	}
	f.await(t, st, `xprop -root _NET_CLIENT_LIST | grep -q '0x.*0x.*0x'`)
	f.picture(t, "browser")
	if got := f.on(t, st, "ps -o user= -C chromium | sort -u; ls -d /home/pn/.hermes/bot-desktop/browser-profile/Default"); got != "pn\n/home/pn/.hermes/bot-desktop/browser-profile/Default\n" {
		t.Errorf("%s", got)
	}

	// Although --no-sandbox was passed.
	if got := f.on(t, st, agentBrowser+"open chrome://sandbox && "+agentBrowser+"eval document.body.innerText"); !strings.Contains(got, "You are adequately sandboxed.") {
		t.Errorf("chrome://sandbox says:\n%s", got)
	}
	f.picture(t, "sandboxed")
	// The page says what the browser believes; the kernel says what is: a process below two more process namespaces, with filters.
	got := f.on(t, st, `for p in $(pgrep -f -- --type=renderer); do awk '/^NSpid:/ {n = NF - 1} /^Seccomp_filters:/ {f = $2} END {print n, f}' /proc/$p/status; done | sort -u`)
	if got != "3 2\n" {
		t.Errorf("renderers have %q, want 3 process numbers and 2 filters", got)
	}
	f.on(t, st, agentBrowser+"close")
	f.await(t, st, "! pgrep -x chromium >/dev/null")

	// Who takes over by hand, on the panel, lands in the same profile, and Hermes can join that browser.
	c := newMCPClient(t, f.name)
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, w := range c.windows() {
		if w.App == "Xfce4-panel" {
			c.elements(w) // a click needs a picture that it is about
			c.call(nil, "click", map[string]any{"pid": w.PID, "window_id": w.WindowID, "x": 75, "y": 17, "delivery_mode": "foreground"})
		}
	}
	f.await(t, st, `xprop -root _NET_CLIENT_LIST | grep -q '0x.*0x.*0x'`)
	f.await(t, st, "[[ -s /home/pn/.hermes/bot-desktop/browser-profile/DevToolsActivePort ]]")
	f.on(t, st, "curl -sf http://127.0.0.1:$(head -n 1 /home/pn/.hermes/bot-desktop/browser-profile/DevToolsActivePort)/json/version")
	for _, w := range c.windows() {
		if strings.HasPrefix(w.App, "Chrom") {
			c.untilElements(w)
		}
	}
	f.picture(t, "by-hand")
}
