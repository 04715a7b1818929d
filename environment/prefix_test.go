package environment

import (
	"slices"
	"strings"
	"testing"
)

func TestPrefixArgv(t *testing.T) {
	id := strings.Repeat("ab", 32)
	docker := Prefix{Docker: "/usr/bin/docker", ContainerID: id, Self: []string{"/opt/dockerbox"}, Name: "default"}
	remote := docker
	remote.CLIArgs = []string{"--host", "tcp://h:1"}
	self := Prefix{ContainerID: id, Self: []string{"/opt/dockerbox", "--host", "unix:///x.sock"}, Name: "work/default"}
	for _, tc := range []struct {
		p           Prefix
		user        string
		interactive bool
		want        string
	}{
		{docker, "", true, "/usr/bin/docker exec -i " + id},
		{docker, "pn", true, "/usr/bin/docker exec -i -u pn " + id},
		{docker, "4242:0", false, "/usr/bin/docker exec -u 4242:0 " + id},
		{remote, "", true, "/usr/bin/docker --host tcp://h:1 exec -i " + id},
		{self, "root", true, "/opt/dockerbox --host unix:///x.sock exec -i -u root work/default"},
	} {
		argv, err := tc.p.Argv(tc.user, tc.interactive)
		if err != nil || !slices.Equal(argv, strings.Fields(tc.want)) {
			t.Errorf("%q %v, want %q", argv, err, tc.want)
		}
	}
	if _, err := (Prefix{ContainerID: id}).Argv("", true); err == nil {
		t.Error("an argv was made of nothing")
	} else {
		backend(t, err)
	}
	// The slices handed in are not written to: two calls do not disturb each other.
	one, _ := remote.Argv("a", true)
	two, _ := remote.Argv("b", true)
	if one[6] != "a" || two[6] != "b" {
		t.Errorf("%q %q", one, two)
	}
}
