package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
)

// create makes and starts a new container. An [engine.ErrConflict] means that the name was taken meanwhile.
func (p *Provider) create(ctx context.Context, cfg contract.Config) (box, error) {
	ready, err := p.prepare(ctx, cfg.Image, cfg.User)
	if err != nil {
		return box{}, err
	}
	b := box{id: identity{cfg.Profile, cfg.Name}}
	f := facts{agentVolume: ready.agentVolume, user: ready.user, dir: ready.home, owner: owner(), version: p.version, created: time.Now()}
	switch {
	case !cfg.Persistent:
	case ready.home != "":
		f.home = ready.home
	default:
		b.warnings = append(b.warnings, fmt.Sprintf("user %s has no home in the image: what it keeps in its home does not outlive the container", ready.user))
	}
	s := newSpec(cfg, f)
	b.record = s.record
	if f.home != "" {
		labels := map[string]string{labelKind: kindHome, labelName: cfg.Name, labelProfile: cfg.Profile}
		if b.madeHome, err = p.engine.CreateVolume(ctx, b.id.home(), labels); err != nil {
			return b, err
		}
	}
	if b.containerID, _, err = p.engine.Create(ctx, b.id.container(), s.config, s.host); err != nil {
		// The volume stays on a conflict: the one who won the race mounts it.
		if b.madeHome && !errors.Is(err, engine.ErrConflict) {
			p.discard(ctx, b)
		}
		return b, err
	}
	b.created = true
	if err := p.engine.Start(ctx, b.containerID); err != nil {
		p.discard(ctx, b)
		return b, err
	}
	p.logf("created sandbox %s from %s", b.id, cfg.Image)
	return b, nil
}
