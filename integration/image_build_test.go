//go:build integration

package integration

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/image"
)

// unnamedImages are those without a name that no other image is built on.
func unnamedImages(t *testing.T) []string {
	t.Helper()
	return listed(t, "images", "--no-trunc", "--quiet", "--filter", "dangling=true")
}

// listed are the lines of a docker command, in order. It works when the test is over, too.
func listed(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("docker", args...).Output()
	if err != nil {
		t.Errorf("docker %v: %v", args, err)
	}
	lines := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return lines
}

// removeImages takes images away at the end of a test, in that order, as far as they are there.
func removeImages(t *testing.T, refs func() []string) {
	t.Helper()
	t.Cleanup(func() {
		for _, ref := range refs() {
			if out, err := exec.Command("docker", "image", "rm", ref).CombinedOutput(); err != nil && !strings.Contains(string(out), "No such image") {
				t.Errorf("remove %s: %v: %s", ref, err, out)
			}
		}
	})
}

func TestAnImageThatIsUpToDateCostsNothing(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), dockerboxBinary(t), "image", "build", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema      int
		Tag, ID     string
		Size        int64
		Built       bool
		Duration_MS int64 //nolint:revive,staticcheck // the name in JSON
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Built {
		t.Error("the image was not up to date: make image first")
	}
	const most = 3000 // milliseconds; it is some forty
	there := inspectImage(t, image.DefaultTag)
	if got.Schema != 1 || got.Tag != image.DefaultTag || got.ID != there.ID || got.Size != there.Size || got.Duration_MS > most {
		t.Errorf("%s; the image is %s with %d bytes", out, there.ID, there.Size)
	}
}

// A person who presses Ctrl-C wants the build gone: its container, and what the steps before have left.
func TestAnInterruptedBuildLeavesNothing(t *testing.T) {
	for _, moment := range []string{"step 1 of", "COPY files/etc", "RUN : the screen"} {
		t.Run(moment, func(t *testing.T) { interruptBuild(t, moment) })
	}
}

// interruptBuild presses Ctrl-C once the build says moment.
func interruptBuild(t *testing.T, moment string) {
	t.Helper()
	tag := "dockerbox-test/" + freshName("cancel")
	// A step's container; those of builds that others started before are not ours to judge.
	steps := func() []string {
		return slices.DeleteFunc(listed(t, "ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Command}}"), func(line string) bool {
			return !strings.Contains(line, "the screen and its programs")
		})
	}
	before, stepsBefore := unnamedImages(t), steps()
	command := exec.CommandContext(t.Context(), dockerboxBinary(t), "image", "build", "--no-cache", "--tag", tag)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	command.Stdout = &stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), moment) {
			if err := command.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	begin := time.Now()
	err = command.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 || stdout.Len() != 0 || len(said) == 0 || said[len(said)-1] != "dockerbox: interrupted" {
		t.Errorf("%v, stdout %q, stderr:\n%s", err, stdout.Bytes(), strings.Join(said, "\n"))
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it took %v to end", took)
	}
	if diff := cmp.Diff(before, unnamedImages(t)); diff != "" {
		t.Errorf("images (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(stepsBefore, steps()); diff != "" {
		t.Errorf("containers (-before +after):\n%s", diff)
	}
	if left := docker(t, "images", "--quiet", tag); left != "" {
		t.Errorf("the tag was given to %s", left)
	}
}

// Two lines say which step failed and the last it said, whatever else it printed.
func TestABuildThatFailsSaysWhy(t *testing.T) {
	base, tag := "dockerbox-test/"+freshName("base"), "dockerbox-test/"+freshName("fails")
	before := unnamedImages(t)
	removeImages(t, func() []string {
		var left []string
		for _, id := range unnamedImages(t) {
			if !slices.Contains(before, id) {
				left = append(left, id)
			}
		}
		return append(left, base)
	})
	build := exec.CommandContext(t.Context(), "docker", "build", "--quiet", "--tag", base, "-")
	build.Env = append(os.Environ(), "DOCKER_BUILDKIT=0")
	build.Stdin = strings.NewReader("FROM " + image.BaseTag + "\nRUN printf '#!/bin/sh\\nprintf \"one\\\\ntwo\\\\nthree\\\\nE: no \\\\033[1mluck\"; exit 42\\n' > /usr/bin/apt-get\n")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make the base: %v\n%s", err, out)
	}
	command := exec.CommandContext(t.Context(), dockerboxBinary(t), "image", "build", "--base", base, "--tag", tag)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 125 || len(out) != 0 {
		t.Errorf("%v, stdout %q", err, out)
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(stderr.String()), "\n"), func(line string) bool {
		return regexp.MustCompile(`^dockerbox: (step \d+ of \d+: |fetching with )`).MatchString(line)
	})
	if len(lines) != 2 || !regexp.MustCompile(`^dockerbox: error: building `+tag+`: step \d+ of \d+, RUN : the screen .*, ended with status 42: two; three; E: no luck$`).MatchString(lines[0]) ||
		!strings.HasPrefix(lines[1], "dockerbox: hint: ") {
		t.Errorf("stderr:\n%s", strings.Join(lines, "\n"))
	}
}

// buildKitCLI is a docker CLI with BuildKit: one up to version 22 has it built in, a newer one needs buildx beside it.
func buildKitCLI(t *testing.T) string {
	t.Helper()
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		file := filepath.Join(dir, "docker")
		if info, err := os.Stat(file); err != nil || info.Mode()&0o111 == 0 {
			continue
		}
		command := exec.CommandContext(t.Context(), file, "build", "--help")
		command.Env = append(os.Environ(), "DOCKER_BUILDKIT=1")
		if out, err := command.Output(); err == nil && bytes.Contains(out, []byte("--progress")) {
			return file
		}
	}
	t.Fatal("no docker CLI on PATH has BuildKit: apt-get install docker-buildx, or docker.io of version 20.10 to 22")
	return ""
}

// skeleton is the recipe's build context without the commands it runs: what remains is all that decides the configuration.
func skeleton(t *testing.T) []byte {
	t.Helper()
	whole, err := image.Context(nil)
	if err != nil {
		t.Fatal(err)
	}
	var bare bytes.Buffer
	w, r := tar.NewWriter(&bare), tar.NewReader(bytes.NewReader(whole))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == image.Dockerfile {
			data = regexp.MustCompile(`(?m)^RUN (.*\\\n)*.*\n`).ReplaceAll(data, nil)
			if bytes.Contains(data, []byte("apt-get")) || !bytes.Contains(data, []byte("COPY --from")) {
				t.Fatalf("the recipe without its commands:\n%s", data)
			}
			h.Size = int64(len(data))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bare.Bytes()
}

func TestBothBuildersReadTheRecipeAlike(t *testing.T) {
	files := skeleton(t)
	made := map[string]inspected{}
	for kit, cli := range map[string]string{"0": "docker", "1": buildKitCLI(t)} {
		tag := "dockerbox-test/" + freshName("kit"+kit)
		removeImages(t, func() []string { return []string{tag} })
		build := exec.CommandContext(t.Context(), cli, "build", "--tag", tag, "--file", image.Dockerfile, "--label", image.RecipeLabel+"=x",
			"--build-arg", "BASE_IMAGE="+image.BaseTag, "--build-arg", "VERSION=v1", "--build-arg", "REVISION=abc", "--build-arg", "CREATED=now", "-")
		build.Env = append(os.Environ(), "DOCKER_BUILDKIT="+kit)
		build.Stdin = bytes.NewReader(files)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("DOCKER_BUILDKIT=%s: %v\n%s", kit, err, out)
		}
		got := inspectImage(t, tag)
		got.ID, got.Size = "", 0
		made[kit] = got
	}
	if diff := cmp.Diff(made["0"], made["1"]); diff != "" {
		t.Errorf("(-classic +BuildKit):\n%s", diff)
	}
	if c := made["0"].Config; c.User != "pn" || len(c.Env) != 8 || c.Labels["org.opencontainers.image.base.name"] != image.BaseTag {
		t.Errorf("%+v", c)
	}
}
