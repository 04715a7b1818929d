//go:build integration

package integration

import (
	"context"
	"crypto/rand"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/conformance"
	"github.com/hermes-dockerbox/dockerbox/contract"
)

// declaredByHermes are the cases that real Hermes does not hold for any backend, or cannot express. What they are about is held on the
// provider itself, and where Hermes has its own way of it by the Python tests beside this.
var declaredByHermes = func() map[string]string {
	const (
		words   = "Hermes runs shell text, never a list of words"
		streams = "Hermes's execute gives output when the command is over; streams go through exec_prefix"
		session = "Hermes gives no variables to a single execute; the plugin's own are held in pytests/hermes"
		bound   = "Hermes's bound is a setting (tool_output.max_bytes), not an argument"
		ports   = "Hermes connects to no ports of a backend"
		recall  = "Hermes names the directory it recorded with every command"
		kind    = "Hermes knows one kind of failure around a sandbox"
		// What it does about them is held in pytests/hermes.
		settings = "Hermes's factory takes the settings from its configuration, not from who asks"
		closed   = "the plugin's environment attaches again when it is used after cleanup()"
	)
	return map[string]string{
		"dial/refused":                       ports,
		"dial/ports-of-the-sandbox-alone":    ports,
		"dial/end-of-writing":                ports,
		"dial/end-of-reading":                ports,
		"dial/close-delivers":                ports,
		"dial/reset-shows":                   ports,
		"dial/broken-off":                    ports,
		"dial/side-by-side":                  ports,
		"attributes/faults-come-together":    kind,
		"directory/of-words":                 words,
		"directory/given-does-not-leak":      recall,
		"state/words-leave-it-alone":         words,
		"state/exact-words":                  words,
		"state/variables-of-one-command":     session,
		"state/transient-names":              session,
		"status/not-found-as-words":          words,
		"status/not-executable-as-words":     words,
		"kill/timed-out-by-the-caller":       "Hermes's caller can only interrupt",
		"output/bytes":                       "Hermes's output is text",
		"output/bounded":                     bound,
		"output/below-the-bound":             bound,
		"output/while-it-runs":               streams,
		"output/slow-reader":                 streams,
		"output/reader-that-fails":           streams,
		"output/apart":                       streams,
		"terminal/size-at-first-look":        words,
		"terminal/resize":                    words,
		"terminal/controls-the-session":      words,
		"terminal/kind":                      words,
		"terminal/status":                    words,
		"terminal/keys":                      words,
		"terminal/raw-bytes":                 words,
		"terminal/end-of-input":              words,
		"terminal/background-does-not-delay": words,
		"terminal/whole-tree":                words,
		"terminal/not-for-commands":          words,
		"life/handles-share-the-directory":   recall,
		"life/cleanup-ends-the-handle":       closed,
		"changes/not-given":                  settings,
		"changes/refused":                    settings,
		"changes/recreate":                   settings,
		"changes/adapt":                      settings,
		"changes/adapt-beside-a-job":         settings,
		"recreation/start-directory":         recall,
	}
}()

// The plugin, loaded by real Hermes and used through Hermes's own factory and methods, holds what Hermes can express of the contract.
func TestPluginHoldsTheContract(t *testing.T) {
	home := newHermesHome(t, "")
	b := newBridge(t, home)
	run, n := strings.ToLower(rand.Text()[:8]), 0
	fresh := func() contract.Config {
		cfg := contract.Defaults()
		n++
		cfg.Name = fmt.Sprintf("conformance-%s-%d", run, n)
		return cfg
	}
	s := conformance.Subject{
		Provider: b,
		Config:   fresh,
		Shared:   conformance.Share(fresh()),
		Discard: func(ctx context.Context, cfg contract.Config) error {
			return runQuiet(ctx, home.dockerbox, "rm", "-f", "task:"+cfg.Name)
		},
		Vanish: func(ctx context.Context, env contract.Environment) error {
			return runQuiet(ctx, "docker", "rm", "-f", env.Info().ContainerID)
		},
		Declared: declaredByHermes,
	}
	began, declared, total := time.Now(), 0, 0
	conformance.Run(t.Context(), s, conformance.Cases(), func(o conformance.Outcome) {
		total++
		if o.Status == conformance.Declared {
			declared++
		}
		report(t, o)
	})
	if err := s.Shared.Close(t.Context(), s); err != nil {
		t.Error(err)
	}
	t.Logf("%d cases, %d of them declared, in %s", total, declared, time.Since(began).Round(time.Millisecond))
}

func runQuiet(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, tail(out))
	}
	return nil
}

// default_cwd is read on every command, in Hermes's process: 10 000 times within 50 ms.
func TestPluginReadsDefaultCwdCheaply(t *testing.T) {
	const times, limit = 10_000, 50 * time.Millisecond
	b := newBridge(t, newHermesHome(t, ""))
	var seconds float64
	if err := b.ask(t.Context(), "read_default_cwd", map[string]any{"times": times}, &seconds); err != nil {
		t.Fatal(err)
	}
	if took := time.Duration(seconds * float64(time.Second)); took >= limit {
		t.Errorf("%d reads of default_cwd take %s, want less than %s", times, took, limit)
	}
}
