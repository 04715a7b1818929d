package provider

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/docker/cli/opts"
	"github.com/docker/docker/api/types/container"
	"github.com/spf13/pflag"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// extraArgsKey is the key of faults in [contract.Config.ExtraArgs].
const extraArgsKey = "extra-args"

// extra is what flags of docker run have made of a container so far. What depends on several flags is settled when all are known.
type extra struct {
	config          *container.Config
	host            *container.HostConfig
	capAdd, capDrop []string
	ulimits         *opts.UlimitOpt
	gpus            opts.GpuOpts
}

// runFlag is a flag of docker run. One with set is accepted; any other is refused for a reason, which names the setting to use instead if
// there is one.
type runFlag struct {
	name, short string
	bare        bool // it takes no value
	value, doc  string
	set         func(x *extra, value string) bool // false: the value is not like value
	problem     func(value string) string         // of a value of the right form that is refused all the same, "" for none
	refused     string
}

// applyExtraArgs carries args out on a container that is otherwise complete, and returns everything wrong with them. No warning is given of
// what weakens a sandbox, such as --cap-add or --device: whoever writes a flag into a setting of that name has chosen it, and a warning at
// every start teaches people to read none.
func applyExtraArgs(args []string, config *container.Config, host *container.HostConfig) contract.Faults {
	x := &extra{config: config, host: host, ulimits: opts.NewUlimitOpt(nil)}
	var faults contract.Faults
	add := func(format string, args ...any) {
		f := contract.Fault{Key: extraArgsKey, Problem: fmt.Sprintf(format, args...)}
		if !slices.Contains(faults, f) {
			faults = append(faults, f)
		}
	}
	known := knownFlags()
	take := func(f *pflag.Flag, value string) error {
		if problem := x.take(known[f.Name], value); problem != "" {
			add("--%s: %s", f.Name, problem)
		}
		return nil
	}
	for rest := args; len(rest) > 0; {
		used := 1
		err := parser().ParseAll(rest[:1], take)
		var wants *pflag.ValueRequiredError
		if errors.As(err, &wants) && len(rest) > 1 {
			used = 2
			err = parser().ParseAll(rest[:2], take)
		}
		if problem := misread(rest[0], err); problem != "" {
			add("%s", problem)
		}
		rest = rest[used:]
	}
	x.finish()
	return faults
}

// take carries one flag out and returns what is wrong with it.
func (x *extra) take(f runFlag, value string) string {
	switch {
	case f.set == nil:
		return f.refused
	case f.problem != nil && f.problem(value) != "":
		return f.problem(value)
	case !f.set(x, value):
		return fmt.Sprintf("%.60q must be %s", value, f.value)
	default:
		return ""
	}
}

// misread says what is wrong with a word that the parser did not take for a known flag with its value.
func misread(word string, err error) string {
	var (
		unknown *pflag.NotExistError
		wants   *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &wants):
		return fmt.Sprintf("--%s needs a value", wants.GetFlag().Name)
	case !strings.HasPrefix(word, "-") || word == "-" || word == "--":
		return fmt.Sprintf("%.60q is no flag", word)
	case err == nil:
		return ""
	case strings.ContainsAny(word, " \t"):
		return fmt.Sprintf("%.60q is one word: write the flag and its value as two, or with \"=\" between them", word)
	case errors.As(err, &unknown):
		return fmt.Sprintf("%.60s is no flag of docker run that dockerbox knows", strings.SplitN(word, "=", 2)[0])
	default:
		return fmt.Sprintf("%.60q cannot be read as a flag of docker run", word)
	}
}

// parser reads the syntax of docker run's flags.
func parser() *pflag.FlagSet {
	set := pflag.NewFlagSet("docker run", pflag.ContinueOnError)
	for _, f := range dockerRunFlags {
		if f.bare {
			set.BoolP(f.name, f.short, false, "")
		} else {
			set.StringP(f.name, f.short, "", "")
		}
	}
	return set
}

func knownFlags() map[string]runFlag {
	known := make(map[string]runFlag, len(dockerRunFlags))
	for _, f := range dockerRunFlags {
		known[f.name] = f
	}
	return known
}

// needed are the capabilities the agent cannot do without: it becomes the account of each command, and ends any process.
var needed = []string{"KILL", "SETGID", "SETUID"}

// finish settles what depends on several flags. Capabilities are added to none, so dropping one of the usual means not adding it; to
// drop ALL leaves what the agent needs.
func (x *extra) finish() {
	if len(x.capAdd)+len(x.capDrop) > 0 {
		usual := x.host.CapAdd
		if slices.Contains(x.capDrop, opts.AllCapabilities) {
			usual = needed
		}
		x.host.CapAdd = nil
		for _, c := range slices.Concat(usual, x.capAdd) {
			if !slices.Contains(x.capDrop, c) && !slices.Contains(x.host.CapAdd, c) {
				x.host.CapAdd = append(x.host.CapAdd, c)
			}
		}
		if slices.Contains(x.capAdd, opts.AllCapabilities) { // all of the kernel's, without those dropped by name
			x.host.CapAdd, x.host.CapDrop = []string{opts.AllCapabilities}, append(slices.Clone(x.host.CapDrop), x.capDrop...)
		}
	}
	if list := x.ulimits.GetList(); len(list) > 0 {
		x.host.Ulimits = list
	}
	x.host.DeviceRequests = append(x.host.DeviceRequests, x.gpus.Value()...)
}

// capability is the name as dockerbox writes it, without its prefix.
func capability(value string) string {
	return strings.TrimPrefix(opts.NormalizeCapability(value), "CAP_")
}

// tmpfsProblem says why nothing can be mounted at the path of a --tmpfs.
func tmpfsProblem(value string) string {
	target, _, _ := strings.Cut(value, ":")
	target = path.Clean(target)
	if target == "/dev/shm" {
		return "use terminal.docker_shm_size for /dev/shm"
	}
	for _, dir := range []string{"/proc", "/sys", "/dev", agentDir} {
		if target == "/" || target == dir || strings.HasPrefix(target, dir+"/") {
			return fmt.Sprintf("nothing can be mounted at %.60s", target)
		}
	}
	return ""
}

// extraArgsFaults returns everything wrong with the flags of cfg, alone and beside its mounts. Pure.
func extraArgsFaults(cfg contract.Config) contract.Faults {
	var host container.HostConfig
	faults := applyExtraArgs(cfg.ExtraArgs, &container.Config{Labels: map[string]string{}}, &host)
	if cfg.Hardened() {
		faults = append(faults, hardenedFaults(cfg.ExtraArgs, &host)...)
	}
	for _, m := range cfg.Mounts {
		if _, taken := host.Tmpfs[m.Target]; taken {
			faults = append(faults, contract.Fault{Key: extraArgsKey, Problem: fmt.Sprintf("--tmpfs: a volume is mounted at %s already", m.Target)})
		}
	}
	return faults
}
