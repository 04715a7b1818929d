//go:build linux

package agent

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What lives in the house of the tests.
const (
	xPID, bashPID, busPID, screenPID = 20, 21, 22, 23
)

// newHouse makes files in a root of their own. A name that ends in "/" is a directory.
func newHouse(t *testing.T, listening []string, made map[string]string) house {
	t.Helper()
	root := t.TempDir()
	for name, text := range made {
		full := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(full, 0o755))
			continue
		}
		must(t, os.WriteFile(full, []byte(text), 0o600))
	}
	table := "Num       RefCount Protocol Flags    Type St Inode Path\n0000000047fb77ff: 00000003 00000000 00000000 0001 03 7032274\n"
	for _, path := range listening {
		table += fmt.Sprintf("00000000e9298ddd: 00000002 00000000 00010000 0001 01 %5d %s\n", 12, path)
	}
	must(t, os.WriteFile(filepath.Join(root, "sockets"), []byte(table), 0o600))
	return house{
		root: root, temps: []string{"/tmp", "/var/tmp"}, sockets: filepath.Join(root, "sockets"),
		name: func(pid int) string {
			return map[int]string{xPID: "Xvnc", bashPID: "bash", busPID: "dbus-daemon", screenPID: "bash"}[pid]
		},
		line: func(pid int) string {
			return map[int]string{xPID: "Xvnc\x00:20\x00", bashPID: "bash\x00", screenPID: "bash\x00launcher.sh\x00"}[pid]
		},
	}
}

// left lists what is still there, without directories and the table of sockets.
func (h house) left(t *testing.T) []string {
	t.Helper()
	var names []string
	must(t, filepath.WalkDir(h.root, func(name string, d fs.DirEntry, err error) error {
		if name = strings.TrimPrefix(name, h.root); err == nil && !d.IsDir() && name != "/sockets" {
			names = append(names, name)
		}
		return err
	}))
	slices.Sort(names)
	return names
}

func TestHousekeepingRemovesWhatDoesNotLive(t *testing.T) {
	for name, tc := range map[string]struct {
		listening []string
		made      map[string]string
		want      []string
	}{
		"a lock of a dead process": {nil, map[string]string{"/tmp/.X20-lock": "        99\n", "/tmp/.X11-unix/X20": ""}, nil},
		"a lock of a process that is no display server": {
			nil, map[string]string{"/tmp/.X20-lock": fmt.Sprintf("%10d\n", bashPID), "/tmp/.X11-unix/X20": ""}, nil,
		},
		"locks with nonsense": {nil, map[string]string{"/tmp/.X1-lock": "", "/tmp/.X2-lock": "-1\n", "/tmp/.X3-lock": "x\n", "/tmp/.X4-lock": strings.Repeat("9", 5000)}, nil},
		"a server that has its lock and no socket yet": {
			nil, map[string]string{"/tmp/.X20-lock": fmt.Sprintf("%10d\n", xPID)}, []string{"/tmp/.X20-lock"},
		},
		"a living server": {
			[]string{"@/tmp/.X11-unix/X20"}, map[string]string{"/tmp/.X20-lock": fmt.Sprintf("%10d\n", xPID), "/tmp/.X11-unix/X20": ""},
			[]string{"/tmp/.X11-unix/X20", "/tmp/.X20-lock"},
		},
		"a server in sight by its socket alone": {
			[]string{"/tmp/.X11-unix/X20"}, map[string]string{"/tmp/.X20-lock": "99\n", "/tmp/.X11-unix/X20": ""},
			[]string{"/tmp/.X11-unix/X20", "/tmp/.X20-lock"},
		},
		"one of two": {
			[]string{"@/tmp/.X11-unix/X20"}, map[string]string{"/tmp/.X11-unix/X20": "", "/tmp/.X11-unix/X21": ""},
			[]string{"/tmp/.X11-unix/X20"},
		},
		"names that only resemble": {
			nil, map[string]string{"/tmp/.X-lock": "", "/tmp/.Xa-lock": "", "/tmp/X20-lock": "", "/tmp/.X20-locked": "", "/tmp/.X11-unix/Y20": "", "/tmp/.X20-lock/": ""},
			[]string{"/tmp/.X-lock", "/tmp/.X11-unix/Y20", "/tmp/.X20-locked", "/tmp/.Xa-lock", "/tmp/X20-lock"},
		},
		"a dead bus":        {nil, map[string]string{"/run/dbus/pid": "99\n"}, nil},
		"a bus's number":    {nil, map[string]string{"/run/dbus/pid": fmt.Sprintf("%d\n", bashPID)}, nil},
		"a living bus":      {nil, map[string]string{"/run/dbus/pid": fmt.Sprintf("%d\n", busPID)}, []string{"/run/dbus/pid"}},
		"nothing":           {nil, nil, nil},
		"no number for bus": {nil, map[string]string{"/run/dbus/other": ""}, []string{"/run/dbus/other"}},
		"a dead screen": {
			nil, map[string]string{
				"/tmp/hermes-bot-desktop/default/launcher.pid": fmt.Sprintf("%d\n", bashPID), "/tmp/hermes-bot-desktop/default/rfb.sock": "",
				"/tmp/hermes-bot-desktop/default/env": "", "/tmp/hermes-bot-desktop/default/launcher.log": "",
				"/var/tmp/hermes-bot-desktop/work/env": "",
			}, []string{"/tmp/hermes-bot-desktop/default/launcher.log"},
		},
		"a screen that is starting": {
			nil, map[string]string{"/tmp/hermes-bot-desktop/default/launcher.pid": fmt.Sprintf("%d\n", screenPID)},
			[]string{"/tmp/hermes-bot-desktop/default/launcher.pid"},
		},
		"a living screen": {
			[]string{"/var/tmp/hermes-bot-desktop/a b/rfb.sock"},
			map[string]string{"/var/tmp/hermes-bot-desktop/a b/rfb.sock": "", "/var/tmp/hermes-bot-desktop/a b/env": ""},
			[]string{"/var/tmp/hermes-bot-desktop/a b/env", "/var/tmp/hermes-bot-desktop/a b/rfb.sock"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, tc.listening, tc.made)
			for range 2 { // the second finds it in order
				if err := keepHouse(h); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, h.left(t)); diff != "" {
					t.Fatalf("left (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Whoever may write in a temporary directory must not lead root to files elsewhere.
func TestHousekeepingFollowsNoLink(t *testing.T) {
	h := newHouse(t, nil, map[string]string{"/else/X20": "", "/else/env": "", "/else/deep/env": "", "/else/pid": "20\n", "/tmp/": ""})
	elsewhere := filepath.Join(h.root, "else")
	must(t, os.Symlink(elsewhere, filepath.Join(h.root, "tmp/.X11-unix")))
	must(t, os.Mkdir(filepath.Join(h.root, "tmp/hermes-bot-desktop"), 0o700))
	must(t, os.Symlink(elsewhere, filepath.Join(h.root, "tmp/hermes-bot-desktop/default")))
	must(t, os.MkdirAll(filepath.Join(h.root, "var/tmp"), 0o700))
	must(t, os.Symlink(elsewhere, filepath.Join(h.root, "var/tmp/hermes-bot-desktop")))
	must(t, os.Symlink(filepath.Join(elsewhere, "pid"), filepath.Join(h.root, "tmp/.X7-lock")))
	if err := keepHouse(h); err != nil {
		t.Fatal(err)
	}
	want := []string{"/else/X20", "/else/deep/env", "/else/env", "/else/pid", "/tmp/.X11-unix", "/tmp/hermes-bot-desktop/default", "/var/tmp/hermes-bot-desktop"}
	if diff := cmp.Diff(want, h.left(t)); diff != "" {
		t.Fatalf("left (-want +got):\n%s", diff)
	}
}

func TestHousekeepingMakesTheSocketDirectory(t *testing.T) {
	h := newHouse(t, nil, map[string]string{"/tmp/": ""})
	must(t, keepHouse(h))
	st, err := os.Stat(filepath.Join(h.root, "tmp/.X11-unix"))
	if os.Geteuid() != 0 {
		if !os.IsNotExist(err) {
			t.Fatalf("an account that is not root made %v, %v", st, err)
		}
		return
	}
	must(t, err)
	if want := os.ModeDir | os.ModeSticky | 0o777; st.Mode() != want {
		t.Fatalf("mode %s, want %s", st.Mode(), want)
	}
	must(t, os.Chmod(filepath.Join(h.root, "tmp/.X11-unix"), 0o700))
	must(t, keepHouse(h))
	if st, err = os.Stat(filepath.Join(h.root, "tmp/.X11-unix")); err != nil || st.Mode().Perm() != 0o700 {
		t.Fatalf("one that was there was changed: %v, %v", st.Mode(), err)
	}
}

func TestHousekeepingTouchesNothingWhenItCannotSee(t *testing.T) {
	h := newHouse(t, nil, map[string]string{"/tmp/.X20-lock": "99\n"})
	h.sockets = filepath.Join(h.root, "none")
	if err := keepHouse(h); err == nil {
		t.Fatal("no word that the sockets are unknown")
	}
	if got := h.left(t); !slices.Equal(got, []string{"/tmp/.X20-lock"}) {
		t.Fatalf("left %q", got)
	}
}
