package engine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/cli/cli/config"
	"github.com/docker/docker/client"
	"github.com/opencontainers/go-digest"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// dockerHome is a docker configuration directory with a context "box" at tcp://box:2375.
func dockerHome(t *testing.T, current string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", `{"currentContext": "`+current+`"}`)
	write("contexts/meta/"+digest.FromString("box").Encoded()+"/meta.json",
		`{"Name":"box","Metadata":{},"Endpoints":{"docker":{"Host":"tcp://box:2375","SkipTLSVerify":false}}}`)
	before := config.Dir()
	config.SetDir(dir)
	t.Cleanup(func() { config.SetDir(before) })
	return dir
}

func TestEndpointsResolveAsInTheDockerCLI(t *testing.T) {
	for name, tc := range map[string]struct {
		ep      Endpoint
		env     map[string]string
		current string
		host    string
		args    []string // DIR stands for the configuration directory
		fails   string
	}{
		"nothing set":                {host: client.DefaultDockerHost},
		"DOCKER_HOST":                {env: map[string]string{"DOCKER_HOST": "unix:///x.sock"}, host: "unix:///x.sock", args: []string{"--host", "unix:///x.sock"}},
		"DOCKER_HOST of the default": {env: map[string]string{"DOCKER_HOST": client.DefaultDockerHost}, host: client.DefaultDockerHost},
		"DOCKER_HOST beats DOCKER_CONTEXT and the current context": {
			env: map[string]string{"DOCKER_HOST": "tcp://h:1", "DOCKER_CONTEXT": "box"}, current: "box", host: "tcp://h:1", args: []string{"--host", "tcp://h:1"},
		},
		"DOCKER_CONTEXT":             {env: map[string]string{"DOCKER_CONTEXT": "box"}, host: "tcp://box:2375", args: []string{"--config", "DIR", "--context", "box"}},
		"current context":            {current: "box", host: "tcp://box:2375", args: []string{"--config", "DIR", "--context", "box"}},
		"DOCKER_CONTEXT of default":  {env: map[string]string{"DOCKER_CONTEXT": "default"}, current: "box", host: client.DefaultDockerHost},
		"--host beats everything":    {ep: Endpoint{Host: "unix:///y.sock"}, env: map[string]string{"DOCKER_HOST": "tcp://h:1"}, current: "box", host: "unix:///y.sock", args: []string{"--host", "unix:///y.sock"}},
		"--context beats everything": {ep: Endpoint{Context: "box"}, env: map[string]string{"DOCKER_HOST": "tcp://h:1"}, host: "tcp://box:2375", args: []string{"--config", "DIR", "--context", "box"}},
		"both flags":                 {ep: Endpoint{Host: "unix:///y.sock", Context: "box"}, fails: "both a host and a context"},
		"missing context":            {ep: Endpoint{Context: "nosuch"}, fails: `there is no docker context "nosuch"`},
		"no address":                 {ep: Endpoint{Host: "what is this"}, fails: "is not an address of a docker daemon"},
		"certificates missing":       {env: map[string]string{"DOCKER_HOST": "tcp://h:1", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/nonexistent"}, fails: "no ca.pem, no cert.pem, no key.pem in /nonexistent"},
		"another scheme":             {ep: Endpoint{Host: "ftp://h"}, fails: `"ftp://h" is not an address of a docker daemon`},
		"configuration broken":       {current: `"{`, fails: "config.json cannot be read, and it may name the daemon"},
		"nobody asks a broken one":   {current: `"{`, ep: Endpoint{Host: "unix:///y.sock"}, host: "unix:///y.sock", args: []string{"--host", "unix:///y.sock"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := dockerHome(t, tc.current)
			for _, v := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_API_VERSION"} {
				t.Setenv(v, tc.env[v])
			}
			e, err := Open(tc.ep)
			if tc.fails != "" {
				var b *contract.BackendError
				if !errors.As(err, &b) || !strings.Contains(b.Reason, tc.fails) || b.Hint == "" {
					t.Fatalf("got %v, want %q", err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Close() }() // nothing was opened
			want := slices.Clone(tc.args)
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "DIR", dir)
			}
			if e.Address() != tc.host || !slices.Equal(e.CLIArgs(), want) {
				t.Fatalf("%s %q, want %s %q", e.Address(), e.CLIArgs(), tc.host, want)
			}
		})
	}
}
