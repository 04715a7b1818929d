//go:build integration

package integration

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// image loads an image of one layer with these files, for that kind of processor. {image} stands for its name.
func (f *failure) image(t *testing.T, arch string, files map[string]string) []string {
	t.Helper()
	tag := f.box + "-image:latest"
	layer := tarball(t, files)
	sum := sha256.Sum256(layer)
	configuration, err := json.Marshal(map[string]any{
		"architecture": arch, "os": "linux", "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{tag}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	load := exec.CommandContext(t.Context(), "docker", "load", "-q")
	load.Stdin = bytes.NewReader(tarball(t, map[string]string{"manifest.json": string(manifest), "config.json": string(configuration), "layer.tar": string(layer)}))
	if got := programme(t, load); got.status != 0 {
		t.Fatalf("load: %+v", got)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "rmi", tag).CombinedOutput(); err != nil {
			t.Errorf("remove the image: %v\n%s", err, out)
		}
	})
	return []string{"{image}", tag}
}

func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// having makes the row's image of these files for the processor of the daemon's machine, which is the tests'.
func having(files map[string]string) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string { t.Helper(); return f.image(t, runtime.GOARCH, files) }
}

// rootAlone is an image's /etc/passwd with one account.
var rootAlone = map[string]string{"etc/passwd": "root:x:0:0::/root:/bin/sh\n"}

// registry serves one that answers everything about an image with status and body. {registry} stands for its address.
func registry(status int, kind, body string) func(*testing.T, *failure) []string {
	return func(t *testing.T, _ *failure) []string {
		t.Helper()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
			if r.URL.Path == "/v2/" {
				return
			}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) // the daemon may have left
		}))
		t.Cleanup(server.Close)
		return []string{"{registry}", strings.TrimPrefix(server.URL, "http://")}
	}
}

// registryError is how registries say what is wrong.
func registryError(code string) string { return `{"errors":[{"code":"` + code + `","message":"no"}]}` }

const (
	otherImage = "(--image, in Hermes terminal.backends.dockerbox.image)"
	cannotPull = "the image {registry}/a/b:c is not on this daemon and cannot be pulled: "
	checkName  = "check the name and the tag; for a private image run docker login and docker pull first"
	network    = "see whether the daemon's machine reaches it (proxy, DNS, firewall), or use an image that docker images lists"
)

func imageRows() []badInput {
	const js = "application/json"
	pulling := []string{"up", "--image", "{registry}/a/b:c", "{box}"}
	return []badInput{
		{
			name: "an image that is built", args: []string{"up", "--image", "dockerbox/nosuch", "{box}"},
			status: 125, err: "the image dockerbox/nosuch is not on this daemon", hint: "build it first, or choose another image " + otherImage,
		},
		{
			name: "a registry that is away", args: []string{"up", "--image", "127.0.0.1:1/a/b:c", "{box}"},
			status: 125, err: "the image 127.0.0.1:1/a/b:c is not on this daemon and cannot be pulled: the registry 127.0.0.1:1 does not answer the daemon", hint: network,
		},
		{
			name: "an image that its registry lacks", args: pulling, prepare: registry(404, js, registryError("MANIFEST_UNKNOWN")),
			status: 125, err: cannotPull + "its registry has no such image or tag", hint: checkName,
		},
		{
			name: "a registry that wants a login", args: pulling, prepare: registry(401, js, registryError("UNAUTHORIZED")),
			status: 125, err: cannotPull + "its registry wants a login", hint: "run docker login and docker pull first",
		},
		{
			name: "a registry that denies", args: pulling, prepare: registry(403, js, registryError("DENIED")),
			status: 125, err: cannotPull + "its registry has no such image, or shows it to nobody who is not logged in", hint: checkName,
		},
		{
			name: "a registry that has had enough", args: pulling, prepare: registry(429, js, registryError("TOOMANYREQUESTS")),
			status: 125, err: cannotPull + "its registry takes no more pulls from here for now", hint: "wait an hour, or run docker login, which raises the limit",
		},
		{
			name: "an image for other machines alone", args: pulling, prepare: registry(200, "application/vnd.docker.distribution.manifest.list.v2+json",
				`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.list.v2+json","manifests":[{"mediaType":"application/vnd.docker.distribution.manifest.v2+json","size":7,`+
					`"digest":"sha256:`+strings.Repeat("a", 64)+`","platform":{"architecture":"s390x","os":"linux"}}]}`),
			notes: "dockerbox: pulling {registry}/a/b:c\n", status: 125, err: cannotPull + "there is no version of it for linux/" + runtime.GOARCH, hint: "choose an image that is built for linux/" + runtime.GOARCH,
		},
		{
			name: "an image of another architecture", args: []string{"up", "--image", "{image}", "{box}"},
			prepare: func(t *testing.T, f *failure) []string {
				t.Helper()
				return f.image(t, other[runtime.GOARCH], rootAlone)
			},
			status: 125, err: "the image {image} is for " + other[runtime.GOARCH] + ", and the daemon's machine is " + runtime.GOARCH,
			hint: "choose an image for " + runtime.GOARCH + " " + otherImage + ", or install emulation there (qemu-user-static)",
		},
		{
			name: "an image of an architecture without an agent", args: []string{"up", "--image", "{image}", "{box}"},
			prepare: func(t *testing.T, f *failure) []string { t.Helper(); return f.image(t, "s390x", rootAlone) },
			status:  125, err: "the image {image} is for s390x, and dockerbox has agents for amd64 and arm64 alone", hint: "choose an image for one of these " + otherImage,
		},
		{
			name: "an image without accounts", args: []string{"up", "--image", "{image}", "{box}"}, prepare: having(map[string]string{"hello": "world"}),
			status: 125, err: `the image {image} has no /etc/passwd, so nobody in it is called "root"`, hint: "name the account by its number, such as --user 0",
		},
		{
			name: "an image without bash", args: []string{"run", "{box}", "echo hi"},
			prepare: func(t *testing.T, f *failure) []string {
				t.Helper()
				f.places = append(f.places, having(rootAlone)(t, f)...)
				f.sandbox(t, "--image", "{image}")
				return nil
			},
			status: 125, err: "the agent in the sandbox could not start the command: there is no bash in the sandbox (looked for in /bin, /usr/bin, /usr/local/bin and PATH)",
			hint: "shell commands need bash in the image, no mount that hides it, and room under --memory and --pids; dockerbox up --recreate changes these and keeps the home",
		},
		{
			name: "a user that the image lacks", args: []string{"up", "--user", "nosuch", "{box}"},
			status: 125, err: `the image dockerbox/desktop:latest has no user "nosuch"`, hint: "choose one of its users (--user, in Hermes terminal.backends.dockerbox.user), or a number up to 2147483647",
		},
		{
			name: "a group that the image lacks", args: []string{"up", "--user", "pn:nosuch", "{box}"},
			status: 125, err: `the image dockerbox/desktop:latest has no group "nosuch"`, hint: "put one of its groups behind the colon, or a number up to 2147483647",
		},
		{
			name: "a host path that is missing", args: []string{"up", "-v", "{dir}/nothing:/x", "{box}"},
			status: 125, err: "the host path {dir}/nothing, to be mounted at /x, does not exist on the daemon's machine", hint: "make it, or correct -v (in Hermes terminal.docker_volumes)",
		},
		{
			name: "more processors than there are", args: []string{"up", "--cpus", "100000", "{box}"},
			status: 125, err: "the daemon's machine has {cpus} CPUs, fewer than were asked for", hint: "choose at most {cpus} (--cpus, in Hermes terminal.container_cpu), or 0 for no limit",
		},
	}
}

// other is the architecture with an agent that is not the machine's.
var other = map[string]string{"amd64": "arm64", "arm64": "amd64"}

func TestFailuresOfImages(t *testing.T) { runFailures(t, imageRows()) }
