package provider

import (
	"testing"

	"github.com/docker/docker/api/types/system"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// A log that a daemon keeps in a file is bounded, unless its owner chose what becomes of it.
func TestLogsAreBounded(t *testing.T) {
	for driver, want := range map[string]bool{"json-file": true, "local": true, "journald": false, "none": false, "": false} {
		if got := boundsLog(system.Info{LoggingDriver: driver}); got != want {
			t.Errorf("%s: %v", driver, got)
		}
	}
	for name, tc := range map[string]struct {
		bounds bool
		args   []string
		size   string
	}{
		"bounded":           {true, nil, "512k"},
		"elsewhere":         {false, nil, ""},
		"a driver chosen":   {true, []string{"--log-driver", "none"}, ""},
		"an option chosen":  {true, []string{"--log-opt", "max-size=9m"}, "9m"},
		"another is chosen": {true, []string{"--log-opt", "labels=x"}, ""},
	} {
		cfg := contract.Defaults()
		cfg.ExtraArgs = tc.args
		if got := newSpec(cfg, facts{boundsLog: tc.bounds}).host.LogConfig.Config["max-size"]; got != tc.size {
			t.Errorf("%s: %q, want %q", name, got, tc.size)
		}
	}
}
