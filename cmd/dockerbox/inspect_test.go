package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

var made = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

func details() provider.Details {
	one, none, less := 1.0, 0.0, 256.5
	disk, home := int64(3<<20), int64(1536)
	return provider.Details{
		Sandbox: provider.Sandbox{
			Name: "box", Profile: "work", Task: "t", ID: strings.Repeat("0123456789abcdef", 4), Image: "debian:13", User: "pn", State: "running", Persistent: true, Security: "standard", Created: made,
		},
		Home: "/home/pn", Owner: "me@here", Network: "bridge", ShmBytes: 1 << 30,
		Mounts: []contract.Mount{{Source: "/src", Target: "/a", ReadOnly: true}, {Source: "data", Target: "/b"}},
		Env:    []string{"A", "B"}, ForwardEnv: []string{"TOKEN"}, ExtraArgs: []string{"--dns", "1.1.1.1"},
		Limits: []provider.Limit{
			{Name: "cpus", Unit: "cores", Wanted: 1, Applied: &one},
			{Name: "memory", Unit: "MB", Wanted: 512, Applied: &less, Note: "less"},
			{Name: "pids", Unit: "processes", Wanted: 0},
			{Name: "disk", Unit: "MB", Wanted: 51200, Applied: &none, Note: "not enforced"},
		},
		HomeVolume: "dockerbox-home-box-0123", Started: made.Add(time.Hour), DiskBytes: &disk, HomeBytes: &home,
		Use: &provider.Use{Idle: 10 * time.Minute, Clients: 2, Told: true, Jobs: 1, Example: "train", Screen: true},
	}
}

func TestInspectForPeople(t *testing.T) {
	var out strings.Builder
	if err := printDetails(&out, details(), made.Add(3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	want := `name          work/box
id            0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
image         debian:13
user          pn
home          /home/pn
home volume   dockerbox-home-box-0123 1.5k
state         running
started       2026-11-30T11:00:00Z (2 hours ago)
used          10 minutes ago, 2 clients are connected
jobs          1 (train) and its screen
disk          3M
created       2026-11-30T10:00:00Z (3 hours ago)
owner         me@here
persistent    yes: home and sandbox stay between sessions
network       bridge
security      standard
shm-size      1g
mounts        /src:/a:ro
              data:/b
env           A B
forward-env   TOKEN
extra-args    --dns 1.1.1.1

LIMIT    WANTED     APPLIES    NOTE
cpus     1 core     1 core     
memory   512 MB     256.5 MB   less
pids     none       ?          
disk     51200 MB   none       not enforced
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	odd := details()
	odd.Home, odd.Mounts, odd.ExtraArgs = "/home/ü", []contract.Mount{{Source: "/a\nb", Target: "/c d"}}, []string{"--label", "a=\x1b[31m", "--device-cgroup-rule", "c 189:* rwm"}
	if err := printDetails(&out, odd, made); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"home          /home/ü\n", `mounts        "/a\nb:/c d"` + "\nenv", `extra-args    --label "a=\x1b[31m" --device-cgroup-rule "c 189:* rwm"` + "\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%q", line, out.String())
		}
	}
	out.Reset()
	d := provider.Details{Sandbox: provider.Sandbox{Name: "box", State: "exited", Created: made}}
	if err := printDetails(&out, d, made.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"persistent    no", "shm-size      the daemon's default", "mounts        -", "env           -", "started       -", "used          -", "jobs          -", "disk          -"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}

func TestInspectForPrograms(t *testing.T) {
	var out strings.Builder
	if err := printJSON(&out, inspectOf(details())); err != nil {
		t.Fatal(err)
	}
	want := `{"schema":1,"address":"work/box","name":"box","profile":"work","task":"t","id":"` + strings.Repeat("0123456789abcdef", 4) + `",` +
		`"image":"debian:13","user":"pn","home":"/home/pn","state":"running","created":"2026-11-30T10:00:00Z","owner":"me@here","persistent":true,` +
		`"network":"bridge","security":"standard","shm_bytes":1073741824,"mounts":["/src:/a:ro","data:/b"],"env":["A","B"],"forward_env":["TOKEN"],"extra_args":["--dns","1.1.1.1"],` +
		`"limits":[{"name":"cpus","unit":"cores","wanted":1,"applied":1,"note":""},{"name":"memory","unit":"MB","wanted":512,"applied":256.5,"note":"less"},` +
		`{"name":"pids","unit":"processes","wanted":0,"applied":null,"note":""},{"name":"disk","unit":"MB","wanted":51200,"applied":0,"note":"not enforced"}],` +
		`"started":"2026-11-30T11:00:00Z","home_volume":"dockerbox-home-box-0123","use":{"idle_s":600,"clients":2,"jobs":1,"example":"train","screen":true},` +
		`"disk_bytes":3145728,"home_bytes":1536}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := printJSON(&out, inspectOf(provider.Details{})); err != nil || strings.Contains(strings.Replace(out.String(), `"use":null,"disk_bytes":null,"home_bytes":null`, "", 1), "null") {
		t.Errorf("%s, %v; want empty lists", out.String(), err)
	}
}

func TestGrace(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "10": 10 * time.Second, "1m30s": 90 * time.Second, "250ms": 250 * time.Millisecond, "24h": 24 * time.Hour} {
		var g grace
		if err := g.Set(text); err != nil || time.Duration(g) != want {
			t.Errorf("%s: %s, %v", text, time.Duration(g), err)
		}
	}
	for _, text := range []string{"", "-1", "-1s", "abc", "1.5", "25h", "90000", "99999999999999999999"} {
		g := grace(time.Second)
		if err := g.Set(text); err == nil || time.Duration(g) != time.Second {
			t.Errorf("%q: %s, %v; want an error and nothing changed", text, time.Duration(g), err)
		}
	}
}
