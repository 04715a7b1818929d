package rpc

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// checker is a provider that knows of more faults than [contract.Config.Validate]. It does no I/O.
type checker interface {
	Check(contract.Config) contract.Faults
}

// configField is one key of the config object. set takes its value over and says what is wrong with one that it cannot take.
type configField struct {
	key string
	set func(*contract.Config, json.RawMessage) []string
}

// configFields are all keys, in the order in which their faults are named.
var configFields = []configField{
	{"name", text(func(c *contract.Config) *string { return &c.Name })},
	{"profile", text(func(c *contract.Config) *string { return &c.Profile })},
	{"task", text(func(c *contract.Config) *string { return &c.Task })},
	{"image", text(func(c *contract.Config) *string { return &c.Image })},
	{"user", text(func(c *contract.Config) *string { return &c.User })},
	{"cpus", func(c *contract.Config, raw json.RawMessage) []string {
		return setNumber(&c.CPUs, raw, "a number of cores")
	}},
	{"memory_mb", whole("a whole number of MB", func(c *contract.Config) *int64 { return &c.MemoryMB })},
	{"pids", whole("a whole number of processes", func(c *contract.Config) *int64 { return &c.PIDs })},
	{"disk_mb", whole("a whole number of MB", func(c *contract.Config) *int64 { return &c.DiskMB })},
	{"shm_bytes", func(c *contract.Config, raw json.RawMessage) []string { return setSize(&c.ShmBytes, raw) }},
	{"network", text(func(c *contract.Config) *string { return &c.Network })},
	{"security", text(func(c *contract.Config) *string { return &c.Security })},
	{"env", func(c *contract.Config, raw json.RawMessage) []string { return setVariables(&c.Env, raw) }},
	{"forward_env", list(func(c *contract.Config) *[]string { return &c.ForwardEnv })},
	{"mounts", func(c *contract.Config, raw json.RawMessage) []string { return setMounts(&c.Mounts, raw) }},
	{"extra_args", list(func(c *contract.Config) *[]string { return &c.ExtraArgs })},
	{"persistent", boolean(func(c *contract.Config) *bool { return &c.Persistent })},
	{"given", list(func(c *contract.Config) *[]string { return &c.Given })},
	{"recreate", boolean(func(c *contract.Config) *bool { return &c.Recreate })},
	{"adapt", boolean(func(c *contract.Config) *bool { return &c.Adapt })},
}

// configKeys translates the keys of [contract.Fault], which are the command line's flags, where the two differ.
var configKeys = map[string]string{
	"memory": "memory_mb", "disk": "disk_mb", "shm-size": "shm_bytes", "forward-env": "forward_env",
	"volume": "mounts", "extra-args": "extra_args",
}

// decodeConfig reads the config of a request over the defaults. Faults are everything wrong with it at once, of types and of values, by
// the keys of the JSON: who configures something sees all of it in one go, and a setting misspelt is not a setting lost. check finds what
// is wrong with values; it is asked about the fields that could be read.
func decodeConfig(raw json.RawMessage, version string, check func(contract.Config) contract.Faults) (contract.Config, contract.Faults) {
	cfg := contract.Defaults()
	object := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &object); err != nil {
			return cfg, fault("config", shown(raw)+" must be an object")
		}
	}
	var faults contract.Faults
	for _, field := range configFields {
		value, found := object[field.key]
		delete(object, field.key)
		if !found || isNull(value) {
			continue
		}
		for _, problem := range field.set(&cfg, value) {
			faults = append(faults, contract.Fault{Key: field.key, Problem: problem})
		}
	}
	for _, name := range cfg.Given {
		if place(name) == len(configFields) {
			faults = append(faults, contract.Fault{Key: "given", Problem: strconv.Quote(brief(name)) + " is no setting of dockerbox " + version})
		}
	}
	faults = append(faults, byJSONKey(check(cfg))...)
	slices.SortStableFunc(faults, func(a, b contract.Fault) int { return place(a.Key) - place(b.Key) })
	for _, key := range slices.Sorted(maps.Keys(object)) {
		faults = append(faults, contract.Fault{Key: brief(key), Problem: fmt.Sprintf(
			"is no setting of dockerbox %s: correct its name, or update dockerbox if its client is newer", version)})
	}
	return cfg, faults
}

// byJSONKey is the same faults under the keys that a client knows.
func byJSONKey(faults contract.Faults) contract.Faults {
	renamed := slices.Clone(faults)
	for i, f := range renamed {
		renamed[i].Key = cmp.Or(configKeys[f.Key], f.Key)
	}
	return renamed
}

// place is where a key stands among configFields, behind all of them if it is none.
func place(key string) int {
	if i := slices.IndexFunc(configFields, func(f configField) bool { return f.key == key }); i >= 0 {
		return i
	}
	return len(configFields)
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// must is the fault of a value that should have been something else.
func must(raw json.RawMessage, be string) []string { return []string{shown(raw) + " must be " + be} }

func text(of func(*contract.Config) *string) func(*contract.Config, json.RawMessage) []string {
	return func(c *contract.Config, raw json.RawMessage) []string {
		s, ok := asText(raw)
		if !ok {
			return must(raw, "text")
		}
		*of(c) = s
		return nil
	}
}

func boolean(of func(*contract.Config) *bool) func(*contract.Config, json.RawMessage) []string {
	return func(c *contract.Config, raw json.RawMessage) []string {
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return must(raw, "true or false")
		}
		*of(c) = b
		return nil
	}
}

// setNumber takes a number, or text that holds one: configuration files quote numbers, and environment variables know nothing else.
func setNumber(to *float64, raw json.RawMessage, be string) []string {
	digits := string(raw)
	if s, ok := asText(raw); ok {
		digits = strings.TrimSpace(s)
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil { // "NaN" and "Inf" are numbers here, and faults of the value
		return must(raw, be)
	}
	*to = n
	return nil
}

func whole(be string, of func(*contract.Config) *int64) func(*contract.Config, json.RawMessage) []string {
	return func(c *contract.Config, raw json.RawMessage) []string {
		var n float64
		// Up to 2^53 a float64 holds every whole number; no limit of a sandbox is beyond.
		if problem := setNumber(&n, raw, be); problem != nil || n != float64(int64(n)) || n > 1<<53 || n < -(1<<53) {
			return must(raw, be)
		}
		*of(c) = int64(n)
		return nil
	}
}

// setSize takes a number of bytes, or text as docker takes it: 64m, 1.5g, 1GiB.
func setSize(to *int64, raw json.RawMessage) []string {
	const be = "a size such as 512m or 1g, or a whole number of bytes"
	s, ok := asText(raw)
	if !ok {
		s = string(raw)
		if s == "" || !strings.ContainsRune("-0123456789", rune(s[0])) {
			return must(raw, be)
		}
	}
	n, err := units.RAMInBytes(strings.TrimSpace(s))
	if err != nil {
		return must(raw, be)
	}
	*to = n
	return nil
}

// list takes texts; each that is none is a fault of its own.
func list(of func(*contract.Config) *[]string) func(*contract.Config, json.RawMessage) []string {
	return func(c *contract.Config, raw json.RawMessage) []string {
		texts, problems := asTexts(raw)
		*of(c) = texts
		return problems
	}
}

func setMounts(to *[]contract.Mount, raw json.RawMessage) []string {
	texts, problems := asTexts(raw)
	*to = nil
	for _, s := range texts {
		*to = append(*to, contract.ParseMount(s))
	}
	return problems
}

// setVariables takes a map of texts. Numbers count as their text, for nobody quotes the port in PORT: 8080.
func setVariables(to *map[string]string, raw json.RawMessage) []string {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return must(raw, "a map of names to texts")
	}
	var problems []string
	env := make(map[string]string, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		s, ok := asText(value)
		switch {
		case ok:
		case strings.ContainsRune("-0123456789", rune(value[0])):
			s = string(value)
		default:
			// Not the value itself: it may be a secret in the wrong place.
			problems = append(problems, strconv.Quote(brief(name))+" must be text: write it in quotes")
			continue
		}
		env[name] = s
	}
	*to = env
	return problems
}

func asText(raw json.RawMessage) (string, bool) {
	var s string
	if isNull(raw) || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// asTexts is the texts of a list and a sentence for each member that is none. The list is never nil: an empty one is something said.
func asTexts(raw json.RawMessage) (texts, problems []string) {
	var members []json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil, must(raw, "a list of texts")
	}
	texts = make([]string, 0, len(members))
	for _, member := range members {
		if s, ok := asText(member); ok {
			texts = append(texts, s)
		} else {
			problems = append(problems, "each member must be text, and "+shown(member)+" is not")
		}
	}
	return texts, problems
}

// shown is a JSON value in a sentence, cut when it is long.
func shown(raw json.RawMessage) string {
	if s, ok := asText(raw); ok {
		return strconv.Quote(brief(s))
	}
	return brief(string(raw))
}

// brief cuts what would flood a sentence.
func brief(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
