package image

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func dockerfile(t *testing.T) string {
	t.Helper()
	text, err := fs.ReadFile(Files, TerminalDockerfile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The Dockerfile's LABEL line and Labels say the same, once its ARGs are filled in.
func TestLabelsAreThoseOfTheDockerfile(t *testing.T) {
	created := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	values := strings.NewReplacer(
		"${VERSION}", "v1.2.3", "${REVISION}", "abc", "${CREATED}", "2026-03-04T05:06:07Z", "${BASE_IMAGE}", "base:1")
	got := map[string]string{}
	for _, pair := range regexp.MustCompile(`(org\.opencontainers\.[a-z.]+)="([^"]*)"`).FindAllStringSubmatch(dockerfile(t), -1) {
		got[pair[1]] = values.Replace(pair[2])
	}
	if diff := cmp.Diff(Labels("v1.2.3", "abc", created, "base:1"), got); diff != "" {
		t.Errorf("LABEL of %s differs (-Labels +Dockerfile):\n%s", TerminalDockerfile, diff)
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
		"COPY --chmod or link": `(?m)^(COPY|ADD) --(chmod|link)`,
		"heredoc":              `(?m)^(RUN|COPY) .*<<`,
		"ENV HOME":             `(?m)^ENV .*\bHOME\b`,
		"build context":        `(?m)^(COPY|ADD) [^-]`,
	} {
		if line := regexp.MustCompile(banned).FindString(dockerfile(t)); line != "" {
			t.Errorf("%s: %q", name, line)
		}
	}
}

// The build script cannot import this package, so its names are compared here.
func TestScriptsUseTheSameNames(t *testing.T) {
	for script, names := range map[string][]string{
		"../scripts/build-image": {TerminalTag, BaseTag, RecipeLabel, TerminalDockerfile},
		"../scripts/build-base":  {BaseTag},
	} {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.Contains(string(text), name) {
				t.Errorf("%s does not mention %s", script, name)
			}
		}
	}
}
