package agentbin

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestLoad(t *testing.T) {
	built := fstest.MapFS{
		"bin/dockerbox-agent-linux-amd64": {Data: []byte("x86")},
		"bin/dockerbox-agent-linux-arm64": {Data: []byte("arm")},
	}
	clone := fstest.MapFS{"bin/README": {}}
	for _, test := range []struct {
		name, arch string
		files      fs.FS
		want       string
		notBuilt   bool
		message    string
	}{
		{name: "amd64", arch: "amd64", files: built, want: "x86"},
		{name: "arm64", arch: "arm64", files: built, want: "arm"},
		{name: "clean clone", arch: "amd64", files: clone, notBuilt: true, message: "make build"},
		{name: "foreign architecture", arch: "riscv64", files: built, message: "amd64, arm64"},
		{name: "a path instead of an architecture", arch: "../README", files: clone, message: "no agent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			data, err := load(test.files, test.arch)
			if string(data) != test.want {
				t.Errorf("data = %q, want %q", data, test.want)
			}
			if (err == nil) != (test.message == "") || err != nil && !strings.Contains(err.Error(), test.message) {
				t.Errorf("error = %v, want one that contains %q", err, test.message)
			}
			if errors.Is(err, ErrNotBuilt) != test.notBuilt {
				t.Errorf("errors.Is(%v, ErrNotBuilt) = %t, want %t", err, !test.notBuilt, test.notBuilt)
			}
		})
	}
}

func TestDigestIsOfTheBytes(t *testing.T) {
	files := fstest.MapFS{"bin/dockerbox-agent-linux-amd64": {Data: []byte("abc")}}
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, appendix B.1
	if got, err := digest(files, "amd64"); got != want || err != nil {
		t.Errorf("digest = %q, %v, want %q", got, err, want)
	}
	if got, err := digest(files, "arm64"); got != "" || !errors.Is(err, ErrNotBuilt) {
		t.Errorf("digest of a missing agent = %q, %v, want ErrNotBuilt", got, err)
	}
}

// Whatever this test binary was built with, each agent is either whole or reported: a
// half-written file or a wrong pattern must not pass for an agent.
func TestEmbeddedAgentsAreELFOrReported(t *testing.T) {
	for _, arch := range architectures {
		data, err := Binary(arch)
		switch {
		case err == nil && !strings.HasPrefix(string(data), "\x7fELF"):
			t.Errorf("%s: embedded agent is no ELF file", arch)
		case err != nil && !errors.Is(err, ErrNotBuilt):
			t.Errorf("%s: %v", arch, err)
		}
	}
}
