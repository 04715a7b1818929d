//go:build integration

package integration

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// cloneScript makes a child with the flags it is given, by the system call itself, and says whether it could. The child ends at once.
const cloneScript = `python3 - %d <<'END'
import ctypes, os, platform, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
pid = libc.syscall(number, int(sys.argv[1]) | signal.SIGCHLD, 0, 0, 0, 0)
if pid == 0:
    os._exit(0)
if pid > 0:
    os.waitpid(pid, 0)
print("made" if pid > 0 else os.strerror(ctypes.get_errno()))
END`

// Exactly what Chromium's sandbox needs, seen from inside: namespaces of users, processes and networks, and no other.
func TestSandboxesMayMakeTheNamespacesOfABrowser(t *testing.T) {
	env := desktopSandbox(t, nil)
	const made, refused = "made", "Operation not permitted"
	for _, test := range []struct {
		name  string
		flags int
		want  string
	}{
		{"a child", 0, made},
		{"users", unix.CLONE_NEWUSER, made},
		{"users, processes and a network", unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET, made},
		{"mounts", unix.CLONE_NEWUSER | unix.CLONE_NEWNS, refused},
		{"host names", unix.CLONE_NEWUSER | unix.CLONE_NEWUTS, refused},
		{"IPC", unix.CLONE_NEWUSER | unix.CLONE_NEWIPC, refused},
		{"cgroups", unix.CLONE_NEWUSER | unix.CLONE_NEWCGROUP, refused},
		{"a network of the sandbox's own", unix.CLONE_NEWNET, refused}, // the kernel's refusal: it takes a capability
	} {
		if got := sh(t, env, fmt.Sprintf(cloneScript, test.flags)); got != test.want+"\n" {
			t.Errorf("clone with %s: %q, want %q", test.name, got, test.want)
		}
	}
	for command, want := range map[string]int{
		"unshare -Ur true": 0, "unshare -Ur chroot / true": 0,
		"unshare -m true": 1, "unshare -Urn true": 1, "unshare -Urm true": 1, "unshare -Ur mount -t tmpfs x /mnt": 1,
		"unshare -n true": 1, "sudo -n unshare -m true": 1, "sudo -n mount -t tmpfs x /mnt": 32, "sudo -n mknod /tmp/m b 8 0": 1,
	} {
		r := run(t, env, contract.Request{Command: command + " 2>/dev/null"})
		if got := r.ExitCode; (got == 0) != (want == 0) {
			t.Errorf("%s ended with %d, want %d", command, got, want)
		}
	}
}
