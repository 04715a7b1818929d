package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Texts of real daemons (20.10 to 28), and what people read instead.
func TestWhatDaemonsSay(t *testing.T) {
	const did = "creating container c"
	e := &Engine{}
	met := map[*refusal]bool{}
	for _, tc := range []struct {
		pull             bool
		says             string
		reason, hintPart string
	}{
		{false, `write /var/lib/docker/tmp/x: no space left on device`, "creating container c: the daemon's machine has no space left", "docker system df"},
		{false, `failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error loading seccomp filter into kernel: error patching filter: error creating scratch pipe: pipe2: too many open files: unknown`,
			"creating container c: the limit of open files is too low to start anything", "--ulimit nofile"},
		{false, `failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: open /proc/sys/net/ipv4/nope: no such file or directory: unknown`,
			"the kernel of the daemon's machine has no setting net/ipv4/nope", "--sysctl"},
		{false, `failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: write /proc/sys/net/ipv4/ip_forward: invalid argument: unknown`,
			"the kernel of the daemon's machine does not take the value for its setting net/ipv4/ip_forward", "--sysctl"},
		{false, `failed to initialize logging driver: invalid size: 'x'`, "the daemon cannot set the container's log up (invalid size: 'x')", "--log-opt"},
		{false, `failed to initialize logging driver: Unix syslog delivery error`, "the daemon cannot set the container's log up (Unix syslog delivery error)", "--log-driver"},
		{false, `Minimum memory limit can not be less than memory reservation limit, see usage`, "--memory-reservation is more than the memory limit", "--memory"},
		{false, `Cannot update container 985ba529c115: container is marked for removal and cannot be "update"`, "creating container c: somebody is removing it already", "docker ps -a"},
		{false, `failed to write 4194305: write /sys/fs/cgroup/pids/docker/37/pids.max: invalid argument`, "creating container c: the daemon's machine could not set the sandbox's limits", "--pids 0"},
		{false, `OCI runtime create failed: runc create failed: unable to start container process: error mounting "/x": read-only file system: unknown`, "creating container c: the daemon's disk is read-only", "docker info"},
		{false, `accept: too many open files`, "creating container c: the daemon has too many files open", "LimitNOFILE"},
		{false, `fork/exec /proc/self/exe: cannot allocate memory`, "creating container c: the daemon's machine has no memory left", "--memory"},
		{false, `Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available`, "the daemon's machine has 2 CPUs, fewer than were asked for", "at most 2"},
		{false, `Minimum memory limit allowed is 6MB`, "the daemon sets no memory limit below 6 MB", "6m"},
		{false, `Memory limit should be smaller than already set memoryswap limit, update the memoryswap at the same time`, "creating container c: the limits for memory and swap do not fit together", "memory-swap"},
		{false, `Cannot update container 97668f44e4a7: runc did not terminate successfully: exit status 1: unable to set memory limit to 67108864 (current usage: 109674496, peak usage: 111947776)
: unknown`, "more memory is in use in the sandbox, 105 MB, than the new limit allows", "--memory"},
		{false, `Cannot update container 97668f44e4a7: failed to write 67108864: write /sys/fs/cgroup/memory/docker/9766/memory.limit_in_bytes: device or resource busy: unknown`,
			"more memory is in use in the sandbox than the new limit allows", "--memory"},
		{false, `unknown or invalid runtime name: runsc`, "the daemon has no container runtime runsc", "docker info"},
		{false, `Unknown runtime specified kata`, "the daemon has no container runtime kata", "docker info"},
		{false, `could not select device driver "" with capabilities: [[gpu]]`, "the daemon's machine has no driver for the devices that --gpus asks for", "toolkit"},
		{false, `error gathering device information while adding custom device "/dev/nosuch": no such file or directory`, "there is no device /dev/nosuch on the daemon's machine", "/dev"},
		{false, `network mynet not found`, "the daemon has no network mynet", "docker network ls"},
		{false, `no such image: UPPER: invalid reference format: repository name must be lowercase`, "creating container c: the daemon takes that for no image reference", "debian:12"},
		{false, `invalid CapAdd: unknown capability: "CAP_NOPE"`, "there is no capability NOPE", "capabilities"},
		{false, `Requested CPUs are not available - requested 99, available: 0-1`, "the daemon's machine has the CPUs 0-1, and 99 was asked for", "--cpuset-cpus"},
		{false, `failed to initialize logging driver: error looking up logging plugin nosuch: plugin "nosuch" not found`, "the daemon has no log driver nosuch", "docker info"},
		{false, `Unable to find group nosuch: no matching entries in group file`, "creating container c: the image has no group nosuch", "number"},
		{false, `No such container: x`, "there is no container x", "docker ps -a"},
		{false, `Conflict. The container name "/dockerbox-a-1" is already in use by container "0123456789abcdef0123". You have to remove (or rename) that container to be able to reuse that name.`,
			"the container name dockerbox-a-1 is taken by container 0123456789ab", "docker rename"},
		{false, `removal of container 0123 is already in progress`, "creating container c: somebody is removing it already", "docker ps -a"},
		{false, `remove dockerbox-home-a: volume is in use - [0123456789abcdef0123456789abcdef]`, "the volume dockerbox-home-a is in use by container 0123456789ab", "docker rm"},
		{false, `conflict: unable to delete 0123 (cannot be forced) - image is being used by running container 0123456789ab`, "creating container c: container 0123456789ab uses it", "docker rm"},
		{false, `failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec /agent: exec format error: unknown`,
			"creating container c: the image is for another kind of processor than the daemon's machine", "Architecture"},
		{false, `OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:385: applying cgroup configuration for process caused: mountpoint for cgroup not found: unknown`,
			"creating container c: the daemon's machine could not set the sandbox's limits", "--memory 0"},
		{false, `authorization denied by plugin opa: not you`, "creating container c: the daemon's authorization plugin opa forbids it", "whoever runs"},
		{false, `failed to register layer: operation not permitted`, "creating container c: the daemon was not permitted to", "SecurityOptions"},
		{false, `OCI runtime create failed: runc create failed: exec: "/x": stat /x: no such file or directory: unknown`, "creating container c: no such file or directory (stat /x)", "its log"},
		{false, "something\n new", "creating container c: something new", "its log"},
		{false, `bad: "a: b`, `creating container c: bad: "a: b`, "its log"},

		{true, `no matching manifest for linux/amd64 in the manifest list entries`, "there is no version of it for linux/amd64", "linux/amd64"},
		{true, `toomanyrequests: You have reached your pull rate limit.`, "its registry takes no more pulls from here for now", "docker login"},
		{true, `pull access denied for nosuch/nosuch, repository does not exist or may require 'docker login': denied: requested access to the resource is denied`,
			"its registry has no such image, or shows it to nobody who is not logged in", "docker login"},
		{true, `manifest for debian:nosuch not found: manifest unknown: manifest unknown`, "its registry has no such image or tag", "check the name"},
		{true, `Head "https://r.example/v2/a/manifests/latest": unauthorized: authentication required`, "its registry wants a login", "docker login"},
		{true, `Get "https://registry.example.com/v2/": dial tcp: lookup registry.example.com on 10.0.0.1:53: no such host`, "the name registry.example.com cannot be resolved by the daemon's machine", "DNS"},
		{true, `Get "https://r.example/v2/": dial tcp: lookup r.example: Temporary failure in name resolution`, "the name r.example cannot be resolved by the daemon's machine", "DNS"},
		{true, `Get "https://r.example/v2/": x509: certificate signed by unknown authority`, "the daemon does not trust its registry's certificate, or the registry has none", "certs.d"},
		{true, `Get "https://r.example:5000/v2/": http: server gave HTTP response to HTTPS client`, "the daemon does not trust its registry's certificate, or the registry has none", "insecure-registries"},
		{true, `Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused`, "the registry 127.0.0.1:1 does not answer the daemon", "firewall"},
		{true, `Get "https://r.example/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)`, "the registry r.example does not answer the daemon", "firewall"},
		{true, `Get "https://r.example/v2/": net/http: TLS handshake timeout`, "the registry r.example does not answer the daemon", "firewall"},
		{true, `Get "https://r.example/v2/": proxyconnect tcp: dial tcp 10.0.0.9:3128: connect: connection refused`, "the daemon's proxy does not answer", "proxy of the docker service"},
		{true, `unexpected EOF`, "the connection to its registry was cut", "try again"},
		{true, `EOF`, "the connection to its registry was cut", "try again"},
		{true, `download failed after attempts=6: EOF`, "the connection to its registry was cut", "try again"},
		{true, `error pulling image configuration: read tcp 10.0.0.1:3222->10.0.0.2:443: read: connection reset by peer`, "the connection to its registry was cut", "try again"},
		{true, `filesystem layer verification failed for digest sha256:1234`, "its registry sent something else than was asked for", "proxy"},
		{true, `unsupported manifest media type and digest algorithm: application/vnd.cncf.helm.config.v1+json`, "what its registry has of that name is no image, or not a whole one", "another image"},
		{true, `failed to register layer: write /usr/bin/x: no space left on device`, "the daemon's machine has no space left", "docker system df"},
	} {
		t.Run(tc.says, func(t *testing.T) {
			err := e.explain(did, errors.New(tc.says))
			want := tc.reason
			tables := [][]refusal{refusals}
			if tc.pull {
				tables = [][]refusal{registry, refusals}
				err = e.explainPull("img", errors.New(tc.says))
				want = "the image img is not on this daemon and cannot be pulled: " + tc.reason
			}
			b := asBackend(t, err)
			if b.Reason != want || !strings.Contains(b.Hint, tc.hintPart) {
				t.Errorf("reason %q\n want  %q\n hint %q, want it to have %q", b.Reason, want, b.Hint, tc.hintPart)
			}
			if first := firstOf(tables, tc.says); first != nil {
				met[first] = true
			}
			if strings.ContainsAny(b.Reason+b.Hint, "{}$\n") {
				t.Errorf("left over from the table: %q %q", b.Reason, b.Hint)
			}
		})
	}
	for _, table := range [][]refusal{refusals, registry} {
		for i := range table {
			if r := &table[i]; !met[r] {
				t.Errorf("no text meets the row %s: it is not needed, or hidden by one before", r.says)
			}
		}
	}
}

// firstOf is the row that counts for text.
func firstOf(tables [][]refusal, text string) *refusal {
	for _, table := range tables {
		for i := range table {
			if table[i].says.MatchString(text) {
				return &table[i]
			}
		}
	}
	return nil
}

func asBackend(t *testing.T, err error) *contract.BackendError {
	t.Helper()
	var b *contract.BackendError
	if !errors.As(err, &b) {
		t.Fatalf("%T %v, want a BackendError", err, err)
	}
	return b
}

// The daemon answers 500 for an object that is going, where it means a conflict: whoever met it looks again.
func TestWhatIsBeingRemovedIsAConflict(t *testing.T) {
	err := (&Engine{}).explain("changing the limits of container c", errors.New(`Cannot update container 985b: container is marked for removal and cannot be "update"`))
	if !errors.Is(err, ErrConflict) {
		t.Errorf("%v is no conflict", err)
	}
}
