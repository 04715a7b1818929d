package provider

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/docker/cli/opts"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-units"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Reasons that several flags are refused for.
const (
	decided    = "dockerbox decides it"
	apart      = "a sandbox shares no namespace with the host"
	unpublish  = "ports are not published"
	bridged    = "a sandbox is on the daemon's bridge or on no network: use terminal.docker_network"
	useVolumes = "use terminal.docker_volumes"
	useCPU     = "use terminal.container_cpu"
	throttles  = "single devices are not throttled; --blkio-weight shares them"
	windows    = "it is for Windows containers"
	unhealthy  = "dockerbox looks at its sandboxes itself"
)

var (
	capabilityPattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	rulePattern       = regexp.MustCompile(`^[acb] (\d+|\*):(\d+|\*) [rwm]{1,3}$`)
	cdiPattern        = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*/[A-Za-z][A-Za-z0-9_.-]*=[A-Za-z0-9][A-Za-z0-9_.:-]*$`)
	devicePattern     = regexp.MustCompile(`^(/[^:]*)(?::(/[^:]*))?(?::([rwm]{1,3}))?$`)
	namePattern       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	cpusetPattern     = regexp.MustCompile(`^\d+(-\d+)?(,\d+(-\d+)?)*$`)
)

// dockerRunFlags are those of docker run 28: first the accepted ones, as the documentation lists them.
var dockerRunFlags = []runFlag{
	{
		name: "add-host", value: "HOST:ADDRESS or HOST:host-gateway", doc: "a line in /etc/hosts",
		set: valid(opts.ValidateExtraHost, func(x *extra, v string) { x.host.ExtraHosts = append(x.host.ExtraHosts, v) }),
	},
	{
		name: "blkio-weight", value: "0 or a number from 10 to 1000", doc: "its share of disk time",
		set: func(x *extra, v string) bool {
			n, err := strconv.ParseUint(v, 10, 16)
			x.host.BlkioWeight = uint16(n)
			return err == nil && (n == 0 || n >= 10 && n <= 1000)
		},
	},
	{
		name: "cap-add", value: "the name of a capability, or ALL", doc: "a capability beyond the usual ones",
		set: func(x *extra, v string) bool {
			x.capAdd = append(x.capAdd, capability(v))
			return capabilityPattern.MatchString(capability(v))
		},
	},
	{
		name: "cap-drop", value: "the name of a capability, or ALL", doc: "a capability to take away; ALL leaves KILL, SETGID and SETUID, which the agent needs",
		set: func(x *extra, v string) bool {
			x.capDrop = append(x.capDrop, capability(v))
			return capabilityPattern.MatchString(capability(v))
		},
		problem: func(v string) string {
			for _, c := range needed {
				if capability(v) == c {
					return "the agent needs " + c
				}
			}
			return ""
		},
	},
	{name: "cgroup-parent", value: "the name of a control group", doc: "control group that its own is made in", set: text(func(x *extra, v string) { x.host.CgroupParent = v })},
	{
		name: "cpu-shares", short: "c", value: "a whole number, 0 or more", doc: "its share of the processors when they are busy",
		set: number(0, 1<<18, func(x *extra, n int64) { x.host.CPUShares = n }),
	},
	{name: "cpuset-cpus", value: "numbers of processors, such as 0-2,4", doc: "processors it may use", set: matching(cpusetPattern, func(x *extra, v string) { x.host.CpusetCpus = v })},
	{name: "cpuset-mems", value: "numbers of memory nodes, such as 0,1", doc: "memory nodes it may use", set: matching(cpusetPattern, func(x *extra, v string) { x.host.CpusetMems = v })},
	{name: "device", value: "/dev/NAME, /dev/NAME:/dev/INSIDE:rwm, or VENDOR/CLASS=NAME", doc: "a device of the daemon's machine", set: setDevice},
	{
		name: "device-cgroup-rule", value: "a rule such as \"c 189:* rwm\"", doc: "devices it may open",
		set: matching(rulePattern, func(x *extra, v string) { x.host.DeviceCgroupRules = append(x.host.DeviceCgroupRules, v) }),
	},
	{name: "dns", value: "an IP address", doc: "a name server", set: valid(opts.ValidateIPAddress, func(x *extra, v string) { x.host.DNS = append(x.host.DNS, v) })},
	{name: "dns-opt", value: "an option of resolv.conf", doc: "as --dns-option", set: text(addDNSOption)},
	{name: "dns-option", value: "an option of resolv.conf", doc: "an option of resolv.conf", set: text(addDNSOption)},
	{
		name: "dns-search", value: "a domain, or . for none", doc: "a domain to look names up in",
		set: valid(opts.ValidateDNSSearch, func(x *extra, v string) { x.host.DNSSearch = append(x.host.DNSSearch, v) }),
	},
	{name: "gpus", value: "all, a number, or a list such as device=0", doc: "graphics processors", set: func(x *extra, v string) bool { return v != "" && x.gpus.Set(v) == nil }},
	{
		name: "group-add", value: "a group of the image, or a number up to 2147483647", doc: "a group that every account in the sandbox is in besides",
		set: func(x *extra, v string) bool {
			x.host.GroupAdd = append(x.host.GroupAdd, v)
			return namePattern.MatchString(v) && contract.ValidUser("x:"+v)
		},
	},
	{
		name: "label", short: "l", value: "KEY or KEY=VALUE", doc: "a label of the container, not one that begins with " + labelPrefix,
		set: valid(opts.ValidateLabel, func(x *extra, v string) {
			key, value, _ := strings.Cut(v, "=")
			x.config.Labels[key] = value
		}),
		problem: func(v string) string {
			if strings.HasPrefix(v, labelPrefix) {
				return "labels that begin with " + labelPrefix + " are dockerbox's own"
			}
			return ""
		},
	},
	{name: "log-driver", value: "the name of a log driver", doc: "where the container's own log goes", set: matching(namePattern, func(x *extra, v string) { x.host.LogConfig.Type = v })},
	{
		name: "log-opt", value: "KEY=VALUE", doc: "an option of the log driver",
		set: pair(func(x *extra, k, v string) {
			if x.host.LogConfig.Config == nil {
				x.host.LogConfig.Config = map[string]string{}
			}
			x.host.LogConfig.Config[k] = v
		}),
	},
	{name: "memory-reservation", value: "a size such as 512m", doc: "memory it is pushed back to when the machine is short of it", set: size(func(x *extra, n int64) { x.host.MemoryReservation = n })},
	{
		name: "memory-swap", value: "a size such as 2g, or -1 for no limit", doc: "memory and swap together; without it as much swap as memory",
		set: func(x *extra, v string) bool {
			var n opts.MemSwapBytes
			err := n.Set(v)
			x.host.MemorySwap = n.Value()
			return err == nil && n.Value() != 0
		},
	},
	{
		name: "memory-swappiness", value: "a number from 0 to 100, or -1", doc: "how readily its memory is swapped out",
		set: number(-1, 100, func(x *extra, n int64) { x.host.MemorySwappiness = &n }),
	},
	{
		name: "oom-score-adj", value: "a number from -1000 to 1000", doc: "how readily it is ended when the machine is out of memory",
		set: number(-1000, 1000, func(x *extra, n int64) { x.host.OomScoreAdj = int(n) }),
	},
	{name: "runtime", value: "the name of a runtime of the daemon", doc: "what runs the container, such as runsc", set: text(func(x *extra, v string) { x.host.Runtime = v })},
	{
		name: "security-opt", value: "label=… or apparmor=…", doc: "an SELinux label or an AppArmor profile",
		set: func(x *extra, v string) bool {
			x.host.SecurityOpt = append(x.host.SecurityOpt, v)
			kind, of, _ := strings.Cut(v, "=")
			return of != "" && (kind == "label" || kind == "apparmor")
		},
		problem: func(v string) string {
			switch kind := strings.FieldsFunc(v, func(r rune) bool { return r == '=' || r == ':' }); {
			case len(kind) > 0 && kind[0] == "no-new-privileges":
				return "no-new-privileges would take sudo away from the sandbox; terminal.backends.dockerbox.security: hardened does that, and what goes with it"
			case len(kind) > 0 && (kind[0] == "seccomp" || kind[0] == "systempaths"):
				return kind[0] + " is what keeps the sandbox in: " + decided
			default:
				return ""
			}
		},
	},
	{
		name: "sysctl", value: "NAME=VALUE of net.*, fs.mqueue.* or the kernel.shm*, kernel.msg* and kernel.sem limits", doc: "a setting of the sandbox's own kernel namespaces",
		set: valid(opts.ValidateSysctl, func(x *extra, v string) {
			if x.host.Sysctls == nil {
				x.host.Sysctls = map[string]string{}
			}
			key, value, _ := strings.Cut(v, "=")
			x.host.Sysctls[key] = value
		}),
	},
	{
		name: "tmpfs", value: "an absolute path, with options such as /tmp:size=64m,exec", doc: "a directory in memory", problem: tmpfsProblem,
		set: func(x *extra, v string) bool {
			if x.host.Tmpfs == nil {
				x.host.Tmpfs = map[string]string{}
			}
			target, options, _ := strings.Cut(v, ":")
			x.host.Tmpfs[path.Clean(target)] = options
			return path.IsAbs(target)
		},
	},
	{name: "ulimit", value: "NAME=SOFT or NAME=SOFT:HARD, NAME one that docker knows, such as nofile", doc: "a limit of each process", set: func(x *extra, v string) bool { return x.ulimits.Set(v) == nil }},

	{name: "annotation", refused: "annotations speak to the runtime, behind dockerbox's back"},
	{name: "attach", short: "a", refused: decided},
	{name: "blkio-weight-device", refused: throttles},
	{name: "cgroupns", refused: apart},
	{name: "cidfile", refused: "dockerbox up --json prints the id"},
	{name: "cpu-count", refused: windows},
	{name: "cpu-percent", refused: windows},
	{name: "cpu-period", refused: useCPU},
	{name: "cpu-quota", refused: useCPU},
	{name: "cpu-rt-period", refused: useCPU},
	{name: "cpu-rt-runtime", refused: useCPU},
	{name: "cpus", refused: useCPU},
	{name: "detach", short: "d", bare: true, refused: decided},
	{name: "detach-keys", refused: decided},
	{name: "device-read-bps", refused: throttles},
	{name: "device-read-iops", refused: throttles},
	{name: "device-write-bps", refused: throttles},
	{name: "device-write-iops", refused: throttles},
	{name: "disable-content-trust", bare: true, refused: "pull the image with docker beforehand"},
	{name: "domainname", refused: decided},
	{name: "entrypoint", refused: decided + ": the agent keeps the container alive"},
	{name: "env", short: "e", refused: "use terminal.docker_env, or for secrets terminal.docker_forward_env"},
	{name: "env-file", refused: "use terminal.docker_env"},
	{name: "expose", refused: unpublish},
	{name: "health-cmd", refused: unhealthy},
	{name: "health-interval", refused: unhealthy},
	{name: "health-retries", refused: unhealthy},
	{name: "health-start-interval", refused: unhealthy},
	{name: "health-start-period", refused: unhealthy},
	{name: "health-timeout", refused: unhealthy},
	{name: "help", bare: true, refused: "docker run --help says it"},
	{name: "hostname", short: "h", refused: decided + ": locks in the kept home name it"},
	{name: "init", bare: true, refused: decided + ": the agent collects orphans"},
	{name: "interactive", short: "i", bare: true, refused: decided},
	{name: "io-maxbandwidth", refused: windows},
	{name: "io-maxiops", refused: windows},
	{name: "ip", refused: bridged},
	{name: "ip6", refused: bridged},
	{name: "ipc", refused: apart},
	{name: "isolation", refused: windows},
	{name: "kernel-memory", refused: "Docker does not have it any more; use terminal.container_memory"},
	{name: "label-file", refused: "use --label"},
	{name: "link", refused: bridged},
	{name: "link-local-ip", refused: bridged},
	{name: "mac-address", refused: bridged},
	{name: "memory", short: "m", refused: "use terminal.container_memory"},
	{name: "mount", refused: useVolumes + "; --tmpfs for memory"},
	{name: "name", refused: decided + "; terminal.backends.dockerbox.sandbox chooses the sandbox"},
	{name: "net", refused: "use terminal.docker_network"},
	{name: "net-alias", refused: bridged},
	{name: "network", refused: "use terminal.docker_network"},
	{name: "network-alias", refused: bridged},
	{name: "no-healthcheck", bare: true, refused: unhealthy},
	{name: "oom-kill-disable", bare: true, refused: "a sandbox out of memory must end, not hang"},
	{name: "pid", refused: apart},
	{name: "pids-limit", refused: "use terminal.backends.dockerbox.pids"},
	{name: "platform", refused: "the agent is for the daemon's own processor"},
	{name: "privileged", bare: true, refused: "a privileged container is no sandbox; --cap-add and --device give single rights"},
	{name: "publish", short: "p", refused: unpublish},
	{name: "publish-all", short: "P", bare: true, refused: unpublish},
	{name: "pull", refused: "an image that is missing is pulled; docker pull fetches a newer one"},
	{name: "quiet", short: "q", bare: true, refused: decided},
	{name: "read-only", bare: true, refused: "commands must be able to write; terminal.backends.dockerbox.security: hardened leaves them the home and /tmp; mount what must not change with :ro in terminal.docker_volumes"},
	{name: "restart", refused: decided + ": the next command starts a sandbox that ended"},
	{name: "rm", bare: true, refused: "use terminal.container_persistent"},
	{name: "shm-size", refused: "use terminal.docker_shm_size"},
	{name: "sig-proxy", bare: true, refused: decided},
	{name: "stop-signal", refused: decided},
	{name: "stop-timeout", refused: decided},
	{name: "storage-opt", refused: "use terminal.container_disk"},
	{name: "tty", short: "t", bare: true, refused: decided},
	{name: "use-api-socket", bare: true, refused: "whoever has the daemon's socket controls its machine"},
	{name: "user", short: "u", refused: "use terminal.backends.dockerbox.user or terminal.docker_run_as_host_user"},
	{name: "userns", refused: apart},
	{name: "uts", refused: apart},
	{name: "volume", short: "v", refused: useVolumes},
	{name: "volume-driver", refused: "make the volume with docker volume create and name it in terminal.docker_volumes"},
	{name: "volumes-from", refused: useVolumes},
	{name: "workdir", short: "w", refused: "use terminal.cwd"},
}

func addDNSOption(x *extra, v string) { x.host.DNSOptions = append(x.host.DNSOptions, v) }

// setDevice reads HOST[:INSIDE][:rwm], or the name of a device that the daemon's machine describes (CDI).
func setDevice(x *extra, v string) bool {
	if cdiPattern.MatchString(v) {
		x.host.DeviceRequests = append(x.host.DeviceRequests, container.DeviceRequest{Driver: "cdi", DeviceIDs: []string{v}})
		return true
	}
	part := devicePattern.FindStringSubmatch(v)
	if part == nil {
		return false
	}
	d := container.DeviceMapping{PathOnHost: part[1], PathInContainer: part[2], CgroupPermissions: part[3]}
	if d.PathInContainer == "" {
		d.PathInContainer = d.PathOnHost
	}
	if d.CgroupPermissions == "" {
		d.CgroupPermissions = "rwm"
	}
	x.host.Devices = append(x.host.Devices, d)
	return true
}

// The kinds of values.

// valid takes what one of docker's own checks accepts, as that gives it back.
func valid(check func(string) (string, error), set func(*extra, string)) func(*extra, string) bool {
	return func(x *extra, v string) bool {
		v, err := check(v)
		if err == nil {
			set(x, v)
		}
		return err == nil
	}
}

func matching(pattern *regexp.Regexp, set func(*extra, string)) func(*extra, string) bool {
	return func(x *extra, v string) bool {
		set(x, v)
		return pattern.MatchString(v)
	}
}

// text takes anything but nothing.
func text(set func(*extra, string)) func(*extra, string) bool {
	return func(x *extra, v string) bool {
		set(x, v)
		return strings.TrimSpace(v) != ""
	}
}

func pair(set func(x *extra, key, value string)) func(*extra, string) bool {
	return func(x *extra, v string) bool {
		key, value, ok := strings.Cut(v, "=")
		set(x, key, value)
		return ok && key != ""
	}
}

func number(least, most int64, set func(*extra, int64)) func(*extra, string) bool {
	return func(x *extra, v string) bool {
		n, err := strconv.ParseInt(v, 10, 64)
		set(x, n)
		return err == nil && n >= least && n <= most
	}
}

func size(set func(*extra, int64)) func(*extra, string) bool {
	return func(x *extra, v string) bool {
		n, err := units.RAMInBytes(v)
		set(x, n)
		return err == nil
	}
}

// extraArgsTable is the list of accepted flags in the documentation.
func extraArgsTable() string {
	var b strings.Builder
	b.WriteString("| flag | value | meaning |\n|---|---|---|\n")
	for _, f := range dockerRunFlags {
		if f.set != nil {
			fmt.Fprintf(&b, "| `--%s` | %s | %s |\n", f.name, strings.ReplaceAll(f.value, "|", `\|`), f.doc)
		}
	}
	return b.String()
}
