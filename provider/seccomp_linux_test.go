package provider_test

import (
	"slices"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/image"
)

// A daemon whose kernel has no seccomp refuses to start a container with a profile.
func TestTheProfileIsSentWhereTheDaemonTakesIt(t *testing.T) {
	for name, test := range map[string]struct{ options, want []string }{
		"default profile":    {[]string{"name=apparmor", "name=seccomp,profile=default"}, []string{"seccomp=" + image.Seccomp()}},
		"unconfined":         {[]string{"name=seccomp,profile=unconfined"}, []string{"seccomp=" + image.Seccomp()}},
		"kernel without one": {[]string{"name=apparmor"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			info, err := e.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			info.SecurityOptions = test.options
			e.Describe(info)
			env := open(t, newProvider(t, e), fresh(e)())
			box, err := e.Inspect(t.Context(), env.Info().ContainerID)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(box.HostConfig.SecurityOpt, test.want) {
				t.Errorf("%d options, want %d: %.80q", len(box.HostConfig.SecurityOpt), len(test.want), box.HostConfig.SecurityOpt)
			}
		})
	}
}
