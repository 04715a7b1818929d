package provider

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

func parseMounts(texts ...string) []contract.Mount {
	var all []contract.Mount
	for _, text := range texts {
		all = append(all, contract.ParseMount(text))
	}
	return all
}

func TestATildeIsTheHomeOfWhoeverRunsIt(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	t.Setenv("USERPROFILE", "/home/me")
	given := parseMounts("~:/a", "~/x/../y:/b:ro", "/c//d/:/c", "volume:/d")
	got, err := ownHome(given)
	if diff := cmp.Diff(parseMounts("/home/me:/a", "/home/me/y:/b:ro", "/c/d:/c", "volume:/d"), got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if given[0].Source != "~" {
		t.Error("what was given has changed")
	}
	if err := os.Unsetenv("HOME"); err != nil { // t.Setenv puts it back
		t.Fatal(err)
	}
	var faults contract.Faults
	if _, err := ownHome(given); !errors.As(err, &faults) || !strings.Contains(err.Error(), `"~:/a"`) {
		t.Errorf("without a home: %v", err)
	}
	if _, err := ownHome(given[2:]); err != nil {
		t.Errorf("without a home and without ~: %v", err)
	}
}

func TestTheAgentsVolumeIsRefused(t *testing.T) {
	cfg := contract.Defaults()
	cfg.Mounts = parseMounts(agentVolumePrefix+"0123456789ab:/x", "dockerbox-home-x:/y")
	if got := Check(cfg).Error(); !strings.Contains(got, "holds the agent of every sandbox") || strings.Contains(got, "home-x") {
		t.Error(got)
	}
}

func TestTheAccountOwnsTheWayToItsMounts(t *testing.T) {
	image := preparedImage{uid: 4, gid: 5, home: "/home/pn"}
	for name, tc := range map[string]struct {
		mounts     []contract.Mount
		extra      []string
		ephemeral  bool
		missing    []string // in the image
		volumes    []string // made now
		own, fresh []string // without and with a mode of their own
	}{
		"nothing mounted":            {},
		"outside the home":           {mounts: parseMounts("/a:/x/y")},
		"in the home":                {mounts: parseMounts("/a:/home/pn/src")},
		"deep in the home":           {mounts: parseMounts("/a:/home/pn/.config/a/b", "/c:/home/pn/.config/c"), own: []string{"/home/pn/.config", "/home/pn/.config/a"}},
		"no kept home":               {mounts: parseMounts("/a:/home/pn/.config/a"), ephemeral: true, own: []string{"/home/pn/.config"}},
		"memory":                     {extra: []string{"--tmpfs=/home/pn/.cache/x"}, own: []string{"/home/pn/.cache"}},
		"in another mount":           {mounts: parseMounts("/a:/home/pn/src", "cache:/home/pn/src/deep/node_modules")},
		"the home is mounted":        {mounts: parseMounts("/a:/home/pn", "/b:/home/pn/x/y"), missing: []string{"/home/pn"}},
		"a name that begins alike":   {mounts: parseMounts("/a:/home/pn2/x/y")},
		"above the home":             {mounts: parseMounts("/a:/home", "/b:/home/pn/x/y"), own: []string{"/home/pn/x"}},
		"above a home that goes":     {mounts: parseMounts("/a:/home", "/b:/home/pn/x/y"), ephemeral: true, missing: []string{"/home/pn"}},
		"the image has no home":      {missing: []string{"/home/pn"}, fresh: []string{"/home/pn"}},
		"nor is it kept":             {missing: []string{"/home/pn"}, ephemeral: true, fresh: []string{"/home/pn"}},
		"a new volume":               {mounts: parseMounts("cache:/cache"), missing: []string{"/cache"}, volumes: []string{"cache"}, own: []string{"/cache"}},
		"where the image has files":  {mounts: parseMounts("cache:/cache"), volumes: []string{"cache"}},
		"a volume that was there":    {mounts: parseMounts("cache:/cache"), missing: []string{"/cache"}},
		"a new volume, read-only":    {mounts: parseMounts("cache:/cache:ro"), missing: []string{"/cache"}, volumes: []string{"cache"}},
		"a new volume in the home":   {mounts: parseMounts("vol:/home/pn/a/b"), missing: []string{"/home/pn/a/b"}, volumes: []string{"vol"}, own: []string{"/home/pn/a", "/home/pn/a/b"}},
		"a new volume over the home": {mounts: parseMounts("vol:/home/pn"), missing: []string{"/home/pn"}, volumes: []string{"vol"}, own: []string{"/home/pn"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := contract.Defaults()
			cfg.Mounts, cfg.ExtraArgs = tc.mounts, tc.extra
			f := facts{agentVolume: "agent"}
			if !tc.ephemeral {
				f.home = image.home
			}
			s := newSpec(cfg, f)
			ready := image
			ready.missing = map[string]bool{}
			for _, dir := range tc.missing {
				ready.missing[dir] = true
			}
			var want []engine.Directory
			for _, dir := range tc.fresh {
				want = append(want, engine.Directory{Path: dir, Mode: 0o700, UID: 4, GID: 5})
			}
			for _, dir := range tc.own {
				want = append(want, engine.Directory{Path: dir, UID: 4, GID: 5})
			}
			got := directories(box{record: s.record, madeVolumes: tc.volumes}, ready, s.host)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnEnginesSocketIsWarnedOf(t *testing.T) {
	for text, warned := range map[string]bool{
		"/var/run/docker.sock:/x": true, "/run/docker.sock:/x:ro": true, "/srv/docker.sock:/x": true, "/var/run:/x": true, "/run:/x": true, "/:/x:ro": true,
		"/own/engine:/x": true, "/own:/x": true, "/var:/x": true, "/run/podman:/x": true,
		"/srv:/x": false, "/run2:/x": false, "docker.sock:/x": false, "/var/lib:/x": false, "/var/run/other.sock:/x": false,
	} {
		got := mountWarnings(parseMounts(text), "unix:///own/engine")
		if (len(got) == 1) != warned || len(got) > 1 {
			t.Errorf("%s: %q", text, got)
		}
		// Who mounts a directory wants to know what the socket has to do with it.
		if within := !strings.Contains(text, "sock:") && !strings.Contains(text, "engine:"); warned && strings.Contains(got[0], "and with it") != within {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestMountFailuresAreSaidInTheUsersTerms(t *testing.T) {
	mounts := parseMounts("/no/such:/x:ro", "/no:/y", "volume:/z", "/etc/hosts:/etc/hosts.d")
	for said, want := range map[string]string{
		`invalid mount config for type "bind": bind source path does not exist: /no/such`:                                                                     "the host path /no/such, to be mounted at /x, does not exist on the daemon's machine",
		`invalid mount config for type "bind": bind source path does not exist: /no`:                                                                          "the host path /no, to be mounted at /y, does not exist on the daemon's machine",
		`statfs /no/such: no such file or directory`:                                                                                                          "the host path /no/such, to be mounted at /x, does not exist on the daemon's machine",
		`error mounting "/etc/hosts" to rootfs at "/etc/hosts.d": not a directory: unknown: Are you trying to mount a directory onto a file (or vice-versa)?`: "the host path /etc/hosts cannot be mounted at /etc/hosts.d: one is a file and the other a directory",
		`bind source path does not exist: /no/such/thing`:                                                                                                     "reason",
		`bind source path does not exist: /nowhere`:                                                                                                           "reason",
		`something about /no/such`: "reason",
	} {
		err := &contract.BackendError{Reason: "reason", Err: errors.New(said)}
		if got := explainMount(err, mounts); got.Error() != want {
			t.Errorf("%s\n got %s\nwant %s", said, got, want)
		}
	}
}
