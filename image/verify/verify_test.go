package verify

import (
	"fmt"
	"image"
	"image/color"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// right is an image that says of itself what it should.
func right() provider.Image {
	return provider.Image{
		ID: "sha256:1", Machine: "amd64", Platform: ocispec.Platform{OS: "linux", Architecture: "amd64"},
		Config: ocispec.ImageConfig{
			User: "pn", Cmd: []string{"sleep", "infinity"}, WorkingDir: "/home/pn",
			Env: []string{
				"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "XDG_RUNTIME_DIR=/var/lib/dockerbox/runtime",
				"PLAYWRIGHT_BROWSERS_PATH=/opt/playwright", "AGENT_BROWSER_EXECUTABLE_PATH=/opt/playwright/chromium-debian/chrome-linux/chrome",
				"AGENT_BROWSER_NO_VERSION_CHECK=1", "CUA_DRIVER_RS_TELEMETRY_ENABLED=0", "CUA_DRIVER_RS_UPDATE_CHECK=0",
			},
			Labels: map[string]string{
				ocispec.AnnotationTitle: "a", ocispec.AnnotationVersion: "b", ocispec.AnnotationRevision: "c", ocispec.AnnotationSource: "https://example.org/x",
				ocispec.AnnotationCreated: "2026-11-30T13:50:13Z", ocispec.AnnotationBaseImageName: "d",
			},
		},
	}
}

// setEnv gives a variable another value; an empty one unsets it.
func setEnv(name, value string) func(*provider.Image) {
	return func(i *provider.Image) {
		i.Config.Env = slices.DeleteFunc(i.Config.Env, func(s string) bool { return strings.HasPrefix(s, name+"=") })
		if value != "" {
			i.Config.Env = append(i.Config.Env, name+"="+value)
		}
	}
}

func setLabel(key, value string) func(*provider.Image) {
	return func(i *provider.Image) { i.Config.Labels[key] = value }
}

func config(edit func(*ocispec.ImageConfig)) func(*provider.Image) {
	return func(i *provider.Image) { edit(&i.Config) }
}

func TestConfiguration(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(*provider.Image)
		want string // the checks that fail
	}{
		{"right", func(*provider.Image) {}, ""},
		{"by number, with a group", config(func(c *ocispec.ImageConfig) { c.User = "1000:1000" }), ""},
		{"root by name", config(func(c *ocispec.ImageConfig) { c.User = "root" }), "user"},
		{"nobody named", config(func(c *ocispec.ImageConfig) { c.User = "" }), "user"},
		{"somebody else", config(func(c *ocispec.ImageConfig) { c.User = "10000" }), "user"},
		{"another architecture", func(i *provider.Image) { i.Architecture = "arm64" }, "platform"},
		{"another system", func(i *provider.Image) { i.OS = "windows" }, "platform"},
		{"a machine that is not known", func(i *provider.Image) { i.Machine = "" }, ""},
		{"ends at once", config(func(c *ocispec.ImageConfig) { c.Cmd = []string{"bash"} }), "cmd"},
		{"sleeps, not for ever", config(func(c *ocispec.ImageConfig) { c.Cmd = []string{"sleep", "1000"} }), "cmd"},
		{"as a shell's words", config(func(c *ocispec.ImageConfig) { c.Cmd = []string{"/bin/sh", "-c", "exec sleep infinity"} }), ""},
		{"an entrypoint", config(func(c *ocispec.ImageConfig) { c.Entrypoint = []string{"/init"} }), "entrypoint"},
		{"volumes", config(func(c *ocispec.ImageConfig) { c.Volumes = map[string]struct{}{"/data": {}} }), "volumes"},
		{"ports", config(func(c *ocispec.ImageConfig) { c.ExposedPorts = map[string]struct{}{"5900/tcp": {}} }), "ports"},
		{"HOME", setEnv("HOME", "/home/pn"), "env HOME"},
		{"no PATH", setEnv("PATH", ""), "env PATH"},
		{"a relative PATH", setEnv("PATH", "/usr/local/bin:bin:/usr/bin"), "env PATH"},
		{"Debian's programs first", setEnv("PATH", "/usr/bin:/usr/local/bin"), "env PATH"},
		{"ASCII", setEnv("LANG", "C"), "env LANG"},
		{"a locale of a country", setEnv("LANG", "de_DE.utf-8"), ""},
		{"no runtime directory", setEnv("XDG_RUNTIME_DIR", ""), "env XDG_RUNTIME_DIR"},
		{"a relative browser", setEnv("AGENT_BROWSER_EXECUTABLE_PATH", "chromium"), "env AGENT_BROWSER_EXECUTABLE_PATH"},
		{"telemetry", setEnv("CUA_DRIVER_RS_TELEMETRY_ENABLED", "1"), "env CUA_DRIVER_RS_TELEMETRY_ENABLED"},
		{"telemetry unset", setEnv("CUA_DRIVER_RS_TELEMETRY_ENABLED", ""), "env CUA_DRIVER_RS_TELEMETRY_ENABLED"},
		{"the builder's certificates", setEnv("NODE_EXTRA_CA_CERTS", "/ca.crt"), "env NODE_EXTRA_CA_CERTS"},
		{"the builder's proxy", setEnv("https_proxy", "http://10.0.0.1"), "env https_proxy"},
		{"no title", setLabel(ocispec.AnnotationTitle, ""), "label org.opencontainers.image.title"},
		{"a source that is no URL", setLabel(ocispec.AnnotationSource, "here"), "label org.opencontainers.image.source"},
		{"a time that is none", setLabel(ocispec.AnnotationCreated, "today"), "label org.opencontainers.image.created"},
		{"nothing said at all", func(i *provider.Image) { i.Config = ocispec.ImageConfig{} }, "user, env PATH, env LANG, env XDG_RUNTIME_DIR, env PLAYWRIGHT_BROWSERS_PATH, " +
			"env AGENT_BROWSER_EXECUTABLE_PATH, env AGENT_BROWSER_NO_VERSION_CHECK, env CUA_DRIVER_RS_TELEMETRY_ENABLED, env CUA_DRIVER_RS_UPDATE_CHECK, cmd, " +
			"label org.opencontainers.image.title, label org.opencontainers.image.version, label org.opencontainers.image.revision, " +
			"label org.opencontainers.image.source, label org.opencontainers.image.created, label org.opencontainers.image.base.name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := right()
			test.edit(&i)
			var r Report
			r.configuration(i)
			var failed []string
			for _, f := range r.Faults {
				failed = append(failed, f.Check)
				if f.Want == "" || f.Found == "" {
					t.Errorf("%+v does not say enough", f)
				}
			}
			if got := strings.Join(failed, ", "); got != test.want {
				t.Errorf("faults %q, want %q", got, test.want)
			}
		})
	}
}

func TestAbsentIsWhatIsInNoDirectoryOfPATH(t *testing.T) {
	env := []string{"PATH=/a:relative:/b"}
	var missing []string
	for _, place := range candidates(env) {
		if !strings.HasPrefix(place, "/b/") || place == "/b/Xvnc" {
			missing = append(missing, place)
		}
	}
	if got := absent(env, missing); !slices.Equal(got, []string{"Xvnc"}) {
		t.Errorf("absent %q, want Xvnc alone", got)
	}
	if got := candidates(nil); !slices.Contains(got, "/usr/local/bin/Xvnc") || !slices.Contains(got, "/bin/Xvnc") {
		t.Errorf("without a PATH programs are looked for at %q", got)
	}
}

// A server's words arrive in pieces of any size, with words that are no answer among them.
func TestListenerFindsTheToolsInPieces(t *testing.T) {
	said := `starting` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{"tools":[1]}}` + "\n" + `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a` +
		strings.Repeat("x", 10_000) + `"},{"name":"b"}]}}` + "\n" + `{"id":2,"result":{"tools":[]}}` + "\n"
	for _, size := range []int{1, 7, 4096, len(said)} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			l := &listener{said: make(chan struct{})}
			for piece := range slices.Chunk([]byte(said), size) {
				if n, err := l.Write(piece); n != len(piece) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			if len(l.tools) != 2 {
				t.Errorf("%d tools, want 2", len(l.tools))
			}
			<-l.said
		})
	}
	l := &listener{said: make(chan struct{})}
	if _, err := l.Write(make([]byte, maxLine+1)); err == nil {
		t.Error("an answer without an end was taken")
	}
}

func TestPlain(t *testing.T) {
	p := image.NewRGBA(image.Rect(0, 0, 3, 2))
	if !plain(p) {
		t.Error("an empty picture is not plain")
	}
	p.SetRGBA(2, 1, color.RGBA{1, 2, 3, 255})
	if plain(p) {
		t.Error("a picture with one other pixel is plain")
	}
}

func TestCleanIsOneLine(t *testing.T) {
	if diff := cmp.Diff("a b [31m c \uFFFD", clean("  a\n\tb\x1b[31m\r\nc \xff\x00")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := clean(strings.Repeat("ä", most)); len(got) > most+len("…") || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
