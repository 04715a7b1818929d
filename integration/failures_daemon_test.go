//go:build integration

package integration

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// socket serves a daemon of the row's own and returns what {socket} stands for.
func (f *failure) socket(t *testing.T, daemon http.Handler) []string {
	t.Helper()
	path := filepath.Join(f.dir, "d.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: daemon}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close() // what it interrupts is the row's own
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return []string{"{socket}", path}
}

// raw serves a socket that is no HTTP server: talk has each connection.
func raw(talk func(net.Conn)) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string {
		t.Helper()
		path := filepath.Join(f.dir, "d.sock")
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := listener.Accept()
				if err != nil {
					return // it was closed
				}
				go func() { talk(c); _ = c.Close() }()
			}
		}()
		t.Cleanup(func() { _ = listener.Close(); <-done }) // it was open until now
		return []string{"{socket}", path}
	}
}

// answering is a daemon that says the same to everything.
func answering(header http.Header, status int, body string) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string {
		t.Helper()
		return f.socket(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for name := range header {
				w.Header().Set(name, header.Get(name))
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body) // the client may have left
		}))
	}
}

// fault is what a daemon between the row and the real one does to one kind of call.
type fault struct {
	method string
	path   *regexp.Regexp // of the path and the query
	// status and message are the answer; with status 0 the connection is cut. passOn does so only after the real daemon did its part.
	status  int
	message string
	passOn  bool
}

// between puts a daemon with a fault in front of the real one.
func between(b fault) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string {
		t.Helper()
		real := &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "daemon"}) },
			Transport:     theDaemon(t).http.Transport,
			FlushInterval: -1,
		}
		return f.socket(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != b.method || !b.path.MatchString(r.URL.RequestURI()) {
				real.ServeHTTP(w, r)
				return
			}
			if b.passOn {
				real.ServeHTTP(&nowhere{http.Header{}}, r)
			}
			if b.status == 0 {
				panic(http.ErrAbortHandler) // which cuts the connection
			}
			answer, err := json.Marshal(map[string]string{"message": b.message})
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(b.status)
			_, _ = w.Write(answer) // the client may have left
		}))
	}
}

// nowhere takes an answer that nobody gets.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header       { return n.header }
func (*nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (*nowhere) WriteHeader(int)             {}
func atSocket(environ ...string) []string    { return append(environ, "DOCKER_HOST=unix://{socket}") }
func path(pattern string) *regexp.Regexp     { return regexp.MustCompile(pattern) }
func config(name, text string) func(*testing.T, *failure) []string {
	return func(t *testing.T, f *failure) []string {
		t.Helper()
		f.write(t, filepath.Join("config", name), text, 0o600)
		return nil
	}
}

const (
	startIt   = "start it (systemctl start docker, or make docker in the repository), or point DOCKER_HOST or --context at the right one"
	address   = "an address (DOCKER_HOST, --host) looks like unix:///var/run/docker.sock, tcp://host:2376 or ssh://user@host"
	stranger  = "correct the address (DOCKER_HOST, --host or --context); for a daemon with TLS set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH"
	contexts  = "docker context ls lists the contexts there are; choose one with --context or DOCKER_CONTEXT"
	cutOff    = "see whether docker ps answers and what the daemon's log says, then try again"
	makeSpace = "make room there: docker system df shows what Docker uses, docker image prune removes images without a name"
)

func daemonRows() []badInput {
	const noHost = "DOCKER_HOST="
	return []badInput{
		// None there.
		{
			name: "no socket", args: []string{"up", "{box}"}, environ: []string{"DOCKER_HOST=unix://{dir}/none.sock"},
			status: 125, err: "the docker daemon at unix://{dir}/none.sock does not answer", hint: startIt,
		},
		{
			name: "no socket for a prefix", args: []string{"--host", "unix://{dir}/none.sock", "prefix", "{box}"},
			status: 125, err: "the docker daemon at unix://{dir}/none.sock does not answer", hint: startIt,
		},
		{
			name: "a socket that refuses", args: []string{"ps"}, environ: atSocket(), prepare: func(t *testing.T, f *failure) []string {
				t.Helper()
				places := raw(func(net.Conn) {})(t, f)
				// A socket whose listener is gone stays in the file system, as after a crash.
				stale := filepath.Join(f.dir, "stale.sock")
				l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
				if err != nil {
					t.Fatal(err)
				}
				l.SetUnlinkOnClose(false)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				places[1] = stale
				return places
			},
			status: 125, err: "the docker daemon at unix://{socket} does not answer", hint: startIt,
		},
		{
			name: "a socket that is a file", args: []string{"ps"}, environ: []string{"DOCKER_HOST=unix://{dir}/plain"},
			prepare: func(t *testing.T, f *failure) []string { f.write(t, "plain", "", 0o600); return nil },
			status:  125, err: "the docker daemon at unix://{dir}/plain does not answer", hint: startIt,
		},
		{
			name: "a daemon that says nothing", args: []string{"run", "{box}", "true"}, environ: atSocket(),
			prepare: raw(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), // until the client has had enough
			status:  125, err: "the docker daemon at unix://{socket} has not answered within 10s",
			hint: "see whether docker ps answers; restart the daemon if it does not, or correct its address (DOCKER_HOST, --host or --context)",
		},
		{
			name: "a daemon that hangs up", args: []string{"ps"}, environ: atSocket(), prepare: raw(func(net.Conn) {}),
			status: 125, err: "the docker daemon at unix://{socket} went away: asking the daemon for its version was cut off", hint: cutOff,
		},
		{
			name: "something else on the socket", args: []string{"ps"}, environ: atSocket(),
			prepare: raw(func(c net.Conn) {
				_, _ = c.Read(make([]byte, 4096)) // the whole request, or what came would not be looked at
				_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n\r\n")
			}),
			status: 125, err: "what answers at unix://{socket} is not a docker daemon that speaks plain HTTP there", hint: stranger,
		},
		{
			name: "another HTTP server on the socket", args: []string{"ps"}, environ: atSocket(), prepare: answering(nil, 404, "<html>"),
			status: 125, err: "what answers at unix://{socket} is not a docker daemon that speaks plain HTTP there", hint: stranger,
		},
		{
			name: "an old daemon", args: []string{"up", "{box}"}, environ: atSocket(), prepare: answering(http.Header{"Api-Version": {"1.24"}}, 200, "OK"),
			status: 125, err: "the docker daemon at unix://{socket} speaks API 1.24, older than 1.41", hint: "upgrade the daemon to Docker 20.10 or later",
		},
		{
			name: "a socket without permission", args: []string{"up", "{box}"}, environ: atSocket(), prepare: noPermission,
			status: 125, err: "no permission to talk to the docker daemon at unix://{socket}", hint: "add your user to the docker group and log in again, or run as root",
		},

		// Wrong addresses.
		{
			name: "an address without a scheme", args: []string{"ps"}, environ: []string{"DOCKER_HOST=nonsense"},
			status: 125, err: `"nonsense" is not an address of a docker daemon`, hint: address,
		},
		{
			name: "an address of another scheme", args: []string{"--host", "ftp://h", "ps"},
			status: 125, err: `"ftp://h" is not an address of a docker daemon`, hint: address,
		},
		{
			name: "an address without a path", args: []string{"ps"}, environ: []string{"DOCKER_HOST=unix://"},
			status: 125, err: `"unix://" is not an address of a docker daemon`, hint: address,
		},
		{
			name: "a port nobody listens on", args: []string{"ps"}, environ: []string{"DOCKER_HOST=tcp://127.0.0.1:1"},
			status: 125, err: "the docker daemon at tcp://127.0.0.1:1 does not answer",
			hint: "see whether docker --host tcp://127.0.0.1:1 version works, or point DOCKER_HOST or --context at the right one",
		},
		{
			name: "a machine that does not exist", args: []string{"ps"}, environ: []string{"DOCKER_HOST=tcp://no-such-machine.invalid:2375"},
			status: 125, err: "there is no machine of the name no-such-machine.invalid, where the docker daemon should be",
			hint: "see whether docker --host tcp://no-such-machine.invalid:2375 version works, or point DOCKER_HOST or --context at the right one",
		},
		{
			name: "ssh to nowhere", args: []string{"ps"}, environ: []string{"DOCKER_HOST=ssh://me@nowhere:2222", "PATH={dir}/bin:/usr/bin:/bin"},
			prepare: func(t *testing.T, f *failure) []string {
				f.write(t, "bin/ssh", "#!/bin/sh\nread -r request\necho 'ssh: connect to host nowhere port 2222: Connection refused' >&2\nexit 255\n", 0o755)
				return nil
			},
			status: 125, err: `the docker daemon at ssh://me@nowhere:2222 cannot be reached; ssh says "ssh: connect to host nowhere port 2222: Connection refused"`,
			hint: "see whether ssh -p 2222 me@nowhere docker version works, or point DOCKER_HOST or --context at the right one",
		},
		{
			name: "ssh that says nothing", args: []string{"ps"}, environ: []string{"DOCKER_HOST=ssh://nowhere", "PATH={dir}/bin:/usr/bin:/bin"},
			prepare: func(t *testing.T, f *failure) []string {
				f.write(t, "bin/ssh", "#!/bin/sh\nexit 255\n", 0o755)
				return nil
			},
			status: 125, err: "the docker daemon at ssh://nowhere cannot be reached: ssh ended at once",
			hint: "see whether ssh nowhere docker version works, or point DOCKER_HOST or --context at the right one",
		},
		{
			name: "no ssh", args: []string{"ps"}, environ: []string{"DOCKER_HOST=ssh://nowhere", "PATH={dir}/tmp"},
			status: 125, err: "the docker daemon at ssh://nowhere needs the program ssh, which is not on PATH",
			hint: "install an ssh client, or point DOCKER_HOST or --context at the right daemon",
		},

		// Contexts and configuration.
		{
			name: "a context that does not exist", args: []string{"--context", "nosuch", "ps"}, environ: []string{noHost},
			status: 125, err: `there is no docker context "nosuch"`, hint: contexts,
		},
		{
			name: "a context of the environment that does not exist", args: []string{"up", "{box}"}, environ: []string{noHost, "DOCKER_CONTEXT=nosuch"},
			status: 125, err: `there is no docker context "nosuch"`, hint: contexts,
		},
		{
			name: "a current context that does not exist", args: []string{"ps"}, environ: []string{noHost, "DOCKER_CONTEXT=", "DOCKER_CONFIG={dir}/config"},
			prepare: config("config.json", `{"currentContext":"nosuch"}`),
			status:  125, err: `there is no docker context "nosuch"`, hint: contexts,
		},
		{
			name: "a configuration that is broken", args: []string{"ps"}, environ: []string{noHost, "DOCKER_CONTEXT=", "DOCKER_CONFIG={dir}/config"},
			prepare: config("config.json", `{broken`),
			status:  125, err: "docker's configuration {dir}/config/config.json cannot be read, and it may name the daemon: invalid character 'b' looking for beginning of object key string",
			hint: "correct or remove that file, or choose the daemon with --host, --context or DOCKER_HOST",
		},
		{
			name: "certificates missing", args: []string{"ps"}, environ: []string{"DOCKER_HOST=tcp://127.0.0.1:1", "DOCKER_TLS_VERIFY=1", "DOCKER_CERT_PATH={dir}/config"},
			prepare: config("ca.pem", ""),
			status:  125, err: "DOCKER_TLS_VERIFY is set, but there is no cert.pem, no key.pem in {dir}/config",
			hint: "put ca.pem, cert.pem and key.pem of that daemon there, name another directory in DOCKER_CERT_PATH, or unset DOCKER_TLS_VERIFY",
		},

		// A bad day.
		{
			name: "cut off while the sandbox is made", args: []string{"up", "{box}"}, environ: atSocket(),
			prepare: between(fault{method: "POST", path: path(`/containers/create\?name=dockerbox-t-`)}),
			status:  125, err: "the docker daemon at unix://{socket} went away: creating container {container} was cut off", hint: cutOff,
		},
		{
			name: "cut off after the sandbox is made", args: []string{"up", "{box}"}, environ: atSocket(),
			prepare: between(fault{method: "POST", path: path(`/containers/create\?name=dockerbox-t-`), passOn: true}),
			status:  125, err: "the docker daemon at unix://{socket} went away: creating container {container} was cut off", hint: cutOff,
		},
		{
			name: "cut off after the helper is made", args: []string{"up", "{box}"}, environ: atSocket(),
			prepare: between(fault{method: "POST", path: path(`/containers/create\?name=dockerbox-helper-`), passOn: true}),
			status:  125, err: "the docker daemon at unix://{socket} went away: creating container dockerbox-helper-{id} was cut off", hint: cutOff,
		},
		{
			name: "cut off while the image is looked into", args: []string{"up", "{box}"}, environ: atSocket(),
			prepare: between(fault{method: "GET", path: path(`/archive\?path=%2Fetc%2Fgroup`)}),
			status:  125, err: "the docker daemon at unix://{socket} went away: reading /etc/group of container {id} was cut off", hint: cutOff,
		},
		{
			name: "cut off after the sandbox is started", args: []string{"up", "{box}"}, environ: atSocket(),
			prepare: between(fault{method: "POST", path: path(`/containers/[0-9a-f]{64}/start`), passOn: true}),
			status:  125, err: "the docker daemon at unix://{socket} went away: starting container {id} was cut off", hint: cutOff,
		},
		{
			name: "cut off before the agent is attached to", args: []string{"up", "{box}"}, environ: atSocket(),
			prepare: between(fault{method: "POST", path: path(`/exec/[0-9a-f]+/start`)}),
			status:  125, err: "the docker daemon at unix://{socket} went away: starting /.dockerbox/agent in container {id} was cut off", hint: cutOff,
		},
		{
			name: "no space for the container", args: []string{"up", "{box}"}, environ: atSocket(),
			prepare: between(fault{method: "POST", path: path(`/containers/create\?name=dockerbox-t-`), status: 500, message: "mkdir /var/lib/docker/overlay2/0f: no space left on device"}),
			status:  125, err: "creating container {container}: the daemon's machine has no space left", hint: makeSpace,
		},
		{
			name: "no space for the home", args: []string{"up", "{box}"}, environ: atSocket(),
			prepare: between(fault{method: "POST", path: path(`/volumes/create`), status: 500, message: "mkdir /var/lib/docker/volumes/x: no space left on device"}),
			status:  125, err: "creating volume {volume}: the daemon's machine has no space left", hint: makeSpace,
		},
		{
			name: "limits that the machine cannot set", args: []string{"up", "{box}"}, environ: atSocket(),
			prepare: between(fault{method: "POST", path: path(`/start`), status: 500, message: "OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:385: applying cgroup configuration for process caused: mountpoint for cgroup not found: unknown"}),
			status:  125, err: "starting container {id}: the daemon's machine could not set the sandbox's limits",
			hint: "docker info tells at its end which limits that machine cannot set; --memory 0, --cpus 0 and --pids 0 ask for none",
		},
		{
			name: "a daemon with a fault nobody knows", args: []string{"ps"}, environ: atSocket(),
			prepare: between(fault{method: "GET", path: path(`/containers/json`), status: 500, message: "layer does not exist"}),
			status:  125, err: "listing containers: layer does not exist",
			hint: "the daemon refused it; its log has more (journalctl -u docker, or the log file setup-docker named)",
		},
	}
}

// noPermission makes a socket that a user without privileges may not connect to, and makes the row that user's.
func noPermission(t *testing.T, f *failure) []string {
	t.Helper()
	needRoot(t)
	places := f.socket(t, http.NotFoundHandler())
	if err := os.Chmod(places[1], 0o660); err != nil {
		t.Fatal(err)
	}
	f.edit = f.asNobody(t)
	return places
}

func TestFailuresOfTheDaemon(t *testing.T) {
	t.Parallel()
	// A daemon that has never had a sandbox makes one more volume, the agent's, which is to stay.
	first := freshName("fail")
	if got := cli(t, "up", first); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	removeSandboxes(t, first)
	runFailures(t, daemonRows())
}
