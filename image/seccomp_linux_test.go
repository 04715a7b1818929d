package image

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write seccomp.json anew")

// chromiumRules are what Chromium's sandbox asks of the kernel beyond Docker's profile, found by leaving each out in turn: with any two of
// them Chromium does not start. Inside a user namespace of its own an account has capabilities over that namespace alone. What would
// open the larger parts of the kernel to it stays with Docker's rules: mount namespaces above all, host names and IPC.
var chromiumRules = []*seccomp.Syscall{
	{
		LinuxSyscall: specs.LinuxSyscall{
			Names: []string{"clone"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{
				Index: 0, Op: specs.OpMaskedEqual, ValueTwo: 0,
				Value: unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP,
			}},
		},
		Comment:  "Chromium's sandbox: processes in new user, process and network namespaces",
		Excludes: &seccomp.Filter{Arches: []string{"s390", "s390x"}}, // where clone has another order of arguments
	},
	{
		LinuxSyscall: specs.LinuxSyscall{
			Names: []string{"unshare"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Op: specs.OpEqualTo, Value: unix.CLONE_NEWUSER}},
		},
		Comment: "Chromium's sandbox: the user namespace in which a process gives up the file system",
	},
	{
		LinuxSyscall: specs.LinuxSyscall{Names: []string{"chroot"}, Action: specs.ActAllow},
		Comment:      "Chromium's sandbox: giving up the file system; the kernel asks for CAP_SYS_CHROOT",
	},
}

const seccompFile = "seccomp.json"

func encode(t *testing.T, profile *seccomp.Seccomp) []byte {
	t.Helper()
	text, err := json.MarshalIndent(profile, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func TestSeccompIsDockersAndThreeRules(t *testing.T) {
	want := seccomp.DefaultProfile()
	want.Syscalls = append(want.Syscalls, chromiumRules...)
	if *update {
		if err := os.WriteFile(seccompFile, encode(t, want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(seccompFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(encode(t, want)), string(got)); diff != "" {
		t.Errorf("%s differs (go test ./image -update writes it anew):\n%s", seccompFile, diff)
	}
}

// The one above compares what this file says; this one knows nothing of it and asks what a daemon would be sent.
func TestNothingElseDiffersFromDockersProfile(t *testing.T) {
	var sent, docker map[string]any
	if err := json.Unmarshal([]byte(Seccomp()), &sent); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encode(t, seccomp.DefaultProfile()), &docker); err != nil {
		t.Fatal(err)
	}
	rules, ok := sent["syscalls"].([]any)
	if !ok {
		t.Fatalf("the profile's rules are %T", sent["syscalls"])
	}
	known, _ := docker["syscalls"].([]any)
	if len(known) < 20 {
		t.Fatalf("Docker's profile has %d rules; this test no longer knows its shape", len(known))
	}
	var added []string
	sent["syscalls"] = slices.DeleteFunc(slices.Clone(rules), func(rule any) bool {
		isNew := !slices.ContainsFunc(known, func(old any) bool { return cmp.Equal(old, rule) })
		if isNew {
			r, _ := rule.(map[string]any)
			delete(r, "comment")
			delete(r, "excludes")
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			added = append(added, string(text))
		}
		return isNew
	})
	if diff := cmp.Diff(docker, sent); diff != "" {
		t.Errorf("without the new rules the profile is not Docker's (-Docker +ours):\n%s", diff)
	}
	want := []string{
		`{"action":"SCMP_ACT_ALLOW","args":[{"index":0,"op":"SCMP_CMP_MASKED_EQ","value":235012096}],"names":["clone"]}`, // 0x0E020000
		`{"action":"SCMP_ACT_ALLOW","args":[{"index":0,"op":"SCMP_CMP_EQ","value":268435456}],"names":["unshare"]}`,      // 0x10000000
		`{"action":"SCMP_ACT_ALLOW","names":["chroot"]}`,
	}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("the new rules (-want +got):\n%s", diff)
	}
	if bytes.ContainsAny([]byte(Seccomp()), "\n\t") {
		t.Error("the profile is not on one line")
	}
}
