//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// rawDaemon asks the tests' daemon over HTTP. The table looks at it several hundred times, and a docker CLI for each would take longer than
// all the rows.
type rawDaemon struct {
	http *http.Client
	cpus int // of its machine
}

var (
	rawDaemonOnce sync.Once
	rawDaemonMade *rawDaemon
)

// theDaemon is the one that the docker CLI talks to.
func theDaemon(t *testing.T) *rawDaemon {
	t.Helper()
	rawDaemonOnce.Do(func() {
		network, address, ok := strings.Cut(docker(t, "context", "inspect", "-f", "{{.Endpoints.docker.Host}}"), "://")
		if !ok || network != "unix" && network != "tcp" {
			t.Fatalf("these tests reach their daemon by a unix socket or plain TCP, not by %s://%s", network, address)
		}
		d := &rawDaemon{http: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}}}
		var info struct{ NCPU int }
		d.ask(t, "/info", &info)
		d.cpus = info.NCPU
		rawDaemonMade = d
	})
	if rawDaemonMade == nil {
		t.Fatal("the daemon's address is not known: see the first test that failed")
	}
	return rawDaemonMade
}

// ask decodes the answer to a GET.
func (d *rawDaemon) ask(t *testing.T, path string, answer any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://daemon"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := d.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, response.Status, err)
	}
}

// objects lists all containers, volumes and tagged images, each as its kind, its names and its id.
func (d *rawDaemon) objects(t *testing.T) []string {
	t.Helper()
	var (
		containers []struct {
			ID     string `json:"Id"`
			Names  []string
			Labels map[string]string
		}
		volumes struct{ Volumes []struct{ Name string } }
		images  []struct {
			ID       string `json:"Id"`
			RepoTags []string
		}
		all []string
	)
	d.ask(t, "/containers/json?all=1", &containers)
	for _, c := range containers {
		all = append(all, fmt.Sprintf("container %s of %s, %s", strings.Join(c.Names, " "), c.Labels["dev.dockerbox.name"], c.ID))
	}
	d.ask(t, "/volumes", &volumes)
	for _, v := range volumes.Volumes {
		all = append(all, "volume "+v.Name)
	}
	d.ask(t, "/images/json", &images)
	for _, i := range images {
		all = append(all, fmt.Sprintf("image %s, %s", strings.Join(i.RepoTags, " "), i.ID))
	}
	return all
}
