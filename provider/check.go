package provider

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Check lists everything that is wrong with cfg and can be known without asking the daemon: what [contract.Config.Validate] finds and
// what only this backend knows. No I/O.
func Check(cfg contract.Config) contract.Faults {
	faults := cfg.Validate()
	if problem := imageProblem(cfg.Image); problem != "" {
		faults = append(faults, contract.Fault{Key: "image", Problem: problem})
	}
	faults = append(faults, mountFaults(cfg.Mounts)...)
	return append(faults, extraArgsFaults(cfg)...)
}

// Check is the function of that name, for those who have a provider alone.
func (p *Provider) Check(cfg contract.Config) contract.Faults { return Check(cfg) }

// imageProblem says why ref is no image reference, "" when it is one. An empty one is the default image.
func imageProblem(ref string) string {
	if ref == "" {
		return ""
	}
	if _, err := reference.ParseAnyReference(ref); err == nil {
		return ""
	}
	if _, err := reference.ParseAnyReference(strings.ToLower(ref)); err == nil {
		return fmt.Sprintf("%.60q must be in lower case up to the tag, such as debian:12", ref)
	}
	return fmt.Sprintf("%.60q must be an image reference, such as debian:12 or registry.example.com/team/image:tag", ref)
}
