package image

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A hardened sandbox's profile is a standard one's, but for the one call, which it allows on the caller alone.
func TestSeccompHardenedDiffersInOneRule(t *testing.T) {
	type rule struct {
		Names  []string
		Action string
		Args   []struct {
			Index uint
			Value uint64
			Op    string
		}
		Includes, Excludes, Comment any
	}
	type profile struct {
		DefaultAction   string
		DefaultErrnoRet int
		ArchMap         any
		Syscalls        []rule
	}
	var standard, hardened profile
	for text, to := range map[string]*profile{Seccomp(): &standard, SeccompHardened(): &hardened} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	last := hardened.Syscalls[len(hardened.Syscalls)-1]
	if !slices.Equal(last.Names, []string{"prlimit64"}) || len(last.Args) != 1 || last.Args[0].Index != 0 || last.Args[0].Value != 0 || last.Args[0].Op != "SCMP_CMP_EQ" || last.Action != "SCMP_ACT_ALLOW" {
		t.Errorf("the last rule is %+v", last)
	}
	hardened.Syscalls = hardened.Syscalls[:len(hardened.Syscalls)-1]
	found := 0
	for i, r := range standard.Syscalls {
		if at := slices.Index(r.Names, "prlimit64"); at >= 0 {
			found++
			standard.Syscalls[i].Names = slices.Delete(r.Names, at, at+1)
		}
	}
	if diff := cmp.Diff(standard, hardened); diff != "" || found != 1 {
		t.Errorf("%d rules allow it in a standard sandbox; besides it differs in\n%s", found, diff)
	}
}
