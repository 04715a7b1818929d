//go:build integration

package integration

import (
	"encoding/json"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
)

// inspected is the part of an image's description these tests look at.
type inspected struct {
	ID           string `json:"Id"`
	Architecture string
	Os           string
	Size         int64
	Config       struct {
		User, WorkingDir string
		Env, Cmd         []string
		Entrypoint       []string
		Labels           map[string]string
		ExposedPorts     map[string]any
		Volumes          map[string]any
	}
}

func inspectImage(t *testing.T, ref string) inspected {
	t.Helper()
	var all []inspected
	if err := json.Unmarshal([]byte(docker(t, "image", "inspect", ref)), &all); err != nil || len(all) != 1 {
		t.Fatalf("inspect %s: %v", ref, err)
	}
	return all[0]
}

func TestTheImageIsConfiguredAsPromised(t *testing.T) {
	got := inspectImage(t, image.DefaultTag)
	slices.Sort(got.Config.Env)
	want := []string{
		"AGENT_BROWSER_EXECUTABLE_PATH=/opt/playwright/chromium-debian/chrome-linux/chrome", "AGENT_BROWSER_NO_VERSION_CHECK=1",
		"CUA_DRIVER_RS_TELEMETRY_ENABLED=0", "CUA_DRIVER_RS_UPDATE_CHECK=0", "LANG=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PLAYWRIGHT_BROWSERS_PATH=/opt/playwright",
		"XDG_RUNTIME_DIR=/var/lib/dockerbox/runtime",
	}
	// The whole list: HOME has no place there, and neither has what the builder's own environment held.
	if diff := cmp.Diff(want, got.Config.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	c := got.Config
	if c.User != "pn" || c.WorkingDir != "/home/pn" || !slices.Equal(c.Cmd, []string{"sleep", "infinity"}) || len(c.Entrypoint)+len(c.ExposedPorts)+len(c.Volumes) != 0 {
		t.Errorf("config %+v", c)
	}
	if got.Os != "linux" || got.Architecture != runtime.GOARCH {
		t.Errorf("platform %s/%s", got.Os, got.Architecture)
	}
	for key, shape := range map[string]string{
		ocispec.AnnotationTitle: "^dockerbox desktop$", ocispec.AnnotationDescription: "desktop", ocispec.AnnotationLicenses: "^MIT$",
		ocispec.AnnotationSource: "^https://", ocispec.AnnotationVersion: ".", ocispec.AnnotationRevision: "^([0-9a-f]{40}|unknown)$",
		ocispec.AnnotationCreated: `^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, ocispec.AnnotationBaseImageName: ".:.", image.RecipeLabel: "^[0-9a-f]{64}$",
	} {
		if !regexp.MustCompile(shape).MatchString(c.Labels[key]) {
			t.Errorf("label %s is %q", key, c.Labels[key])
		}
	}
	const most = 1_100_000_000
	if got.Size > most {
		t.Errorf("%d bytes, want at most %d", got.Size, most)
	}
}

// desktopSandbox is a sandbox of the image under test.
func desktopSandbox(t *testing.T, change func(*contract.Config)) contract.Environment {
	t.Helper()
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name, cfg.Image = uniqueName(t, p), image.DefaultTag
	if change != nil {
		change(&cfg)
	}
	return create(t, p, cfg)
}

func TestTheImageHasItsPrograms(t *testing.T) {
	env := desktopSandbox(t, nil)
	missing := sh(t, env, `for p in bash base64 setsid pgrep python3 python git curl jq rg fd file less nano tmux rsync sudo node npm npx ssh unzip xz xclip pip3 \
		Xvnc xfwm4 xfce4-panel xfdesktop xfsettingsd xfce4-terminal thunar mousepad dbus-run-session dbus-launch xauth xdpyinfo xprop setxkbmap xset xsetroot xrandr \
		chromium cua-driver agent-browser fc-match unshare; do command -v $p >/dev/null || echo $p; done`)
	if missing != "" {
		t.Errorf("not on PATH: %q", missing)
	}
	for command, want := range map[string]string{
		"cua-driver --version": "cua-driver 0.37.0\n", "agent-browser --version": "agent-browser 0.41.2\n", "npm --version": "10.9.9\n",
		"sudo -n id -u": "0\n", "python3 -c 'from PIL import ImageGrab; print(1)'": "1\n", "python3 -m venv /tmp/v && /tmp/v/bin/python -c 'print(2)'": "2\n",
		`echo "$HOME"`: "/home/pn\n", "git config init.defaultBranch": "main\n", "sudo -n npm root -g": "/usr/local/lib/node_modules\n",
		`stat -c '%U %a' "$XDG_RUNTIME_DIR"`: "pn 700\n", "sudo -n bash -lc 'echo ${XDG_RUNTIME_DIR-none}'": "none\n",
		"XDG_RUNTIME_DIR=/root bash -lc 'echo ${XDG_RUNTIME_DIR-none}'": "none\n",
		"stat -c '%U %a' /tmp/.X11-unix /run/dbus":                      "root 1777\nroot 755\n", "cat /etc/machine-id /var/lib/dbus/machine-id | uniq | wc -l": "1\n",
		"sudo -n grep -rlE 'fqdn' /etc/sudoers.d":                                      "/etc/sudoers.d/pn\n",
		"ls /etc/chromium.d/dev-shm /usr/bin/scrot /usr/bin/xfce4-session 2>/dev/null": "",
		"ls -d ${PLAYWRIGHT_BROWSERS_PATH:?}/chromium-*/chrome-linux/chrome":           "/opt/playwright/chromium-debian/chrome-linux/chrome\n",
	} {
		r := run(t, env, contract.Request{Command: command})
		if string(r.Output) != want {
			t.Errorf("%s: %q, want %q", command, r.Output, want)
		}
	}
}

// Row 53: what a page says in any script has a font, and emoji are in colour.
func TestFontsForEveryScript(t *testing.T) {
	env := desktopSandbox(t, nil)
	for pattern, want := range map[string]string{
		"emoji": "Noto Color Emoji", ":lang=zh": "WenQuanYi Zen Hei", ":lang=zh-cn": "WenQuanYi Zen Hei", ":lang=ja": "WenQuanYi Zen Hei",
		":lang=ko": "WenQuanYi Zen Hei", "Arial:lang=zh": "Liberation Sans", "sans-serif": "Noto Sans", ":charset=4e2d": "WenQuanYi Zen Hei",
		":charset=20ac": "Noto Sans", ":lang=hi": "Noto Sans Devanagari",
	} {
		family, _, _ := strings.Cut(strings.TrimSpace(sh(t, env, "fc-match -f '%{family}\n' "+pattern)), ",")
		if family != want {
			t.Errorf("%s is shown in %s, want %s", pattern, family, want)
		}
	}
}

// The build's certificates, caches and logs are in none of the layers, whatever a later one hides.
func TestNothingOfTheBuildIsLeft(t *testing.T) {
	history := docker(t, "history", "--no-trunc", "--format", "{{.CreatedBy}}", image.DefaultTag)
	if strings.Contains(history, "COPY dir:") && strings.Count(history, "COPY") != 2 || strings.Contains(history, " in /fetch") {
		t.Errorf("the layers are not those of the recipe's last stage:\n%s", history)
	}
	env := desktopSandbox(t, nil)
	left := sh(t, env, `sudo -n sh -c '
		ls -d /fetch /out /root/.npm /root/.cache /root/.config 2>/dev/null
		find / -xdev \( -name ca.crt -o -name all.crt -o -name "*.whl" -path "*cua*" -o -name "agent-browser-*.tgz" \) -print
		find /usr/local/share/ca-certificates /var/lib/apt/lists /var/cache/apt /var/log -type f -size +0 -print
		find / -xdev \( -path /proc -o -path /sys -o -path /tmp \) -prune -o -type f -newer /etc/machine-id -perm -o=w -print' | sort`)
	if left != "" {
		t.Errorf("left behind:\n%s", left)
	}
	// Debian's authorities and no other: as many as the package has certificates.
	counts := strings.Fields(sh(t, env, "grep -c BEGIN /etc/ssl/certs/ca-certificates.crt; grep -cv '^#\\|^!\\|^$' /etc/ca-certificates.conf"))
	if len(counts) != 2 || counts[0] != counts[1] || counts[0] == "0" {
		t.Errorf("trusted and packaged authorities: %v", counts)
	}
}

// apt must not stop to ask about a file of ours, and what an upgrade brings must be filtered like the rest.
func TestPackagesInstallWithoutAQuestion(t *testing.T) {
	env := desktopSandbox(t, nil)
	r := run(t, env, contract.Request{Command: "dpkg --audit; sudo -n apt-get -s install --reinstall xfce4-settings >/dev/null; grep -c force-conf /etc/dpkg/dpkg.cfg.d/dockerbox; ls /usr/lib/*/libLLVM* 2>&1 | grep -c 'No such'"})
	if string(r.Output) != "2\n1\n" {
		t.Errorf("%q", r.Output)
	}
}
