//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
)

// changing is a daemon that makes of each container's host configuration what change does, without a word, as engines do with settings that
// they do not know.
func changing(change func(host map[string]any)) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string {
		t.Helper()
		real := &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "daemon"}) },
			Transport:     theDaemon(t).http.Transport,
			FlushInterval: -1,
		}
		creates := path(`/containers/create\?name=dockerbox-t-fail-`)
		return f.socket(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if creates.MatchString(r.URL.RequestURI()) {
				var body map[string]any
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				host, _ := body["HostConfig"].(map[string]any)
				change(host)
				text, err := json.Marshal(body)
				if err != nil {
					t.Error(err)
				}
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			}
			real.ServeHTTP(w, r)
		}))
	}
}

// inHardened is a row with a hardened sandbox of its own.
func inHardened(t *testing.T, f *failure) []string {
	t.Helper()
	f.sandbox(t, "--profile", "hardened")
	return nil
}

const (
	otherDaemon = "choose another daemon, or security standard (--profile, in Hermes terminal.backends.dockerbox.security)"
	anew        = "dockerbox up --recreate with the same flags makes {box} anew: what runs in it ends, its home is kept; without these flags it is taken as it is"
	ofConnected = "the account 65531 of a hardened sandbox is that of its connections"
	keepsNot    = `the daemon does not keep sandbox "{box}" hardened: `
)

// hardenedRows are about hardened sandboxes: those that would be less than that are refused.
func hardenedRows() []badInput {
	up := []string{"up", "--profile", "hardened", "{box}"}
	return []badInput{
		usage("a profile that is none", `security: "strict" must be "standard" or "hardened"`, "dockerbox up --help shows what it takes", "up", "--profile", "strict", "b"),
		usage("a profile without a name", `flag needs an argument: --profile`, "dockerbox up --help shows what it takes", "up", "--profile"),
		usage("a contract for a profile that is none", `security: "strict" must be "standard" or "hardened"`, "dockerbox conformance --help shows what it takes", "conformance", "--profile", "strict"),
		{
			name: "hardening a living one", args: up, prepare: made(), status: 125,
			err:  `sandbox "{box}" has other settings, which cannot be changed while it exists: security is standard, wanted hardened; network is bridge, wanted none`,
			hint: anew,
		},
		{
			name: "softening a hardened one", args: []string{"up", "--profile", "standard", "{box}"}, prepare: inHardened, status: 125,
			err: `sandbox "{box}" has other settings, which cannot be changed while it exists: security is hardened, wanted standard`, hint: anew,
		},
		{
			name: "a daemon that drops options of security", args: up, environ: atSocket(), status: 125, err: keepsNot + "no-new-privileges does not apply", hint: otherDaemon,
			prepare: changing(func(host map[string]any) { delete(host, "SecurityOpt") }),
		},
		{
			name: "a daemon that filters nothing", args: up, environ: atSocket(), status: 125, err: keepsNot + "system calls are not filtered", hint: otherDaemon,
			prepare: changing(func(host map[string]any) { host["SecurityOpt"] = []string{"seccomp=unconfined", "no-new-privileges"} }),
		},
		{
			name: "a daemon that drops all the rest", args: up, environ: atSocket(), status: 125, err: keepsNot + "the root directory can be written to, capabilities are left (0xa80425fb)", hint: otherDaemon,
			prepare: changing(func(host map[string]any) { delete(host, "ReadonlyRootfs"); delete(host, "CapDrop") }),
		},
		{
			name: "the account of the connections", args: []string{"up", "--profile", "hardened", "--user", "65531", "{box}"}, status: 125,
			err: ofConnected, hint: "choose another user (--user, in Hermes terminal.backends.dockerbox.user)",
		},
		{name: "a command of the account of the connections", args: []string{"exec", "-u", "65531", "{box}", "true"}, prepare: inHardened, status: 125, err: ofConnected, hint: "choose another number with --user"},
		{name: "a hardened one has no such user", args: []string{"exec", "-u", "nosuch", "{box}", "true"}, prepare: inHardened, status: 125, err: `the sandbox has no user "nosuch"`, hint: chooseUser},
		{name: "sudo in a hardened one", args: []string{"run", "{box}", "sudo -n true 2>/dev/null; touch /etc/x"}, prepare: inHardened, status: 1, stdout: "touch: cannot touch '/etc/x': Read-only file system\n"},
	}
}

func TestFailuresOfHardenedSandboxes(t *testing.T) { runFailures(t, hardenedRows()) }
