package provider

import (
	"context"
	"errors"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// create makes and starts a new container. An [engine.ErrConflict] means that the name was taken meanwhile. When it fails, nothing of what it
// made is left.
func (p *Provider) create(ctx context.Context, cfg contract.Config) (box, error) {
	if faults := extraArgsFaults(cfg); faults != nil { // of a record that a newer version has written
		return box{}, faults
	}
	info, err := p.describe(ctx)
	if err != nil {
		return box{}, err
	}
	ready, err := p.prepare(ctx, cfg.Image, cfg.User, volumeTargets(cfg.Mounts))
	if err != nil {
		return box{}, err
	}
	if cfg.Hardened() && ready.uid == wire.AttachUID {
		return box{}, reservedAccount()
	}
	f := facts{
		agentVolume: ready.agentVolume, user: ready.user, uid: ready.uid, gid: ready.gid, dir: ready.home, owner: owner(), version: p.version, created: time.Now(),
		noCPUs: !info.CPUCfsQuota && info.CgroupDriver != "none",
	}
	_, hasSeccomp := securityOption(&info, "seccomp")
	f.noSeccomp = !hasSeccomp
	if cfg.Hardened() && f.noSeccomp {
		return box{}, noFilter()
	}
	f.noHome, f.runtimeDir = ready.missing[ready.home], ready.runtimeDir
	if ready.ownHome {
		f.homeVariable = ready.home
	}
	if cfg.Persistent {
		f.home = ready.home
	}
	f.quota, _ = quotas(&info)
	f.boundsLog = boundsLog(info)
	s := newSpec(cfg, f)
	b := box{id: s.id, record: s.record}
	if err := p.makeVolumes(ctx, &b); err != nil {
		p.discard(ctx, b)
		return b, err
	}
	if err := p.createContainer(ctx, &b, cfg, f); err != nil {
		if errors.Is(err, engine.ErrConflict) {
			b.madeHome = false // who won the race mounts it
		}
		p.discard(ctx, b)
		return b, explainMount(err, cfg.Mounts)
	}
	b.created = true
	var unmade error
	if dirs := directories(b, ready, s.host); len(dirs) > 0 {
		unmade = p.makeDirectories(ctx, b, s, dirs)
	}
	// Also when that failed: of a mount that does not fit the daemon tells only when it starts the container.
	if err = p.engine.Start(ctx, b.containerID); err == nil {
		err = unmade
	}
	if err != nil {
		p.discard(ctx, b)
		return b, explainMount(err, cfg.Mounts)
	}
	p.logf("created sandbox %s from %s", b.id, cfg.Image)
	return b, nil
}

// makeVolumes makes the volumes of b's record that are missing: the daemon would make them, too, but then nobody knew which to remove
// when the container cannot be had.
func (p *Provider) makeVolumes(ctx context.Context, b *box) (err error) {
	if b.record.Home != "" {
		labels := map[string]string{labelKind: kindHome, labelName: b.id.name, labelProfile: b.id.profile}
		if b.madeHome, err = p.engine.CreateVolume(ctx, b.id.home(), labels); err != nil {
			return err
		}
	}
	for _, m := range b.record.Mounts {
		if m.IsHostPath() {
			continue
		}
		made, err := p.engine.CreateVolume(ctx, m.Source, nil) // not labelled: it is the user's
		if err != nil {
			return err
		}
		if made {
			b.madeVolumes = append(b.madeVolumes, m.Source)
		}
	}
	return nil
}

// createContainer makes the container, with a quota where the storage may have one. Only trying shows whether it has: what fails with a quota
// and works without has none.
func (p *Provider) createContainer(ctx context.Context, b *box, cfg contract.Config, f facts) error {
	for {
		s := newSpec(cfg, f)
		id, said, err := p.engine.Create(ctx, s.id.container(), s.config, s.host)
		if err == nil {
			b.containerID, b.said = id, said
			return nil
		}
		final := errors.Is(err, engine.ErrConflict) || errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrUnreachable) || ctx.Err() != nil
		if errors.Is(err, engine.ErrUnreachable) {
			b.containerID = p.lost(ctx, s)
		}
		if final || len(s.host.StorageOpt) == 0 {
			return err
		}
		p.logf("trying sandbox %s without a disk quota: %v", s.id, err)
		f.quota = false
	}
}
