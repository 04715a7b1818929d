package rpc

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// decoded reads a config with nothing but the contract's own check.
func decoded(t *testing.T, text string) (contract.Config, contract.Faults) {
	t.Helper()
	return decodeConfig(json.RawMessage(text), "1.2.3", contract.Config.Validate)
}

func TestEveryFieldOfTheConfigurationCanBeAskedFor(t *testing.T) {
	var fields, known []string
	for f := range reflect.TypeFor[contract.Config]().Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, key)
	}
	for _, f := range configFields {
		known = append(known, f.key)
	}
	if diff := cmp.Diff(fields, known); diff != "" {
		t.Fatalf("fields of the configuration (-) and keys of a request (+), in their order:\n%s", diff)
	}
}

func TestWhatAClientEncodesIsWhatTheServerReads(t *testing.T) {
	want := contract.Config{
		Name: "n", Profile: "p", Task: "t", Image: "i:1", User: "7:8", CPUs: 0.25, MemoryMB: 64, PIDs: 99, DiskMB: 12, ShmBytes: 4096,
		Network: "none", Security: "hardened", Env: map[string]string{"A": "b"}, ForwardEnv: []string{"F"},
		Mounts:    []contract.Mount{{Source: "/a b", Target: "/c", ReadOnly: true}, {Source: "vol", Target: "/d"}},
		ExtraArgs: []string{"--ulimit", "nofile=1"}, Given: []string{"cpus", "memory_mb"}, Recreate: true, Adapt: true,
	}
	for _, want := range []contract.Config{want, contract.Defaults(), {Name: "n", Network: "bridge", Given: []string{}}} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, faults := decoded(t, string(text))
		if diff := cmp.Diff(want, got); diff != "" || faults != nil {
			t.Errorf("%s: %v\n%s", text, faults, diff)
		}
	}
}

func TestConfigTakesWhatConfigurationFilesHold(t *testing.T) {
	for text, change := range map[string]func(*contract.Config){
		``:     func(*contract.Config) {},
		`{}`:   func(*contract.Config) {},
		`null`: func(*contract.Config) {},
		`{"cpus":null,"env":null,"given":null,"mounts":null}`: func(*contract.Config) {},
		`{"cpus":"1.5","memory_mb":" 512 ","pids":"100"}`:     func(c *contract.Config) { c.CPUs, c.MemoryMB, c.PIDs = 1.5, 512, 100 },
		`{"memory_mb":512.0,"disk_mb":1e3}`:                   func(c *contract.Config) { c.MemoryMB, c.DiskMB = 512, 1000 },
		`{"shm_bytes":"64m"}`:                                 func(c *contract.Config) { c.ShmBytes = 64 << 20 },
		`{"shm_bytes":"1.5GiB"}`:                              func(c *contract.Config) { c.ShmBytes = 3 << 29 },
		`{"shm_bytes":" 2g "}`:                                func(c *contract.Config) { c.ShmBytes = 2 << 30 },
		`{"shm_bytes":"4096"}`:                                func(c *contract.Config) { c.ShmBytes = 4096 },
		`{"shm_bytes":0}`:                                     func(c *contract.Config) { c.ShmBytes = 0 },
		`{"env":{"PORT":8080,"A":"x=y"}}`:                     func(c *contract.Config) { c.Env = map[string]string{"PORT": "8080", "A": "x=y"} },
		`{"mounts":["/a:/b:ro"]}`:                             func(c *contract.Config) { c.Mounts = []contract.Mount{{Source: "/a", Target: "/b", ReadOnly: true}} },
		`{"given":[]}`:                                        func(c *contract.Config) { c.Given = []string{} },
	} {
		want := contract.Defaults()
		change(&want)
		got, faults := decoded(t, text)
		if diff := cmp.Diff(want, got); diff != "" || faults != nil {
			t.Errorf("%s: %v\n%s", text, faults, diff)
		}
	}
}

// A value of every wrong type for every key, and the sentence it gets.
func TestConfigNamesEveryWrongType(t *testing.T) {
	text := func(v string) string { return v + " must be text" }
	whole := func(what string) func(string) string {
		return func(v string) string { return v + " must be a whole number of " + what }
	}
	boolean := func(v string) string { return v + " must be true or false" }
	list := func(v string) string { return v + " must be a list of texts" }
	sentences := map[string]func(string) string{
		"name": text, "profile": text, "task": text, "image": text, "user": text, "network": text, "security": text,
		"cpus":      func(v string) string { return v + " must be a number of cores" },
		"memory_mb": whole("MB"), "disk_mb": whole("MB"), "pids": whole("processes"),
		"shm_bytes":   func(v string) string { return v + " must be a size such as 512m or 1g, or a whole number of bytes" },
		"env":         func(v string) string { return v + " must be a map of names to texts" },
		"forward_env": list, "mounts": list, "extra_args": list, "given": list,
		"persistent": boolean, "recreate": boolean, "adapt": boolean,
	}
	wrong := map[string][]string{
		"true":       slices.Collect(keysBut(sentences, "persistent", "recreate", "adapt")),
		"5":          {"name", "profile", "task", "image", "user", "network", "security", "env", "forward_env", "mounts", "extra_args", "given", "persistent", "recreate", "adapt"},
		`"12x"`:      {"cpus", "memory_mb", "disk_mb", "pids", "shm_bytes", "env", "forward_env", "mounts", "extra_args", "given", "persistent", "recreate", "adapt"},
		`""`:         {"cpus", "memory_mb", "disk_mb", "pids", "shm_bytes", "persistent"},
		`"5g"`:       {"memory_mb", "disk_mb", "pids"},
		"0.5":        {"memory_mb", "disk_mb", "pids"},
		"1e300":      {"memory_mb", "disk_mb", "pids"},
		"[1]":        slices.Collect(keysBut(sentences, "forward_env", "mounts", "extra_args", "given")),
		`{"a":1}`:    slices.Collect(keysBut(sentences, "env")),
		`"-1g"`:      {"shm_bytes"},
		`"1 g g"`:    {"shm_bytes"},
		`"1x"`:       {"shm_bytes"},
		`"on"`:       {"persistent", "recreate", "adapt"},
		`"true"`:     {"persistent"},
		"1":          {"persistent"},
		`"NaN"`:      {"memory_mb"},
		`"Infinity"`: {"pids"},
	}
	for value, keys := range wrong {
		for _, key := range keys {
			_, faults := decoded(t, `{"`+key+`":`+value+`}`)
			if want := (contract.Faults{{Key: key, Problem: sentences[key](value)}}); !slices.Equal(faults, want) {
				t.Errorf("%s: %s: got %q, want %q", key, value, faults, want)
			}
		}
	}
}

func keysBut[V any](m map[string]V, but ...string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !slices.Contains(but, key) && !yield(key) {
				return
			}
		}
	}
}

// Everything wrong with one request, of types, values and names, in the order of the fields.
func TestConfigNamesAllFaultsAtOnce(t *testing.T) {
	_, faults := decodeConfig(json.RawMessage(`{
		"memroy": 1, "adapt": 1, "given": ["memory_mb", "memroy"], "persistent": "yes", "extra_args": ["--privileged", 5], "mounts": ["/a", ["/b:/c"]],
		"forward_env": ["A", "B C"], "env": {"A B": "x", "OK": true, "S": ["secret"]}, "network": "host", "shm_bytes": "big", "disk_mb": -1, "pids": 1,
		"memory_mb": "12x", "cpus": "NaN", "user": "a b", "image": [], "name": "a/b"}`), "1.2.3",
		func(c contract.Config) contract.Faults {
			return append(c.Validate(), contract.Fault{Key: "extra-args", Problem: strings.Join(c.ExtraArgs, " ") + " is refused"})
		})
	var got []string
	for _, f := range faults {
		got = append(got, f.Key+": "+f.Problem)
	}
	want := []string{
		`name: "a/b" must be 1 to 128 letters, digits, ".", "_", ":" or "-" and begin with a letter or digit`,
		`image: [] must be text`,
		`user: "a b" must be a name, or a number up to 2147483647, optionally followed by ":" and a group`,
		`cpus: NaN must be 0 (no limit) or 0.01 to 1000000 cores`,
		`memory_mb: "12x" must be a whole number of MB`,
		`pids: 1 must be 0 (no limit) or at least 64, for the agent and its shells take some themselves`,
		`disk_mb: -1 MB must be 0 (no limit) or 1 to 1073741824 MB`,
		`shm_bytes: "big" must be a size such as 512m or 1g, or a whole number of bytes`,
		`network: "host" must be "bridge" or "none"`,
		`env: "OK" must be text: write it in quotes`,
		`env: "S" must be text: write it in quotes`,
		`env: "A B" is not a variable name`,
		`forward_env: "B C" is not a variable name`,
		`mounts: each member must be text, and ["/b:/c"] is not`,
		`mounts: "/a": must be SOURCE:TARGET, with :ro behind it to keep it from being changed`,
		`extra_args: each member must be text, and 5 is not`,
		`extra_args: --privileged is refused`,
		`persistent: "yes" must be true or false`,
		`given: "memroy" is no setting of dockerbox 1.2.3`,
		`adapt: 1 must be true or false`,
		`memroy: is no setting of dockerbox 1.2.3: correct its name, or update dockerbox if its client is newer`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Each key under which Validate can find something is told to a client as the one it sent.
func TestFaultsOfValuesHaveTheKeysOfTheRequest(t *testing.T) {
	bad := contract.Config{
		Profile: "/", User: "/", CPUs: -1, MemoryMB: -1, PIDs: -1, DiskMB: -1, ShmBytes: -1, Env: map[string]string{"": ""},
		ForwardEnv: []string{""}, Mounts: []contract.Mount{{}},
	}
	faults := bad.Validate()
	if len(faults) != 12 {
		t.Errorf("this test has a fault for %d keys, want all 12 that Validate knows: %v", len(faults), faults)
	}
	for _, f := range byJSONKey(faults) {
		if place(f.Key) == len(configFields) {
			t.Errorf("%q is no key of a request", f.Key)
		}
	}
}

func TestConfigThatIsNoObject(t *testing.T) {
	for _, text := range []string{"5", `"x"`, "[]", "true"} {
		if _, faults := decoded(t, text); len(faults) != 1 || faults[0].Key != "config" || faults[0].Problem != text+" must be an object" {
			t.Errorf("%s: %v", text, faults)
		}
	}
}

func TestLongValuesAreCut(t *testing.T) {
	_, faults := decoded(t, `{"memory_mb":"`+strings.Repeat("é", 5000)+`","`+strings.Repeat("k", 5000)+`":1}`)
	if len(faults) != 2 || len(faults.Error()) > 400 || !strings.Contains(faults[0].Problem, "é…") {
		t.Errorf("%.600s", faults.Error())
	}
}

// FuzzConfig holds that no config makes the server fail otherwise than by naming what is wrong: a config without faults is valid and
// means the same when it is sent again.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","cpus":"1","memory_mb":5.0,"shm_bytes":"1g","env":{"A":1},"mounts":["/a:/b:ro","v:/c"],"given":["cpus"]}`,
		`{"mounts":["C:\\x:/y"],"extra_args":["--ulimit=a"],"forward_env":["A"],"persistent":false}`,
		`{"cpus":"NaN","pids":"0x40","memory_mb":1e18,"shm_bytes":-0.5}`, `{"name":"\ud800","x":null}`, `[]`, `null`, ``, `{"env":{"A":-}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if !json.Valid(in) && len(in) > 0 {
			return // a line of broken JSON does not get this far
		}
		cfg, faults := decodeConfig(in, "0", contract.Config.Validate)
		for _, fault := range faults {
			if fault.Key == "" && !strings.Contains(string(in), `""`) || fault.Problem == "" || strings.HasSuffix(fault.Problem, ".") {
				t.Errorf("%+v is no fault to show to anybody", fault)
			}
		}
		if faults != nil {
			return
		}
		if again := cfg.Validate(); again != nil {
			t.Fatalf("accepted although %v", again)
		}
		text, err := json.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		same, faults := decodeConfig(text, "0", contract.Config.Validate)
		if faults != nil {
			t.Fatalf("%s: %v", text, faults)
		}
		second, err := json.Marshal(same)
		if err != nil || string(second) != string(text) {
			t.Fatalf("%s became %s (%v)", text, second, err)
		}
	})
}
