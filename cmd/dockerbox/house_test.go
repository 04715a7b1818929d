package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

func TestStatsForPeopleAndPrograms(t *testing.T) {
	idle := 90 * time.Minute
	list := []provider.Usage{
		{
			Sandbox: provider.Sandbox{Name: "box", ID: "0123", State: "running"}, Measured: true, Cores: 0.755, CPULimit: 2, Memory: 300 << 20, MemoryLimit: 1 << 30, PIDs: 12, PIDsLimit: 2048,
			Received: 1536, Sent: 100, Read: 5 << 20, Written: 7 << 30, Up: 26 * time.Hour, More: &provider.More{Disk: 1 << 20, Idle: &idle},
		},
		{Sandbox: provider.Sandbox{Name: "t", Profile: "work", State: "paused"}, PIDs: 1, Up: time.Minute, More: &provider.More{Disk: -1}},
	}
	text, err := statsTable(list, true)
	want := "NAME     CPU     LIMIT      MEMORY   LIMIT       PIDS         NETWORK IN / OUT   DISK READ / WRITTEN   UP                          WROTE   IDLE\n" +
		"box      75.5%   38% of 2   300M     29% of 1G   12 of 2048   1.5k / 100B        5M / 7G               26 hours                    1M      2 hours\n" +
		"work/t   ?    ?          ?       ?           ?            ?            ?               About a minute, paused   ?       ?\n"
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(text)); err != nil || diff != "" {
		t.Errorf("%v\n%s\n%s", err, diff, text)
	}
	list[1].More = nil
	if text, err = statsTable(list, false); err != nil || strings.Contains(text, "IDLE") || !strings.HasSuffix(strings.Split(text, "\n")[0], "UP") {
		t.Errorf("%v\n%s", err, text)
	}
	var out bytes.Buffer
	if err := printJSON(&out, statsOf(list)); err != nil {
		t.Fatal(err)
	}
	answer := `{"schema":1,"sandboxes":[{"address":"box","id":"0123","state":"running","cpu_percent":75.5,"cpu_limit":2,"memory_bytes":314572800,"memory_limit_bytes":1073741824,` +
		`"pids":12,"pids_limit":2048,"net_received_bytes":1536,"net_sent_bytes":100,"block_read_bytes":5242880,"block_written_bytes":7516192768,"uptime_s":93600,"measured":true,` +
		`"disk_bytes":1048576,"idle_s":5400},{"address":"work/t","id":"","state":"paused","cpu_percent":0,"cpu_limit":0,"memory_bytes":0,"memory_limit_bytes":0,` +
		`"pids":1,"pids_limit":0,"net_received_bytes":0,"net_sent_bytes":0,"block_read_bytes":0,"block_written_bytes":0,"uptime_s":60,"measured":false,"disk_bytes":null,"idle_s":null}]}` + "\n"
	if diff := cmp.Diff(answer, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := printJSON(&out, statsOf(nil)); err != nil || out.String() != `{"schema":1,"sandboxes":[]}`+"\n" {
		t.Errorf("%s, %v", out.String(), err)
	}
}

func TestPruneForPeopleAndPrograms(t *testing.T) {
	done := provider.Pruned{
		Removed: []provider.Leftover{
			{Kind: provider.KindSandbox, Name: "box", Why: "not used for 2 days", Bytes: 3 << 20},
			{Kind: provider.KindHelper, Name: "dockerbox-helper-0", Why: "left behind", Bytes: -1},
			{Kind: provider.KindImage, Name: "sha256:" + strings.Repeat("0123456789abcdef", 4), Why: "an image", Bytes: 1 << 30},
		},
		Kept: []provider.Kept{{Name: "busy", Why: "a process runs in it (\x1b[31msleep)"}},
	}
	var out, stderr bytes.Buffer
	if err := sayPruned(streams{out: &out, err: &stderr}, done, false, false); err != nil {
		t.Fatal(err)
	}
	want := "removed sandbox box                3M  not used for 2 days\n" +
		"removed helper dockerbox-helper-0  ?   left behind\n" +
		"removed image 0123456789ab         1G  an image\n" +
		"total 1.003G\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if got := stderr.String(); got != "dockerbox: sandbox busy stays: a process runs in it ( [31msleep)\n" {
		t.Errorf("%q", got)
	}
	out.Reset()
	stderr.Reset()
	if err := sayPruned(streams{out: &out, err: &stderr}, done, true, true); err != nil || stderr.Len() > 0 {
		t.Errorf("%v, %q", err, stderr.String())
	}
	want = `{"schema":1,"dry_run":true,"removed":[{"kind":"sandbox","name":"box","why":"not used for 2 days","bytes":3145728},` +
		`{"kind":"helper","name":"dockerbox-helper-0","why":"left behind","bytes":null},` +
		`{"kind":"image","name":"sha256:` + strings.Repeat("0123456789abcdef", 4) + `","why":"an image","bytes":1073741824}],` +
		`"kept":[{"name":"busy","why":"a process runs in it (\u001b[31msleep)"}],"bytes":1076887552}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := sayPruned(streams{out: &out, err: &stderr}, provider.Pruned{}, true, false); err != nil || out.String() != "total 0B\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// Lines come whole or in pieces, and nothing in them commands the terminal.
func TestLogLines(t *testing.T) {
	at := time.Date(2026, 11, 30, 10, 0, 0, 5, time.UTC)
	stamp := at.Format(time.RFC3339Nano)
	for name, tc := range map[string]struct {
		w      logWriter
		pieces []string
		want   string
	}{
		"pieces":  {logWriter{}, []string{stamp + " a", "b\n" + stamp + " c\n" + stamp, " d"}, at.Local().Format("2006-01-02 15:04:05") + "  "},
		"JSON":    {logWriter{json: true}, []string{stamp + " a \"b\"\n"}, `{"schema":1,"time":"` + stamp + `","line":"a \"b\""}` + "\n"},
		"no time": {logWriter{}, []string{"just \x1b[31mtext\n"}, "just  [31mtext\n"},
		"raw":     {logWriter{raw: true}, []string{stamp + " x\n"}, stamp + " x\n"},
	} {
		var out bytes.Buffer
		tc.w.w = &out
		for _, p := range tc.pieces {
			if n, err := tc.w.Write([]byte(p)); err != nil || n != len(p) {
				t.Errorf("%s: %d, %v", name, n, err)
			}
		}
		if err := tc.w.flush(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "pieces" {
			tc.want += "ab\n" + tc.want + "c\n" + tc.want + "d\n"
		}
		if diff := cmp.Diff(tc.want, out.String()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	var out bytes.Buffer
	endless := logWriter{w: &out, raw: true}
	for range 3 {
		if _, err := endless.Write(bytes.Repeat([]byte("x"), maxLogLine)); err != nil {
			t.Error(err)
		}
	}
	if len(endless.half) > 0 || out.Len() != 3*(maxLogLine+1) {
		t.Errorf("%d bytes are held and %d printed", len(endless.half), out.Len())
	}
	w := logWriter{w: refuser{}}
	if _, err := w.Write([]byte("line\n")); err == nil {
		t.Error("a line that nobody took was written")
	}
}

type refuser struct{}

func (refuser) Write([]byte) (int, error) { return 0, errors.New("no") }

func TestMomentsAndLineCounts(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"10m": now.Add(-10 * time.Minute), "0s": now, "2026-11-30T10:00:00Z": now.Add(-2 * time.Hour),
		"2026-11-30": time.Date(2026, 11, 30, 0, 0, 0, 0, time.Local), "2026-11-30 09:30": time.Date(2026, 11, 30, 9, 30, 0, 0, time.Local),
	} {
		var m moment
		if err := m.Set(text); err != nil || !m.from(now).Equal(want) || m.String() != text {
			t.Errorf("%s: %s, %v; want %s", text, m.from(now), err, want)
		}
	}
	if m := (moment{}); !m.from(now).IsZero() {
		t.Error("none is given")
	}
	for _, text := range []string{"", "-10m", "soon", "2026-13-01", "10"} {
		if err := new(moment).Set(text); err == nil {
			t.Errorf("%q is no moment", text)
		}
	}
	for text, want := range map[string]string{"0": "0", "12": "12", "all": "+1"} {
		var n lineCount
		if err := n.Set(text); err != nil || n.plus() != want {
			t.Errorf("%s: %s, %v", text, n.plus(), err)
		}
	}
	for _, text := range []string{"", "-1", "some", "1.5", "99999999999"} {
		if err := new(lineCount).Set(text); err == nil {
			t.Errorf("%q is no number of lines", text)
		}
	}
}

// What an odd name, path or variable becomes is still what it was, for each client.
func TestMCPSnippets(t *testing.T) {
	server := mcpServer{Command: `/opt/a "b"/dockerbox`, Args: []string{"--host", "unix:///x y", "mcp", "work/p:x"}, Env: map[string]string{"DOCKER_CERT_PATH": "/c: d"}}
	for _, c := range mcpClients {
		text, err := c.snippet(serverName("work/p:x"), server)
		if err != nil {
			t.Fatal(err)
		}
		if c.yaml {
			want := "mcp_servers:\n  dockerbox-work-p-x:\n    command: \"/opt/a \\\"b\\\"/dockerbox\"\n    args: [\"--host\",\"unix:///x y\",\"mcp\",\"work/p:x\"]\n" +
				"    env:\n      DOCKER_CERT_PATH: \"/c: d\"\n"
			if diff := cmp.Diff(want, text); diff != "" {
				t.Error(diff)
			}
			continue
		}
		var got map[string]map[string]mcpServer
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		want := server
		if c.name == "vscode" {
			want.Type = "stdio"
		}
		if diff := cmp.Diff(map[string]map[string]mcpServer{c.key: {"dockerbox-work-p-x": want}}, got); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}
