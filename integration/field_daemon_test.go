//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// relay is a second endpoint: a socket that passes everything on to the real daemon and remembers what it was asked.
type relay struct {
	address  string
	listener net.Listener
	mu       sync.Mutex
	asked    []string // request lines, guarded by mu
	passing  []halves // both ends of all connections, guarded by mu
}

// newRelay listens until the test ends.
func newRelay(t *testing.T) *relay {
	t.Helper()
	network, address, ok := strings.Cut(docker(t, "context", "inspect", "-f", "{{.Endpoints.docker.Host}}"), "://")
	if !ok || network != "unix" && network != "tcp" {
		t.Fatalf("these tests reach their daemon by a unix socket or plain TCP, not by %s://%s", network, address)
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: "unix://" + socket, listener: listener}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		serving.Wait()
	})
	serving.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // the listener was closed
			}
			serving.Go(func() {
				to, err := net.Dial(network, address)
				if err != nil {
					t.Error(errors.Join(err, from.Close()))
					return
				}
				near, ok := from.(halves)
				far, yes := to.(halves)
				if !ok || !yes {
					t.Errorf("%T and %T cannot be closed by half", from, to)
				}
				r.pass(near, far)
			})
		}
	})
	return r
}

// halves is a connection whose two directions end apart.
type halves interface {
	net.Conn
	CloseWrite() error
}

// pass copies both ways until both sides have ended. Half-closes are passed on: exec streams need them.
func (r *relay) pass(from, to halves) {
	r.mu.Lock()
	r.passing = append(r.passing, from, to)
	r.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(to, io.TeeReader(from, r)) // how a connection ends is the business of its two ends
		_ = to.CloseWrite()
	})
	both.Go(func() {
		_, _ = io.Copy(from, to)
		_ = from.CloseWrite()
	})
	both.Wait()
	_, _ = from.Close(), to.Close()
}

// cut ends everything at once, as a daemon that stops does: nobody gets in any more either.
func (r *relay) cut() {
	_ = r.listener.Close() // nothing was written to it
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.passing {
		_ = c.Close() // so that its two ends see it
	}
}

var requestLine = regexp.MustCompile(`(?m)^(?:GET|HEAD|POST|PUT|DELETE) (/\S+) HTTP/1\.1\r$`)

// Write looks at what a client sends.
func (r *relay) Write(sent []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range requestLine.FindAllSubmatch(sent, -1) {
		r.asked = append(r.asked, string(m[1]))
	}
	return len(sent), nil
}

// took returns what was asked since the last call.
func (r *relay) took() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

// withEnv runs dockerbox with nothing of the caller's that chooses a daemon, but with these.
func withEnv(t *testing.T, variables []string, args ...string) said {
	t.Helper()
	c := exec.CommandContext(t.Context(), dockerboxBinary(t), args...)
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(dockerVariables, name)
	})
	c.Env = append(c.Env, variables...)
	return programme(t, c)
}

func TestFieldRow43AContextReachesItsDaemon(t *testing.T) {
	second := newRelay(t)
	config := t.TempDir()
	docker(t, "--config", config, "context", "create", "second", "--docker", "host="+second.address)
	p := newProvider(t)
	box := uniqueName(t, p)
	cfg := contract.Defaults()
	cfg.Name = box
	create(t, p, cfg)
	second.took()

	home := "DOCKER_CONFIG=" + config
	for name, way := range map[string]struct{ variables, flags []string }{
		"--context":      {[]string{home}, []string{"--context", "second"}},
		"DOCKER_CONTEXT": {[]string{home, "DOCKER_CONTEXT=second"}, nil},
		"--host":         {nil, []string{"--host", second.address}},
		"DOCKER_HOST":    {[]string{"DOCKER_HOST=" + second.address}, nil},
	} {
		t.Run(name, func(t *testing.T) { reaches(t, second, box, way.variables, way.flags) })
	}
	t.Run("the current context", func(t *testing.T) {
		docker(t, "--config", config, "context", "use", "second")
		reaches(t, second, box, []string{home}, nil)
	})
	t.Run("API", func(t *testing.T) {
		p, err := provider.New(provider.Endpoint{Host: second.address})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}()
		wants(t, create(t, p, cfg), "echo in", "in\n")
		if len(second.took()) == 0 {
			t.Error("another daemon was asked")
		}
	})
}

// reaches wants ps, run and the prefix to go through the relay.
func reaches(t *testing.T, second *relay, box string, variables, flags []string) {
	t.Helper()
	if got := withEnv(t, variables, append(flags, "ps")...); got.status != 0 || !strings.Contains(got.stdout, box+" ") || len(second.took()) == 0 {
		t.Errorf("ps: %+v", got)
	}
	if got := withEnv(t, variables, append(flags, "run", box, "echo in")...); got != (said{stdout: "in\n"}) || len(second.took()) == 0 {
		t.Errorf("run: %+v", got)
	}
	got := withEnv(t, variables, append(flags, "prefix", "--json", box)...)
	var answer struct{ Argv []string }
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || len(second.took()) == 0 {
		t.Fatalf("prefix: %+v %v", got, err)
	}
	c := exec.CommandContext(t.Context(), answer.Argv[0], append(answer.Argv[1:], "cat")...)
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	c.Stdin = bytes.NewReader([]byte("in"))
	if got := programme(t, c); got != (said{stdout: "in"}) || len(second.took()) == 0 {
		t.Errorf("%q: %+v", answer.Argv, got)
	}
}

// A client that is newer than its daemon must not ask for what that does not speak.
func TestFieldRow44EveryVerbSpeaksTheDaemonsAPI(t *testing.T) {
	r := newRelay(t)
	at := []string{"DOCKER_HOST=" + r.address}
	box := freshName("field")
	t.Cleanup(func() { removeSandboxes(t, box) })
	for _, verb := range [][]string{
		{"up", box}, {"up", "--recreate", "--memory", "256m", box}, {"ps"}, {"ps", "--json"}, {"run", box, "cd /usr"}, {"exec", box, "true"},
		{"prefix", box}, {"version"}, {"rm", "-f", box},
	} {
		if got := withEnv(t, at, verb...); got.status != 0 || got.stderr != "" {
			t.Errorf("%q: %+v", verb, got)
		}
	}
	daemon := apiVersion(t, docker(t, "version", "-f", "{{.Server.APIVersion}}"))
	versioned := 0
	for _, path := range r.took() {
		part := strings.Split(path, "/")[1]
		if !strings.HasPrefix(part, "v1.") {
			if path != "/_ping" {
				t.Errorf("%s asks for no version", path)
			}
			continue
		}
		versioned++
		if asked := apiVersion(t, part[1:]); asked > daemon {
			t.Errorf("%s asks a daemon for more than 1.%d", path, daemon)
		}
	}
	if versioned == 0 {
		t.Error("nothing went through the relay")
	}
}

// apiVersion is the minor number; the major one has been 1 since the API exists.
func apiVersion(t *testing.T, text string) int {
	t.Helper()
	minor, err := strconv.Atoi(strings.TrimPrefix(text, "1."))
	if err != nil {
		t.Fatal(err)
	}
	return minor
}
