package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unpack returns the files of an archive.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Mode != 0o644 || h.Typeflag != tar.TypeReg {
			t.Errorf("%s is %+v", h.Name, h)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = string(data)
	}
}

func pack(t *testing.T, authorities string) map[string]string {
	t.Helper()
	archive, err := Context([]byte(authorities))
	if err != nil {
		t.Fatal(err)
	}
	return unpack(t, archive)
}

// A file that is written and not embedded would be missing from every image built by the program, and from no image built by hand.
func TestTheContextHasEveryFile(t *testing.T) {
	got := pack(t, "")
	for _, dir := range []string{"fetch", "files", "ca/README", Dockerfile} {
		err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(name)
			if got[name] != string(text) {
				t.Errorf("%s is not in the context as it is on the disk", name)
			}
			delete(got, name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range got {
		t.Errorf("%s is in the context and not on the disk", name)
	}
}

func TestTheContextTakesCertificatesAlone(t *testing.T) {
	block := func(kind, body string) string {
		return "-----BEGIN " + kind + "-----\n" + body + "\n-----END " + kind + "-----\n"
	}
	one, two := block("CERTIFICATE", "b25l"), block("CERTIFICATE", "dHdv")
	got := pack(t, "# a comment\n"+one+block("PRIVATE KEY", "c2VjcmV0")+"\nbetween\n"+two)
	if got[certificates] != one+two {
		t.Errorf("%s = %q, want the two certificates", certificates, got[certificates])
	}
	for _, text := range []string{"", "no PEM at all", block("PRIVATE KEY", "c2VjcmV0")} {
		if got, there := pack(t, text)[certificates]; there {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestTheDigestFollowsTheBaseAndNothingOfTheCaller(t *testing.T) {
	if Digest("a") == Digest("b") {
		t.Error("another base must count")
	}
	if got := Digest("a"); got != Digest("a") || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(got) {
		t.Errorf("digest %q", got)
	}
}

// Every package of pip's and npm's has a version and a hash; a name alone would be whatever is newest that day.
func TestEveryFetchIsPinned(t *testing.T) {
	pip, err := files.ReadFile("fetch/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	requirement := regexp.MustCompile(`^[a-z][a-z0-9-]*==[0-9][0-9.]*( +--hash=sha256:[0-9a-f]{64}){2}$`) // one per architecture
	joined := strings.ReplaceAll(string(pip), "\\\n", "")
	count := 0
	for line := range strings.Lines(joined) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if count++; !requirement.MatchString(line) {
			t.Errorf("not pinned: %s", line)
		}
	}
	npm, err := files.ReadFile("fetch/packages.sha512")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(npm)) {
		if count++; !regexp.MustCompile(`^[0-9a-f]{128}  [a-z][a-z-]*-[0-9]+\.[0-9]+\.[0-9]+\.tgz\n$`).MatchString(line) {
			t.Errorf("not pinned: %s", line)
		}
	}
	if count != 4 {
		t.Errorf("%d packages looked at, want 4", count)
	}
	// What the recipe runs uses those files, and there is no other way in.
	text := dockerfile(t)
	for _, want := range []string{"--require-hashes", "--requirement requirements.txt", "sha512sum --check"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", Dockerfile, want)
		}
	}
	commands, _, _ := strings.Cut(regexp.MustCompile(`(?m)^\s*#.*$`).ReplaceAllString(text, ""), "\nLABEL ")
	for _, banned := range []string{`https?://`, `\b(curl|wget) -`, `\bpip3? install`, `\bnpm (install|i|ci|exec)\b`, `\bnpx [a-z]`, `(?m)^ADD\b`} {
		if found := regexp.MustCompile(banned).FindAllString(commands, -1); len(found) > 0 {
			t.Errorf("%s has %q", Dockerfile, found)
		}
	}
}

// The certificates reach the stage fetch, and of that stage the directory /out alone goes on.
func TestCertificatesStayInTheirStage(t *testing.T) {
	var stage string
	var copies []string
	for line := range strings.Lines(dockerfile(t)) {
		switch words := strings.Fields(line); {
		case len(words) == 0:
		case words[0] == "FROM":
			stage = words[len(words)-1]
		case words[0] == "COPY":
			copies = append(copies, stage+": "+strings.Join(words[1:], " "))
		}
	}
	want := []string{"packages: files/etc/dpkg/ /etc/dpkg/", "fetch: fetch/ /fetch/", "fetch: ca/ /fetch/ca/", "fetch: files/ /out/", "packages: --from=fetch /out/ /"}
	if diff := cmp.Diff(want, copies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
