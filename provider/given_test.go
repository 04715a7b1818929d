package provider

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Each field of a configuration is a setting under its JSON key, or one of those that say what to do.
func TestEachFieldIsASetting(t *testing.T) {
	var fields []string
	for field := range reflect.TypeFor[contract.Config]().Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !slices.Contains([]string{"given", "recreate", "adapt"}, key) {
			fields = append(fields, key)
		}
	}
	slices.Sort(fields)
	var known []string
	for key := range settings {
		known = append(known, key)
	}
	slices.Sort(known)
	if diff := cmp.Diff(fields, known); diff != "" {
		t.Error(diff)
	}
}

// A setting that is given replaces exactly that field; all others are the sandbox's own.
func TestOverlayTakesWhatIsGiven(t *testing.T) {
	has := contract.Config{
		Name: "n", Profile: "p", Image: "i", User: "u", CPUs: 1, MemoryMB: 2, PIDs: 3, DiskMB: 4, ShmBytes: 5, Network: "bridge", Security: "standard",
		Env: map[string]string{"A": "1"}, ForwardEnv: []string{"F"}, Mounts: []contract.Mount{{Source: "s", Target: "/t"}}, ExtraArgs: []string{"--x"}, Persistent: true,
	}
	wants := contract.Config{
		Name: "n", Profile: "p", Task: "t", Image: "i2", User: "u2", CPUs: 12, MemoryMB: 22, PIDs: 32, DiskMB: 42, ShmBytes: 52, Network: "none", Security: "hardened",
		Env: map[string]string{"A": "2"}, ForwardEnv: []string{"F2"}, Mounts: []contract.Mount{{Source: "s2", Target: "/t2"}}, ExtraArgs: []string{"--x2"}, Adapt: true,
	}
	if diff := cmp.Diff(wants, overlay(has, wants)); diff != "" {
		t.Errorf("nil means all: %s", diff)
	}
	own := has
	own.Task, own.Adapt, own.Given = "t", true, []string{}
	wants.Given = []string{}
	if diff := cmp.Diff(own, overlay(has, wants)); diff != "" {
		t.Errorf("nothing given: %s", diff)
	}
	values := func(c contract.Config) map[string]any {
		m := map[string]any{}
		v := reflect.ValueOf(c)
		for field, value := range v.Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			m[key] = value.Interface()
		}
		return m
	}
	for key := range settings {
		wants.Given = []string{key}
		want := values(own)
		want[key], want["given"] = values(wants)[key], wants.Given
		if key == "security" { // it takes the network with it
			want["network"] = "none"
		}
		if diff := cmp.Diff(want, values(overlay(has, wants))); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

func TestAnUnknownSettingIsAFault(t *testing.T) {
	faults := givenFaults([]string{"memory_mb", "memory", "given", strings.Repeat("x", 100)})
	if len(faults) != 3 || faults[0].Key != "given" || !strings.Contains(faults[0].Problem, `"memory"`) || len(faults.Error()) > 300 {
		t.Errorf("%v", faults)
	}
}
