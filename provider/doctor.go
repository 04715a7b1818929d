package provider

import (
	"context"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	dockerimage "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/system"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
)

// Bounds of a doctor. All of it ends within 10 s: greetTime is for the first answer alone, so that a daemon that says nothing is named
// soon, and what lookTime leaves is for a probe container under way, which is made whole before it is taken away.
const (
	greetTime = 3 * time.Second
	lookTime  = 6 * time.Second
)

// findings are what a doctor saw. Rows judge it without a further look.
type findings struct {
	address string
	api     string // version of the API; empty when the daemon does not answer
	apiErr  error

	// Of a daemon that answers and speaks an API that will do.
	version    types.Version
	versionErr error
	info       *system.Info // nil with infoErr
	infoErr    error
	image      *dockerimage.InspectResponse // nil with imageErr
	imageErr   error
	probe      *probe // nil without image, and with probeErr
	probeErr   error
	boxes      []container.Summary
	boxesErr   error
	pulling    []string // sentences
}

// row is one check: whether there is enough to judge by, and the judgement.
type row struct {
	name  string
	needs func(findings) bool
	judge func(findings) verdict
}

// verdict is a [contract.Check] without its name.
type verdict struct {
	status         contract.CheckStatus
	detail, remedy string
}

func ok(detail string) verdict           { return verdict{contract.CheckOK, detail, ""} }
func warn(detail, remedy string) verdict { return verdict{contract.CheckWarn, detail, remedy} }
func fail(detail, remedy string) verdict { return verdict{contract.CheckFail, detail, remedy} }

// failed is the verdict of a look that did not work.
func failed(err error) verdict {
	if b, ok := asBackend(err); ok {
		return fail(b.Reason, b.Hint)
	}
	return fail(err.Error(), "try again; docker info tells whether the daemon is well")
}

// What rows need.
var (
	always    = func(findings) bool { return true }
	reachable = func(f findings) bool { return f.api != "" }
	spoken    = func(f findings) bool { return f.apiErr == nil }
	described = func(f findings) bool { return f.info != nil }
	probed    = func(f findings) bool { return f.probe != nil }
)

// rows are in the order in which one thing stands on another.
var rows = []row{
	{"daemon", always, daemonRow},
	{"API version", reachable, apiRow},
	{"engine", spoken, engineRow},
	{"disk limit", described, diskRow},
	{"seccomp", described, seccompRow},
	{"image", spoken, imageRow},
	{"pull", func(f findings) bool { return len(f.pulling) > 0 }, pullRow},
	{"agent", described, agentRow},
	{"container", func(f findings) bool { return f.probe != nil || f.probeErr != nil }, containerRow},
	{"memory limit", limitsKnown, memoryRow},
	{"CPU limit", limitsKnown, cpuRow},
	{"process limit", limitsKnown, processRow},
	{"user namespaces", probed, userNamespaceRow},
	{"sandboxes", spoken, sandboxRow},
}

// Doctor implements [contract.Doctor]: from the daemon's address up to the sandboxes there are. What cannot be looked at because something
// below it failed has no row. It ends within 10 s, also when nothing answers.
func (p *Provider) Doctor(ctx context.Context) []contract.Check {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	f := p.look(ctx)
	var checks []contract.Check
	for _, r := range rows {
		if r.needs(f) {
			v := r.judge(f)
			checks = append(checks, contract.Check{Name: r.name, Status: v.status, Detail: v.detail, Remedy: v.remedy})
		}
	}
	return checks
}

var _ contract.Doctor = (*Provider)(nil)

// look asks the daemon everything.
func (p *Provider) look(ctx context.Context) findings {
	f := findings{address: p.engine.Address()}
	f.api, f.apiErr = p.greet(ctx)
	if f.apiErr != nil {
		return f
	}
	f.version, f.versionErr = p.engine.Version(ctx)
	if info, err := p.engine.Info(ctx); err != nil {
		f.infoErr = err
	} else {
		f.info = &info
	}
	if found, err := p.engine.Image(ctx, image.DefaultTag); err != nil {
		f.imageErr = err
	} else {
		f.image = &found
		p.sweep(ctx)
		tryQuota := false
		if f.info != nil {
			tryQuota, _ = quotas(f.info)
		}
		f.probe, f.probeErr = p.tryContainer(ctx, found.ID, tryQuota)
	}
	f.pulling = p.background.underway()
	f.boxes, f.boxesErr = p.engine.List(ctx, labelName)
	return f
}

// greet is the first question to a daemon that may not answer.
func (p *Provider) greet(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	return p.engine.Ping(ctx)
}
