//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/image/verify"
)

// verified is what dockerbox image verify --json says of an image, and its status.
func verified(t *testing.T, ref string) (faults []verify.Fault, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, dockerboxBinary(t), "image", "verify", "--json", ref)
	out, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var answer struct {
		Schema, Checks int
		Image, ID      string
		Faults         []verify.Fault
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Schema != 1 || answer.Image != ref || answer.ID == "" || answer.Faults == nil {
		t.Fatalf("status %d, %v: %s", command.ProcessState.ExitCode(), err, out)
	}
	if answer.Checks <= len(answer.Faults) {
		t.Errorf("%d of %d checks failed", len(answer.Faults), answer.Checks)
	}
	return answer.Faults, command.ProcessState.ExitCode()
}

// checks are the names of what failed, without those that are expected by the dozen.
func checks(faults []verify.Fault, leave ...string) []string {
	var names []string
	for _, f := range faults {
		if !slices.ContainsFunc(leave, func(prefix string) bool { return strings.HasPrefix(f.Check, prefix) }) {
			names = append(names, f.Check)
		}
	}
	return names
}

// verifyLeftovers lists what a verification might leave.
func verifyLeftovers(t *testing.T) string {
	t.Helper()
	return docker(t, "ps", "-aq", "--filter", "name=dockerbox-verify-") + docker(t, "volume", "ls", "-q", "--filter", "name=dockerbox-home-verify-")
}

func TestTheImageVerifies(t *testing.T) {
	faults, status := verified(t, image.DefaultTag)
	if len(faults) != 0 || status != 0 {
		t.Errorf("status %d, faults %+v", status, faults)
	}
	if left := verifyLeftovers(t); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// A plain Debian has next to nothing of it: the whole list, at once. Rewrite it with -update.
func TestVerifyListsAllThatAPlainDebianLacks(t *testing.T) {
	got := runScript(t, nil, dockerboxBinary(t), "image", "verify", image.BaseTag)
	id := strings.TrimPrefix(docker(t, "image", "inspect", "--format", "{{.Id}}", image.BaseTag), "sha256:")
	text := strings.ReplaceAll(got.stdout, id[:12], "ID")
	golden := filepath.Join("testdata", "verify-debian.golden")
	if *updateScripts {
		if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" || got.status != 1 || got.stderr != "" {
		t.Errorf("status %d, stderr %q (-want +got):\n%s", got.status, got.stderr, diff)
	}
	if left := verifyLeftovers(t); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// spoiled takes one thing of each kind away from the image that is right, by the commands below and the configuration.
const spoiled = `FROM ` + image.DefaultTag + `
USER root
RUN rm -f /etc/sudoers.d/pn /usr/bin/jq /usr/share/fonts/truetype/noto/NotoColorEmoji.ttf \
 && rm -rf /usr/share/fonts/truetype/wqy /usr/lib/python3/dist-packages/PIL/JpegImagePlugin.py \
 && chmod -x /usr/bin/tmux && chmod 755 /var/lib/dockerbox/runtime && chown root:root /home/pn \
 && sed -i 's/--no-sandbox | //' /etc/chromium.d/dockerbox \
 && printf '#!/bin/sh\necho nothing to be seen >&2; exit 3\n' >/usr/bin/Xvnc \
 && printf '#!/bin/sh\nread a; read b; read c; echo "{\"id\":2,\"result\":{\"tools\":[{},{},{}]}}"; cat >/dev/null\n' >/usr/local/bin/cua-driver
ENV HOME=/home/pn LANG=C
LABEL org.opencontainers.image.version=
CMD ["bash"]
`

func TestVerifySeesEachKindOfFault(t *testing.T) {
	faults, status := verified(t, buildImage(t, spoiled))
	want := []string{
		"user", "env LANG", "env HOME", "cmd", "label org.opencontainers.image.version", "program jq", "program tmux",
		"home", "runtime directory", "sudo", "Pillow", "emoji font", "Chinese font", "Japanese font", "Korean font",
		"Chromium's sandbox", "screen", "cua-driver",
	}
	got := checks(faults)
	if diff := cmp.Diff(want, got); diff != "" || status != 1 {
		t.Errorf("status %d (-want +got):\n%s\n%+v", status, diff, faults)
	}
	for check, says := range map[string]string{
		"screen": "nothing to be seen", "Chromium's sandbox": "You are NOT adequately sandboxed", "cua-driver": "3 tools", "runtime directory": "1000 755 directory",
	} {
		if !slices.ContainsFunc(faults, func(f verify.Fault) bool { return f.Check == check && strings.Contains(f.Found, says) }) {
			t.Errorf("the fault of %s does not say %q: %+v", check, says, faults)
		}
	}
}

// buildImage builds one from a Dockerfile, with a name of its own.
func buildImage(t *testing.T, dockerfile string) string {
	t.Helper()
	tag := freshName("image") + ":1"
	build := exec.CommandContext(t.Context(), "docker", "build", "-q", "-t", tag, "-")
	build.Stdin = strings.NewReader(dockerfile)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "rmi", tag).CombinedOutput(); err != nil {
			t.Errorf("remove the image: %v\n%s", err, out)
		}
	})
	return tag
}

// emptyImage has these files and nothing else.
func emptyImage(t *testing.T, arch string, files map[string]string) string {
	t.Helper()
	f := failure{box: freshName("verify")}
	return f.image(t, arch, files)[1]
}

// Images in which nothing can be asked, or nothing can run, are looked at all the same.
func TestVerifyOfImagesThatCannotAnswer(t *testing.T) {
	configured := []string{"env ", "label ", "program "}
	working := []string{"account", "home", "runtime directory", "sudo", "Pillow", "fonts", "browser", "screen", "cua-driver"}
	for _, test := range []struct {
		name, arch string
		files      map[string]string
		want       []string
		says       string
	}{
		{
			"nothing but accounts", runtime.GOARCH, rootAlone,
			[]string{"user", "cmd", "account", "home", "sudo", "Pillow", "emoji font", "Chinese font", "Japanese font", "Korean font", "Chromium", "Chromium's sandbox", "screen", "cua-driver"}, "",
		},
		{"another architecture", other[runtime.GOARCH], rootAlone, append([]string{"platform", "user", "cmd", "sandbox"}, working...), "is for " + other[runtime.GOARCH]},
		{"an architecture without an agent", "s390x", rootAlone, append([]string{"platform", "user", "cmd", "sandbox"}, working...), "is for s390x"},
		{
			"no accounts", runtime.GOARCH, map[string]string{"hello": "world"},
			[]string{"user", "cmd", "sandbox", "account", "home", "sudo", "Pillow", "emoji font", "Chinese font", "Japanese font", "Korean font", "Chromium", "Chromium's sandbox", "screen", "cua-driver"}, "has no /etc/passwd",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := maps.Clone(test.files)
			files["usr/bin/rsync"] = "a program of sorts"
			faults, status := verified(t, emptyImage(t, test.arch, files))
			if diff := cmp.Diff(test.want, checks(faults, configured...)); diff != "" || status != 1 {
				t.Errorf("status %d (-want +got):\n%s\n%+v", status, diff, faults)
			}
			all := checks(faults)
			if !slices.Contains(all, "program bash") || !slices.Contains(all, "program Xvnc") || slices.Contains(all, "program rsync") {
				t.Errorf("not the programs that are missing are named: %q", all)
			}
			if !slices.ContainsFunc(faults, func(f verify.Fault) bool { return f.Check == "sandbox" && strings.Contains(f.Found, test.says) }) && test.says != "" {
				t.Errorf("nothing says %q: %+v", test.says, faults)
			}
			if left := verifyLeftovers(t); left != "" {
				t.Errorf("left behind: %s", left)
			}
		})
	}
}

// Whoever loses patience leaves nothing behind, wherever it is at the time.
func TestVerifyThatIsInterruptedLeavesNothing(t *testing.T) {
	for name, screen := range map[string]bool{"its container is there": false, "its screen is": true} {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), dockerboxBinary(t), "image", "verify", image.DefaultTag)
			var said bytes.Buffer
			command.Stdout, command.Stderr = &said, &said
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(time.Minute); ; {
				id, there := docker(t, "ps", "-q", "--filter", "name=dockerbox-verify-"), true
				if screen && id != "" {
					out, err := exec.CommandContext(t.Context(), "docker", "top", id).CombinedOutput()
					there = err == nil && bytes.Contains(out, []byte("Xvnc"))
				}
				if id != "" && there {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("there is no sandbox of it")
				}
			}
			if err := command.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			err := command.Wait()
			if status := command.ProcessState.ExitCode(); status != 130 || said.String() != "dockerbox: interrupted\n" {
				t.Errorf("status %d (%v), it said %q", status, err, said.String())
			}
			if left := verifyLeftovers(t); left != "" {
				t.Errorf("left behind: %s", left)
			}
		})
	}
}

func TestVerifyOfAMissingImage(t *testing.T) {
	for ref, hint := range map[string]string{
		"dockerbox/nosuch": "build it first: no registry has an image of that name", "t/nosuch:1": "docker pull t/nosuch:1 fetches it, if a registry has it",
	} {
		got := runScript(t, nil, dockerboxBinary(t), "image", "verify", ref)
		want := scriptResult{stderr: "dockerbox: error: the image " + ref + " is not on this daemon\ndockerbox: hint: " + hint + "\n", status: 125}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
