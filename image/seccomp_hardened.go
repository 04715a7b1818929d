package image

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
)

// SeccompHardened returns the profile of a hardened sandbox's system calls, as [Seccomp] does that of a standard one. It leaves a process its
// own resource limits alone, as ulimit and setrlimit ask for them. Those of another process of the same account the kernel lets it change,
// too: with a limit of processor time it could end the agent, which runs as that account and hears of no signal. Safe for concurrent use;
// does no I/O.
var SeccompHardened = sync.OnceValue(func() string {
	text, err := ownLimitsOnly(seccompProfile)
	if err != nil { // a test decodes the file
		panic(err)
	}
	return text
})

func ownLimitsOnly(profile []byte) (string, error) {
	const call = "prlimit64"
	var fields map[string]any
	in := json.NewDecoder(bytes.NewReader(profile))
	in.UseNumber() // or flags would come out as floating-point numbers
	if err := in.Decode(&fields); err != nil {
		return "", err
	}
	rules, _ := fields["syscalls"].([]any)
	for _, rule := range rules {
		if rule, ok := rule.(map[string]any); ok {
			names, _ := rule["names"].([]any)
			rule["names"] = slices.DeleteFunc(names, func(name any) bool { return name == call })
		}
	}
	fields["syscalls"] = append(rules, map[string]any{
		"names": []string{call}, "action": "SCMP_ACT_ALLOW",
		"args": []map[string]any{{"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}}, // 0 is the caller itself
	})
	text, err := json.Marshal(fields)
	return string(text), err
}
