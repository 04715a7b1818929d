package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/desktop"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

type upOptions struct {
	image, user, memory, disk, shm, network, profile string
	cpus                                             float64
	pids                                             int64
	env, envFiles, forward, volumes                  []string
	ephemeral, recreate, desktop, json               bool
}

func newUp(std streams, open opener) *cobra.Command {
	var o upOptions
	c := &cobra.Command{
		Use:        "up [OPTIONS] [NAME]",
		Short:      "Create a sandbox, or take the one of that name",
		SuggestFor: []string{"create"},
		Long: `Create the sandbox NAME ("default" when left out), or start and take the one that
exists; a second "up" changes nothing. The image is pulled when it is not there.

An existing sandbox keeps what no flag names. --cpus, --memory and --pids change
while it runs; where another flag differs, up lists the differences and refuses.
--recreate makes it anew: it keeps its home and what no flag names.

Variables of -e and --env-file are configuration: docker inspect shows them.
Secrets belong in "exec -e" and "run -e", or are named with --forward-env: then
exec and run take their values from the caller's environment, command by command,
and nothing keeps them.

With --profile hardened commands have no sudo and no capabilities, and write to
the home, the mounts, /tmp, /var/tmp and /dev/shm alone; there is no network unless
--network asks for it. What is in memory, such as /tmp, is gone after a stop.

A host path of -v must exist on the daemon's machine; one that begins with a dot
is relative to the directory up is called in. Any other word is a volume, which is
made when there is none, and stays when the sandbox is removed. What is mounted at
the home of the account takes the place of the volume that keeps the home.`,
		Args:        perhapsName,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := o.config(args, c.Flags(), os.LookupEnv)
			if err != nil {
				return err
			}
			return runUp(c.Context(), std, open, cfg, &o)
		},
	}
	c.Flags().AddFlagSet(o.flags())
	return c
}

// flags binds the options.
func (o *upOptions) flags() *pflag.FlagSet {
	d := contract.Defaults()
	f := pflag.NewFlagSet("up", pflag.ContinueOnError)
	f.StringVar(&o.image, "image", "", "image `REF` to start from (default the dockerbox image)")
	f.StringVar(&o.user, "user", "", "`ACCOUNT` commands run as, name or number with optional :group (default the image's)")
	f.Float64Var(&o.cpus, "cpus", d.CPUs, "`NUMBER` of cores it may use, 0 = no limit")
	f.StringVar(&o.memory, "memory", units.CustomSize("%.4g%s", float64(d.MemoryMB), 1024, []string{"m", "g"}), "memory limit, `SIZE` such as 512m or 5g, plain = bytes, 0 = no limit")
	f.Int64Var(&o.pids, "pids", d.PIDs, "most processes at a time, `NUMBER`, 0 = no limit")
	f.StringVar(&o.disk, "disk", units.CustomSize("%.4g%s", float64(d.DiskMB), 1024, []string{"m", "g"}), "limit of what is written outside the home and mounts, `SIZE`, 0 = no limit")
	f.StringVar(&o.shm, "shm-size", "1g", "`SIZE` of /dev/shm, 0 = the daemon's default")
	f.StringVar(&o.network, "network", d.Network, "`NAME` of the network: bridge or none, the default of --profile hardened")
	f.StringVar(&o.profile, "profile", d.Security, "`NAME` of the security profile: standard or hardened")
	f.StringArrayVarP(&o.env, "env", "e", nil, "set variable `K=V`; K alone takes the caller's value")
	f.StringArrayVar(&o.envFiles, "env-file", nil, "read variables from `FILE`, one K=V or K a line")
	f.StringArrayVar(&o.forward, "forward-env", nil, "variable `NAME` whose value goes along with each command")
	f.StringArrayVarP(&o.volumes, "volume", "v", nil, "mount `SRC:DST[:ro]`, SRC a host path or the name of a volume")
	f.BoolVar(&o.ephemeral, "ephemeral", false, "keep no home: it goes with the container")
	f.BoolVar(&o.recreate, "recreate", false, "make the container anew; the home is kept")
	f.BoolVar(&o.desktop, "desktop", false, "start its screen, too")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return f
}

// settingOf names, for each flag that says what the sandbox is to be like, the setting in [contract.Config.Given].
var settingOf = map[string]string{
	"image": "image", "user": "user", "cpus": "cpus", "memory": "memory_mb", "pids": "pids", "disk": "disk_mb", "shm-size": "shm_bytes",
	"network": "network", "profile": "security", "env": "env", "env-file": "env", "forward-env": "forward_env", "volume": "mounts", "ephemeral": "persistent",
}

// given lists the settings that were chosen. It is never nil, which would mean all.
func given(flags *pflag.FlagSet) []string {
	chosen := []string{}
	flags.Visit(func(f *pflag.Flag) {
		if key, shapes := settingOf[f.Name]; shapes && !slices.Contains(chosen, key) {
			chosen = append(chosen, key)
		}
	})
	slices.Sort(chosen)
	return chosen
}

// config translates the flags. All faults are reported at once.
func (o *upOptions) config(args []string, flags *pflag.FlagSet, lookup lookupEnv) (contract.Config, error) {
	cfg := contract.Defaults()
	if len(args) > 0 {
		cfg.Name = args[0]
	}
	cfg.Image, cfg.User, cfg.CPUs, cfg.PIDs, cfg.Network = o.image, o.user, o.cpus, o.pids, o.network
	cfg.Security = o.profile
	cfg.Persistent, cfg.Recreate = !o.ephemeral, o.recreate
	cfg.Given = given(flags)
	var faults contract.Faults
	memory, err := size(o.memory)
	if err != nil {
		faults = append(faults, contract.Fault{Key: "memory", Problem: err.Error()})
	}
	const mib = 1 << 20
	if memory > 0 && memory < contract.MinMemoryMB*mib {
		faults = append(faults, contract.Fault{
			Key: "memory", Problem: fmt.Sprintf("%.40q must be 0 (no limit) or at least %dm; a plain number counts bytes", o.memory, contract.MinMemoryMB),
		})
		memory = 0
	}
	disk, err := size(o.disk)
	if err != nil {
		faults = append(faults, contract.Fault{Key: "disk", Problem: err.Error()})
	}
	megabytes := func(n int64) int64 { return n/mib + (n%mib+mib-1)/mib } // up, so that a few bytes do not become "no limit"
	cfg.MemoryMB, cfg.DiskMB = megabytes(memory), megabytes(disk)
	if cfg.ShmBytes, err = size(o.shm); err != nil {
		faults = append(faults, contract.Fault{Key: "shm-size", Problem: err.Error()})
	}
	if cfg.Env, err = variables(o.env, o.envFiles, lookup); err != nil {
		var wrong contract.Faults
		if !errors.As(err, &wrong) {
			return cfg, err
		}
		faults = append(faults, wrong...)
	}
	for _, name := range o.forward {
		if before, _, found := strings.Cut(name, "="); found { // the value is not repeated: it may be a secret
			faults = append(faults, contract.Fault{Key: "forward-env", Problem: fmt.Sprintf("%.40q is enough: the value is taken from the caller's environment with each command", before)})
			continue
		}
		cfg.ForwardEnv = append(cfg.ForwardEnv, name)
	}
	if cfg.Mounts, err = mounts(o.volumes); err != nil {
		faults = append(faults, contract.Fault{Key: "volume", Problem: err.Error()})
	}
	for _, name := range []string{"image", "user"} { // an unset variable of a script must not turn into the default
		if value := flags.Lookup(name).Value.String(); value == "" && flags.Changed(name) {
			faults = append(faults, contract.Fault{Key: name, Problem: `"" is given; leave --` + name + " out for the default"})
		}
	}
	if faults = append(faults, provider.Check(cfg)...); len(faults) > 0 {
		return cfg, faults
	}
	return cfg, nil
}

// size reads 512m, 5g or a plain number of bytes.
func size(s string) (int64, error) {
	n, err := units.RAMInBytes(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.40q must be a number of bytes or a size such as 512m or 5g", s)
	case n < 0 || n == math.MaxInt64: // what does not fit becomes one of the two, by the machine's taste
		return 0, fmt.Errorf("%.40q is more than any machine has", s)
	case n == 0 && strings.ContainsAny(s, "123456789"):
		return 0, fmt.Errorf("%.40q is less than a byte", s)
	}
	return n, nil
}

// upAnswer is what up prints.
type upAnswer struct {
	Schema   int      `json:"schema"`
	Name     string   `json:"name"`
	ID       string   `json:"id"`
	Image    string   `json:"image"`
	User     string   `json:"user"`
	Home     string   `json:"home"`
	Created  bool     `json:"created"`
	Display  string   `json:"display,omitempty"` // of the screen, when one was asked for
	Warnings []string `json:"warnings"`
}

func runUp(ctx context.Context, std streams, open opener, cfg contract.Config, o *upOptions) error {
	bar := newPullProgress(std.err)
	p, err := open(provider.WithProgress(bar.report))
	if err != nil {
		return err
	}
	env, err := p.CreateEnvironment(ctx, cfg, contract.HomeDirectory)
	bar.done()
	if err != nil {
		return errors.Join(err, p.Close())
	}
	info := env.Info()
	for _, w := range info.Warnings {
		note(std.err, "warning: "+w)
	}
	// Without its screen the sandbox is there all the same, so the answer comes either way.
	var screen desktop.Status
	if o.desktop {
		screen, err = desktop.Start(ctx, env, desktop.Options{Profile: cfg.Profile})
	}
	return errors.Join(err, sayUp(std.out, info, screen.Display, o.json), p.Close())
}

// sayUp prints the answer; display is empty when no screen was started.
func sayUp(w io.Writer, info contract.Info, display string, asJSON bool) error {
	if asJSON {
		warnings := info.Warnings
		if warnings == nil {
			warnings = []string{}
		}
		return printJSON(w, upAnswer{schema, info.Name, info.ContainerID, info.Image, info.User, info.Home, info.Created, display, warnings})
	}
	if display != "" {
		display = "screen " + display + "\n"
	}
	return say(w, "name   %s\nid     %s\nimage  %s\nuser   %s\nhome   %s\n%s", info.Name, shortID(info.ContainerID), info.Image, info.User, shown(info.Home), display)
}
