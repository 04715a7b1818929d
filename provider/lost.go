package provider

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/docker/docker/api/types/container"
)

// A daemon may have made a container and its answer may be lost: then there is one whose id nobody knows.

// helper makes a container that never runs. Its name is its own, so that remove finds it also when the daemon's answer did not arrive.
// remove may be called more than once, and after the end of ctx.
func (p *Provider) helper(ctx context.Context, cfg *container.Config, host *container.HostConfig) (id string, remove func(), err error) {
	random := make([]byte, 6)
	_, _ = rand.Read(random) // it never fails
	name := "dockerbox-helper-" + hex.EncodeToString(random)
	remove = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardLimit)
		defer cancel()
		if err := p.engine.Remove(ctx, name); err != nil {
			p.logf("removing a helper container: %v", err)
		}
	}
	if id, _, err = p.engine.Create(ctx, name, cfg, host); err != nil {
		remove()
	}
	return id, remove, err
}

// lost finds the container of s that was made by this very call, after a failure that does not tell; "" when there is none. One that
// somebody else made under that name has another time of creation, and one that runs has been found and started by somebody.
func (p *Provider) lost(ctx context.Context, s spec) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardLimit)
	defer cancel()
	found, err := p.engine.Inspect(ctx, s.id.container())
	if err != nil || found.Config == nil || found.State == nil || found.State.Status != container.StateCreated {
		return ""
	}
	for _, label := range []string{labelCreated, labelOwner, labelSpec} {
		if found.Config.Labels[label] != s.config.Labels[label] {
			return ""
		}
	}
	return found.ID
}
