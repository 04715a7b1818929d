//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestPauseFromTheCommandLine(t *testing.T) {
	name := freshName("pause")
	t.Cleanup(func() { removeSandboxes(t, name) })
	other := name + "-2"
	must := func(stdout string, args ...string) {
		t.Helper()
		if got := cli(t, args...); got.status != 0 || got.stdout != stdout || got.stderr != "" {
			t.Errorf("%q: %+v, want %q", args, got, stdout)
		}
	}
	if got := cli(t, "up", "--network", "none", name); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	must("", "run", name, "export A=1")
	must(name+"\n", "pause", name)
	must(name+"\n", "pause", name)
	if got := cli(t, "ps"); !strings.Contains(got.stdout, "paused") {
		t.Errorf("%+v", got)
	}
	began := time.Now()
	for _, verb := range [][]string{{"run", name, "true"}, {"exec", name, "true"}, {"up", name}, {"prefix", name}, {"start", name}} {
		want := said{"", fmt.Sprintf("dockerbox: error: sandbox %q is paused\ndockerbox: hint: dockerbox unpause %s lets it go on\n", name, name), contract.ExitBackend}
		if got := cli(t, verb...); got != want {
			t.Errorf("%q: %+v, want %+v", verb, got, want)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("five commands on a paused sandbox took %s", took)
	}
	must(name+"\n", "unpause", name)
	must("1\n", "run", name, "echo $A")
	// One that cannot be paused does not keep the others, whatever their order.
	got := cli(t, "pause", other, name)
	if got.status != contract.ExitBackend || got.stdout != name+"\n" || strings.Count(got.stderr, "dockerbox: error: ") != 1 {
		t.Errorf("%+v", got)
	}
	must(name+"\n", "unpause", name)
	must(name+"\n", "stop", "-t", "0", name)
	must(name+"\n", "unpause", name)
	if got := cli(t, "pause", name); got.status != contract.ExitBackend || !strings.Contains(got.stderr, "does not run") {
		t.Errorf("%+v", got)
	}
}

func TestLogsFromTheCommandLine(t *testing.T) {
	name := freshName("logs")
	t.Cleanup(func() { removeSandboxes(t, name) })
	if got := cli(t, "up", "--desktop", "--network", "none", name); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if got := docker(t, "inspect", "-f", `{{index .HostConfig.LogConfig.Config "max-size"}}`, objectName("dockerbox-", name)); strings.TrimSpace(got) != "512k" {
		t.Errorf("the log may grow to %q", got)
	}
	if got := cli(t, "logs", name); got.status != 0 || !strings.Contains(got.stdout, "  dockerbox-agent: version ") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	// Followed, it goes on as lines come, and ends with the sandbox.
	follow := exec.CommandContext(t.Context(), dockerboxBinary(t), "logs", "-f", "-n", "0", "--json", name)
	out, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func() (line string) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the log ended: %v", lines.Err())
		}
		var answer struct{ Time, Line string }
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		if at, err := time.Parse(time.RFC3339Nano, answer.Time); err != nil || time.Since(at) > time.Hour {
			t.Errorf("%q, %v", answer.Time, err)
		}
		return answer.Line
	}
	// It may begin after any of them, so they come until one is seen.
	seen, fed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(fed)
		for {
			if out, err := exec.Command(dockerboxBinary(t), "exec", name, "sh", "-c", "echo 'said inside' >/proc/1/fd/1").CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
				return
			}
			select {
			case <-seen:
				return
			default:
			}
		}
	}()
	if line := next(); line != "said inside" {
		t.Errorf("%q", line)
	}
	close(seen)
	<-fed
	if got := cli(t, "stop", name); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if err := follow.Wait(); err != nil || !strings.Contains(last, "everything is asked to end") {
		t.Errorf("%q, %v", last, err)
	}
	// Also of one that is stopped, and of its screen when it has one.
	if got := cli(t, "logs", "--since", "1h", "--tail", "1", name); got.status != 0 || strings.Count(got.stdout, "\n") != 1 || !strings.Contains(got.stdout, "asked to end") {
		t.Errorf("%+v", got)
	}
	if got := cli(t, "logs", "--desktop", name); got.status != contract.ExitBackend || !strings.Contains(got.stderr, "dockerbox desktop start "+name) {
		t.Errorf("%+v", got)
	}
	if got := cli(t, "desktop", "start", name); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	whole := cli(t, "logs", "--desktop", name)
	if whole.status != 0 || whole.stdout == "" {
		t.Errorf("%+v", whole)
	}
	if got := cli(t, "logs", "--desktop", "-n", "1", name); got.status != 0 || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("%+v", got)
	}
}

// usedBy is a sandbox in stats --json.
type usedBy struct {
	Address, State string
	CPU            float64  `json:"cpu_percent"`
	CPULimit       float64  `json:"cpu_limit"`
	Memory         float64  `json:"memory_bytes"`
	MemoryLimit    float64  `json:"memory_limit_bytes"`
	PIDs           float64  `json:"pids"`
	Up             float64  `json:"uptime_s"`
	Idle           *float64 `json:"idle_s"`
	Disk           *float64 `json:"disk_bytes"`
	Measured       bool
}

func TestStatsFromTheCommandLine(t *testing.T) {
	name := freshName("stats")
	t.Cleanup(func() { removeSandboxes(t, name, name+"-2") })
	for _, args := range [][]string{
		{"up", "--network", "none", "--cpus", "0.5", "--memory", "512m", name}, {"up", "--network", "none", name + "-2"},
		{"run", name, "head -c 50000000 /dev/zero >/dev/shm/f; head -c 3000000 /dev/urandom >/var/tmp/f; while :; do :; done >/dev/null 2>&1 &"},
	} {
		if got := cli(t, args...); got.status != 0 {
			t.Fatalf("%q: %+v", args, got)
		}
	}
	stats := func(args ...string) []usedBy {
		t.Helper()
		began := time.Now()
		got := cli(t, append([]string{"stats", "--json"}, args...)...)
		var answer struct{ Sandboxes []usedBy }
		if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || got.status != 0 || got.stderr != "" {
			t.Fatalf("%+v, %v", got, err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
		return answer.Sandboxes
	}
	list := stats("--full", name+"-2", name)
	if len(list) != 2 || list[0].Address != name {
		t.Fatalf("%+v", list)
	}
	busy, quiet := list[0], list[1]
	// Half a processor is the limit; a machine that is loaded gives less.
	if !busy.Measured || busy.CPU < 5 || busy.CPU > 75 || busy.CPULimit != 0.5 || busy.Memory < 50e6 || busy.Memory > 512<<20 || busy.MemoryLimit != 512<<20 || busy.PIDs < 3 || busy.Up <= 0 {
		t.Errorf("%+v", busy)
	}
	if busy.Idle == nil || *busy.Idle > 600 || busy.Disk == nil || *busy.Disk < 3e6 {
		t.Errorf("%+v", busy)
	}
	if !quiet.Measured || quiet.CPU > busy.CPU || quiet.Memory > busy.Memory || quiet.State != "running" {
		t.Errorf("%+v", quiet)
	}
	all := stats()
	if len(all) < 2 || all[0].Idle != nil {
		t.Errorf("%+v", all)
	}
	table := cli(t, "stats", name)
	if lines := strings.Split(strings.TrimSpace(table.stdout), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "NAME ") || !strings.Contains(lines[1], " of 0.5 ") || strings.Contains(table.stdout, "\x1b") {
		t.Errorf("%+v", table)
	}
	// Watching goes on until it is interrupted, which is no failure to talk about.
	watch := exec.CommandContext(t.Context(), dockerboxBinary(t), "stats", "--watch", "--json", name)
	var stderr bytes.Buffer
	watch.Stderr = &stderr
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 2 {
		if !lines.Scan() || !strings.Contains(lines.Text(), name) {
			t.Fatalf("%q, %v", lines.Text(), lines.Err())
		}
	}
	if err := watch.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		continue
	}
	_ = watch.Wait() // its status is looked at
	if got := watch.ProcessState.ExitCode(); got != contract.ExitInterrupted || stderr.Len() > 0 {
		t.Errorf("status %d, %q", got, stderr.String())
	}
	// What is paused does not move, and what is stopped is not there.
	if got := cli(t, "pause", name); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if list := stats(name); len(list) != 1 || list[0].State != "paused" || list[0].CPU > 1 {
		t.Errorf("%+v", list)
	}
	if got := cli(t, "stop", "-t", "0", name); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if list := stats(name); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if got := cli(t, "__complete", "stats", name); !strings.HasPrefix(got.stdout, name+"\texited, ") {
		t.Errorf("%+v", got)
	}
}

// A client that is given what is printed for it has the sandbox's screen, with nothing but PATH in its environment.
func TestMCPConfigStartsTheServer(t *testing.T) {
	name := freshName("mcp")
	t.Cleanup(func() { removeSandboxes(t, name) })
	if got := cli(t, "up", "--desktop", "--network", "none", name); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	for client, key := range map[string]string{"claude": "mcpServers", "cursor": "mcpServers", "vscode": "servers", "hermes": "mcp_servers"} {
		t.Run(client, func(t *testing.T) {
			got := cli(t, "mcp", "--print-config", client, name)
			if got.status != 0 || !strings.HasPrefix(got.stderr, "dockerbox: ") || strings.Count(got.stderr, "\n") != 1 {
				t.Fatalf("%+v", got)
			}
			text := []byte(got.stdout)
			if client == "hermes" { // as it reads its own configuration
				home := t.TempDir()
				if err := os.WriteFile(filepath.Join(home, "config.yaml"), text, 0o600); err != nil {
					t.Fatal(err)
				}
				read := exec.CommandContext(t.Context(), hermesPython(t), "-c", "import json; from hermes_cli.config import load_config; print(json.dumps({'mcp_servers': load_config()['mcp_servers']}))")
				read.Env = append(os.Environ(), "HERMES_HOME="+home)
				var err error
				if text, err = read.Output(); err != nil {
					t.Fatalf("%v: %v", read.Args, err)
				}
			}
			var config map[string]map[string]struct {
				Type, Command string
				Args          []string
				Env           map[string]string
			}
			if err := json.Unmarshal(text, &config); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			server, ok := config[key]["dockerbox-"+name]
			if !ok || !filepath.IsAbs(server.Command) || (server.Type == "stdio") != (client == "vscode") {
				t.Fatalf("%+v", config)
			}
			command := exec.Command(server.Command, server.Args...)
			command.Env, command.Dir = []string{"PATH=/usr/bin:/bin"}, "/"
			for variable, value := range server.Env {
				command.Env = append(command.Env, variable+"="+value)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			session, err := mcp.NewClient(&mcp.Implementation{Name: "dockerbox-test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tools, err := session.ListTools(ctx, nil)
			if err != nil || len(tools.Tools) < 60 {
				t.Errorf("%+v, %v", tools, err)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
