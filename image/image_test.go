package image

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func dockerfile(t *testing.T) string {
	t.Helper()
	text, err := files.ReadFile(Dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The recipe's LABEL line and Labels say the same, once its ARGs are filled in.
func TestLabelsAreThoseOfTheDockerfile(t *testing.T) {
	created := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var replace []string
	for name, value := range Args("v1.2.3", "abc", created, "base:1") {
		replace = append(replace, "${"+name+"}", value)
		if declared := regexp.MustCompile(`(?m)^ARG ` + name + `=`); !declared.MatchString(dockerfile(t)) {
			t.Errorf("%s takes no %s", Dockerfile, name)
		}
	}
	values := strings.NewReplacer(replace...)
	got := map[string]string{}
	for _, pair := range regexp.MustCompile(`(org\.opencontainers\.[a-z.]+)="([^"]*)"`).FindAllStringSubmatch(dockerfile(t), -1) {
		got[pair[1]] = values.Replace(pair[2])
	}
	if diff := cmp.Diff(Labels("v1.2.3", "abc", created, "base:1"), got); diff != "" {
		t.Errorf("LABEL of %s differs (-Labels +Dockerfile):\n%s", Dockerfile, diff)
	}
}

func TestLabelsWithoutATime(t *testing.T) {
	if got := Labels("v", "r", time.Time{}, "b")["org.opencontainers.image.created"]; got != "" {
		t.Errorf("created of a zero time = %q, want empty", got)
	}
}

// Debian's docker.io has the classic builder only, and root must not inherit pn's home.
func TestDockerfileSuitsTheClassicBuilder(t *testing.T) {
	for name, banned := range map[string]string{
		"syntax line":          `(?mi)^#\s*syntax\s*=`,
		"RUN option":           `(?m)^RUN --`,
		"COPY --chmod or link": `(?m)^(COPY|ADD) --(chmod|link|parents)`,
		"heredoc":              `(?m)^[^#\n]*<<`,
		"BuildKit's arguments": `(?m)^[^#\n]*\b(TARGET|BUILD)(ARCH|PLATFORM|OS|VARIANT)\b`,
		"ENV HOME":             `(?m)^(ENV| +)[^#\n&]*\bHOME=`,
	} {
		if line := regexp.MustCompile(banned).FindString(dockerfile(t)); line != "" {
			t.Errorf("%s: %q", name, line)
		}
	}
}

// What the commands a container starts with find, whatever shell or none is between.
func TestTheEnvironmentOfTheDockerfile(t *testing.T) {
	text := dockerfile(t)
	for _, want := range []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "PLAYWRIGHT_BROWSERS_PATH=/opt/playwright",
		"AGENT_BROWSER_EXECUTABLE_PATH=/opt/playwright/chromium-debian/chrome-linux/chrome", "AGENT_BROWSER_NO_VERSION_CHECK=1",
		"CUA_DRIVER_RS_TELEMETRY_ENABLED=0", "CUA_DRIVER_RS_UPDATE_CHECK=0", "XDG_RUNTIME_DIR=/var/lib/dockerbox/runtime",
	} {
		if !regexp.MustCompile(`(?m)^(ENV| +) *` + regexp.QuoteMeta(want) + `( \\)?$`).MatchString(text) {
			t.Errorf("%s does not set %s", Dockerfile, want)
		}
	}
	const end = "\nUSER pn\nWORKDIR /home/pn\nCMD [\"sleep\", \"infinity\"]\n"
	if !strings.HasSuffix(text, end) {
		t.Errorf("%s does not end with %q", Dockerfile, end)
	}
}

// The script cannot import this package, so its names are compared here.
func TestScriptsUseTheSameNames(t *testing.T) {
	text, err := os.ReadFile("../scripts/build-base")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{BaseTag, UpstreamBase} {
		if !strings.Contains(string(text), name) {
			t.Errorf("scripts/build-base does not mention %s", name)
		}
	}
}
