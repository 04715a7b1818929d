package provider_test

import (
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// The engine in memory is a daemon that drops every setting of security without a word: what runs in its containers is confined by nothing.
func TestAHardenedSandboxIsRefusedWhereItWouldNotBeHardened(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	cfg := fresh(e)()
	cfg.Security = contract.SecurityHardened
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "does not keep sandbox", "no-new-privileges does not apply", "can be written to", "choose another daemon")
	nothingIsLeft(t, e)
}

func TestAHardenedSandboxIsRefusedWithoutSeccomp(t *testing.T) {
	e := newEngine(t)
	info, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info.SecurityOptions = nil
	e.Describe(info)
	p := newProvider(t, e)
	cfg := fresh(e)()
	cfg.Security = contract.SecurityHardened
	_, err = p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "does not filter system calls", "CONFIG_SECCOMP_FILTER")
	nothingIsLeft(t, e)
	cfg.Security = contract.SecurityStandard
	prints(t, open(t, p, cfg), "echo fine", "fine\n")
}

// Who wants a living sandbox hardened is told of all that differs, and loses nothing.
func TestHardeningALivingSandbox(t *testing.T) {
	e := newEngine(t)
	p := newProvider(t, e)
	cfg := fresh(e)()
	prints(t, open(t, p, cfg), "echo kept >~/file", "")
	cfg.Security, cfg.Given = contract.SecurityHardened, []string{"security"}
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "security is standard, wanted hardened; network is bridge, wanted none", "--recreate")
	prints(t, open(t, p, contract.Config{Name: cfg.Name, Given: []string{}, Image: cfg.Image, Network: "none", Security: "standard"}), "nohup sleep 7301 >/dev/null 2>&1 &", "")
	cfg.Adapt = true
	_, err = p.CreateEnvironment(t.Context(), cfg, "")
	backendError(t, err, "is not hardened, as the settings want it, and a process runs in it (sleep)", "dockerbox stop", "keeps its home")
	cfg.Given, cfg.Adapt = []string{"cpus"}, false
	prints(t, open(t, p, cfg), "cat ~/file", "kept\n")
}
