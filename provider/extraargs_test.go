package provider

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// acceptedArgs are flags that are carried out, with what each makes of a container. Together they make a golden file.
var acceptedArgs = []struct {
	args []string
	want func(*container.Config, *container.HostConfig)
}{
	{[]string{"--add-host=db:10.0.0.7"}, func(_ *container.Config, h *container.HostConfig) { h.ExtraHosts = []string{"db:10.0.0.7"} }},
	{[]string{"--add-host", "up=host-gateway"}, func(_ *container.Config, h *container.HostConfig) { h.ExtraHosts = []string{"up:host-gateway"} }},
	{[]string{"--blkio-weight", "300"}, func(_ *container.Config, h *container.HostConfig) { h.BlkioWeight = 300 }},
	{[]string{"--cap-add=cap_net_admin"}, func(_ *container.Config, h *container.HostConfig) { h.CapAdd = append(usual(), "NET_ADMIN") }},
	{[]string{"--cap-drop", "AUDIT_WRITE"}, func(_ *container.Config, h *container.HostConfig) { h.CapAdd = without(usual(), "AUDIT_WRITE") }},
	{[]string{"--cgroup-parent=/boxes"}, func(_ *container.Config, h *container.HostConfig) { h.CgroupParent = "/boxes" }},
	{[]string{"-c", "512"}, func(_ *container.Config, h *container.HostConfig) { h.CPUShares = 512 }},
	{[]string{"--cpuset-cpus=0-1,3"}, func(_ *container.Config, h *container.HostConfig) { h.CpusetCpus = "0-1,3" }},
	{[]string{"--cpuset-mems", "0"}, func(_ *container.Config, h *container.HostConfig) { h.CpusetMems = "0" }},
	{[]string{"--device=/dev/fuse"}, func(_ *container.Config, h *container.HostConfig) {
		h.Devices = []container.DeviceMapping{{PathOnHost: "/dev/fuse", PathInContainer: "/dev/fuse", CgroupPermissions: "rwm"}}
	}},
	{[]string{"--device", "/dev/sda:/dev/disk:r"}, func(_ *container.Config, h *container.HostConfig) {
		h.Devices = []container.DeviceMapping{{PathOnHost: "/dev/sda", PathInContainer: "/dev/disk", CgroupPermissions: "r"}}
	}},
	{[]string{"--device=/dev/kvm:rw"}, func(_ *container.Config, h *container.HostConfig) {
		h.Devices = []container.DeviceMapping{{PathOnHost: "/dev/kvm", PathInContainer: "/dev/kvm", CgroupPermissions: "rw"}}
	}},
	{[]string{"--device=nvidia.com/gpu=all"}, func(_ *container.Config, h *container.HostConfig) {
		h.DeviceRequests = []container.DeviceRequest{{Driver: "cdi", DeviceIDs: []string{"nvidia.com/gpu=all"}}}
	}},
	{[]string{"--device-cgroup-rule", "c 189:* rwm"}, func(_ *container.Config, h *container.HostConfig) {
		h.DeviceCgroupRules = []string{"c 189:* rwm"}
	}},
	{[]string{"--dns=1.1.1.1", "--dns", "::1"}, func(_ *container.Config, h *container.HostConfig) { h.DNS = []string{"1.1.1.1", "::1"} }},
	{[]string{"--dns-opt=ndots:1", "--dns-option", "rotate"}, func(_ *container.Config, h *container.HostConfig) {
		h.DNSOptions = []string{"ndots:1", "rotate"}
	}},
	{[]string{"--dns-search", "."}, func(_ *container.Config, h *container.HostConfig) { h.DNSSearch = []string{"."} }},
	{[]string{"--gpus=2"}, func(_ *container.Config, h *container.HostConfig) {
		h.DeviceRequests = []container.DeviceRequest{{Count: 2, Capabilities: [][]string{{"gpu"}}, Options: map[string]string{}}}
	}},
	{[]string{"--group-add", "video", "--group-add=44"}, func(_ *container.Config, h *container.HostConfig) { h.GroupAdd = []string{"video", "44"} }},
	{[]string{"-l", "a=b=c", "--label=alone"}, func(c *container.Config, _ *container.HostConfig) {
		c.Labels["a"], c.Labels["alone"] = "b=c", ""
	}},
	{[]string{"--log-driver", "local", "--log-opt=max-size=1m"}, func(_ *container.Config, h *container.HostConfig) {
		h.LogConfig = container.LogConfig{Type: "local", Config: map[string]string{"max-size": "1m"}}
	}},
	{[]string{"--memory-reservation=100m"}, func(_ *container.Config, h *container.HostConfig) { h.MemoryReservation = 100 << 20 }},
	{[]string{"--memory-swap", "-1"}, func(_ *container.Config, h *container.HostConfig) { h.MemorySwap = -1 }},
	{[]string{"--memory-swap=6g"}, func(_ *container.Config, h *container.HostConfig) { h.MemorySwap = 6 << 30 }},
	{[]string{"--memory-swappiness=0"}, func(_ *container.Config, h *container.HostConfig) { h.MemorySwappiness = new(int64) }},
	{[]string{"--oom-score-adj", "-500"}, func(_ *container.Config, h *container.HostConfig) { h.OomScoreAdj = -500 }},
	{[]string{"--runtime=runsc"}, func(_ *container.Config, h *container.HostConfig) { h.Runtime = "runsc" }},
	{[]string{"--security-opt=label=disable", "--security-opt", "apparmor=box"}, func(_ *container.Config, h *container.HostConfig) {
		h.SecurityOpt = []string{"label=disable", "apparmor=box"}
	}},
	{[]string{"--sysctl", "net.ipv4.ip_unprivileged_port_start=0"}, func(_ *container.Config, h *container.HostConfig) {
		h.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}
	}},
	{[]string{"--tmpfs=/tmp/:size=64m,exec", "--tmpfs", "/scratch"}, func(_ *container.Config, h *container.HostConfig) {
		h.Tmpfs = map[string]string{"/tmp": "size=64m,exec", "/scratch": ""}
	}},
	{[]string{"--ulimit=nofile=10:20", "--ulimit", "core=0", "--ulimit=nofile=30"}, func(_ *container.Config, h *container.HostConfig) {
		h.Ulimits = []*container.Ulimit{{Name: "core"}, {Name: "nofile", Soft: 30, Hard: 30}}
	}},
}

func usual() []string { return slices.Clone(capabilities) }

func without(list []string, gone string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == gone })
}

// blank is a container before flags.
func blank() (*container.Config, *container.HostConfig) {
	return &container.Config{Labels: map[string]string{}}, &container.HostConfig{CapDrop: []string{"ALL"}, CapAdd: usual()}
}

func TestExtraArgsAreCarriedOut(t *testing.T) {
	cases := slices.Concat(acceptedArgs, []struct {
		args []string
		want func(*container.Config, *container.HostConfig)
	}{
		{nil, func(*container.Config, *container.HostConfig) {}},
		{[]string{"--cap-add=ALL"}, func(_ *container.Config, h *container.HostConfig) { h.CapAdd = []string{"ALL"} }},
		{[]string{"--cap-add=ALL", "--cap-drop=SYS_ADMIN"}, func(_ *container.Config, h *container.HostConfig) {
			h.CapAdd, h.CapDrop = []string{"ALL"}, []string{"ALL", "SYS_ADMIN"}
		}},
		{[]string{"--cap-drop=all"}, func(_ *container.Config, h *container.HostConfig) { h.CapAdd = []string{"KILL", "SETGID", "SETUID"} }},
		{[]string{"--cap-drop=ALL", "--cap-add=CHOWN"}, func(_ *container.Config, h *container.HostConfig) {
			h.CapAdd = []string{"KILL", "SETGID", "SETUID", "CHOWN"}
		}},
		{[]string{"--cap-add=CHOWN"}, func(*container.Config, *container.HostConfig) {}}, // it is there already
		{[]string{"-c512"}, func(_ *container.Config, h *container.HostConfig) { h.CPUShares = 512 }},
		{[]string{"--runtime=a", "--runtime=b"}, func(_ *container.Config, h *container.HostConfig) { h.Runtime = "b" }},
	})
	for _, tc := range cases {
		config, host := blank()
		wantConfig, wantHost := blank()
		tc.want(wantConfig, wantHost)
		if faults := applyExtraArgs(tc.args, config, host); faults != nil {
			t.Errorf("%q: %v", tc.args, faults)
		}
		if diff := cmp.Diff(wantConfig, config) + cmp.Diff(wantHost, host); diff != "" {
			t.Errorf("%q: -want +got\n%s", tc.args, diff)
		}
	}
}

func TestExtraArgsAreRefusedWithTheirReasons(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string // problems, joined
	}{
		{[]string{"-v", "/a:/b"}, "--volume: use terminal.docker_volumes"},
		{[]string{"--volume=/a:/b", "-v/c:/d"}, "--volume: use terminal.docker_volumes"}, // once
		{[]string{"--mount", "type=bind,source=/a,target=/b"}, "--mount: use terminal.docker_volumes; --tmpfs for memory"},
		{[]string{"-e", "A=1"}, "--env: use terminal.docker_env, or for secrets terminal.docker_forward_env"},
		{[]string{"--network=none"}, "--network: use terminal.docker_network"},
		{[]string{"--net", "host"}, "--net: use terminal.docker_network"},
		{[]string{"--user", "0"}, "--user: use terminal.backends.dockerbox.user or terminal.docker_run_as_host_user"},
		{[]string{"-m=1g", "--cpus", "2"}, "--memory: use terminal.container_memory|--cpus: use terminal.container_cpu"},
		{[]string{"--pids-limit=-1"}, "--pids-limit: use terminal.backends.dockerbox.pids"},
		{[]string{"--shm-size", "1g"}, "--shm-size: use terminal.docker_shm_size"},
		{[]string{"--storage-opt", "size=1g"}, "--storage-opt: use terminal.container_disk"},
		{[]string{"--group-add=99999999999"}, "--group-add: \"99999999999\" must be a group of the image, or a number up to 2147483647"},
		{[]string{"--ulimit", "as=1"}, "--ulimit: \"as=1\" must be NAME=SOFT or NAME=SOFT:HARD, NAME one that docker knows, such as nofile"},
		{[]string{"-p", "80:80"}, "--publish: ports are not published"},
		{[]string{"-P"}, "--publish-all: ports are not published"},
		{[]string{"--privileged"}, "--privileged: a privileged container is no sandbox; --cap-add and --device give single rights"},
		{[]string{"--pid=host", "--ipc", "host", "--uts=host", "--userns=host"}, "--pid: a sandbox shares no namespace with the host|--ipc: a sandbox shares no namespace with the host|--uts: a sandbox shares no namespace with the host|--userns: a sandbox shares no namespace with the host"},
		{[]string{"--name", "x"}, "--name: dockerbox decides it; terminal.backends.dockerbox.sandbox chooses the sandbox"},
		{[]string{"--rm", "-d"}, "--rm: use terminal.container_persistent|--detach: dockerbox decides it"},
		{[]string{"-it"}, "--interactive: dockerbox decides it|--tty: dockerbox decides it"},
		{[]string{"--entrypoint=sh"}, "--entrypoint: dockerbox decides it: the agent keeps the container alive"},
		{[]string{"--restart", "always", "--init"}, "--restart: dockerbox decides it: the next command starts a sandbox that ended|--init: dockerbox decides it: the agent collects orphans"},
		{[]string{"-h", "box"}, "--hostname: dockerbox decides it: locks in the kept home name it"},
		{[]string{"--read-only"}, "--read-only: commands must be able to write; terminal.backends.dockerbox.security: hardened leaves them the home and /tmp; mount what must not change with :ro in terminal.docker_volumes"},
		{[]string{"--nosuch=1"}, "--nosuch is no flag of docker run that dockerbox knows"},
		{[]string{"-Z"}, "-Z is no flag of docker run that dockerbox knows"},
		{[]string{"--nosuch", "value"}, `--nosuch is no flag of docker run that dockerbox knows|"value" is no flag`},
		{[]string{"debian"}, `"debian" is no flag`},
		{[]string{""}, `"" is no flag`},
		{[]string{"--"}, `"--" is no flag`},
		{[]string{"--ulimit nofile=1"}, `"--ulimit nofile=1" is one word: write the flag and its value as two, or with "=" between them`},
		{[]string{"--dns"}, "--dns needs a value"},
		{[]string{"--=x"}, `"--=x" cannot be read as a flag of docker run`},
		{[]string{"--add-host=db"}, `--add-host: "db" must be HOST:ADDRESS or HOST:host-gateway`},
		{[]string{"--add-host=db:300.1.1.1"}, `--add-host: "db:300.1.1.1" must be HOST:ADDRESS or HOST:host-gateway`},
		{[]string{"--blkio-weight=5"}, `--blkio-weight: "5" must be 0 or a number from 10 to 1000`},
		{[]string{"--cap-add="}, `--cap-add: "" must be the name of a capability, or ALL`},
		{[]string{"--cap-drop=setuid"}, "--cap-drop: the agent needs SETUID"},
		{[]string{"--cpu-shares=-1"}, `--cpu-shares: "-1" must be a whole number, 0 or more`},
		{[]string{"--cpuset-cpus=x"}, `--cpuset-cpus: "x" must be numbers of processors, such as 0-2,4`},
		{[]string{"--device=fuse"}, `--device: "fuse" must be /dev/NAME, /dev/NAME:/dev/INSIDE:rwm, or VENDOR/CLASS=NAME`},
		{[]string{"--device-cgroup-rule=x"}, `--device-cgroup-rule: "x" must be a rule such as "c 189:* rwm"`},
		{[]string{"--dns=one"}, `--dns: "one" must be an IP address`},
		{[]string{"--dns-search=-"}, `--dns-search: "-" must be a domain, or . for none`},
		{[]string{"--gpus=some"}, `--gpus: "some" must be all, a number, or a list such as device=0`},
		{[]string{"--group-add", "a b"}, `--group-add: "a b" must be a group of the image, or a number up to 2147483647`},
		{[]string{"--label=dev.dockerbox.name=x"}, "--label: labels that begin with dev.dockerbox. are dockerbox's own"},
		{[]string{"--label==x"}, `--label: "=x" must be KEY or KEY=VALUE`},
		{[]string{"--log-opt=x"}, `--log-opt: "x" must be KEY=VALUE`},
		{[]string{"--memory-reservation=much"}, `--memory-reservation: "much" must be a size such as 512m`},
		{[]string{"--memory-swap=0"}, `--memory-swap: "0" must be a size such as 2g, or -1 for no limit`},
		{[]string{"--memory-swappiness=101"}, `--memory-swappiness: "101" must be a number from 0 to 100, or -1`},
		{[]string{"--oom-score-adj=2000"}, `--oom-score-adj: "2000" must be a number from -1000 to 1000`},
		{[]string{"--runtime="}, `--runtime: "" must be the name of a runtime of the daemon`},
		{[]string{"--security-opt=seccomp=unconfined"}, "--security-opt: seccomp is what keeps the sandbox in: dockerbox decides it"},
		{[]string{"--security-opt", "no-new-privileges"}, "--security-opt: no-new-privileges would take sudo away from the sandbox; terminal.backends.dockerbox.security: hardened does that, and what goes with it"},
		{[]string{"--security-opt=label"}, `--security-opt: "label" must be label=… or apparmor=…`},
		{[]string{"--sysctl=vm.swappiness=1"}, `--sysctl: "vm.swappiness=1" must be NAME=VALUE of net.*, fs.mqueue.* or the kernel.shm*, kernel.msg* and kernel.sem limits`},
		{[]string{"--tmpfs=tmp"}, `--tmpfs: "tmp" must be an absolute path, with options such as /tmp:size=64m,exec`},
		{[]string{"--tmpfs=/dev/shm"}, "--tmpfs: use terminal.docker_shm_size for /dev/shm"},
		{[]string{"--tmpfs=/.dockerbox/x", "--tmpfs=/"}, "--tmpfs: nothing can be mounted at /.dockerbox/x|--tmpfs: nothing can be mounted at /"},
		{[]string{"--ulimit=files=1"}, `--ulimit: "files=1" must be NAME=SOFT or NAME=SOFT:HARD, NAME one that docker knows, such as nofile`},
		{[]string{"--privileged", "--dns=x", "y", "--ulimit=nofile=1"}, `--privileged: a privileged container is no sandbox; --cap-add and --device give single rights|--dns: "x" must be an IP address|"y" is no flag`},
	} {
		config, host := blank()
		var got []string
		for _, f := range applyExtraArgs(tc.args, config, host) {
			if f.Key != "extra-args" {
				t.Errorf("%q: the key is %q", tc.args, f.Key)
			}
			got = append(got, f.Problem)
		}
		if strings.Join(got, "|") != tc.want {
			t.Errorf("%q:\n got %s\nwant %s", tc.args, strings.Join(got, "|"), tc.want)
		}
	}
}

// Every flag says what it is or why it is refused, and no two share a letter.
func TestTheTableOfFlagsIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range dockerRunFlags {
		if seen[f.name] || f.short != "" && seen[f.short] {
			t.Errorf("--%s, -%s is there twice", f.name, f.short)
		}
		seen[f.name], seen[f.short] = true, true
		if accepted := f.set != nil; accepted != (f.refused == "") || accepted != (f.doc != "") || accepted != (f.value != "") || accepted && f.bare {
			t.Errorf("--%s is neither accepted nor refused: %+v", f.name, f)
		}
	}
}

func TestTmpfsAndVolumeOnOneTarget(t *testing.T) {
	cfg := contract.Defaults()
	cfg.Mounts = []contract.Mount{{Source: "/a", Target: "/tmp"}}
	cfg.ExtraArgs = []string{"--tmpfs", "/tmp"}
	if got := fmt.Sprint(extraArgsFaults(cfg)); got != "extra-args: --tmpfs: a volume is mounted at /tmp already" {
		t.Error(got)
	}
}

// The list of accepted flags in the documentation is written from the table.
func TestTheDocumentationListsTheAcceptedFlags(t *testing.T) {
	const file, begin, end = "../docs/operations.md", "<!-- extra arguments: written by go test ./provider -update -->\n", "<!-- end of extra arguments -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the list: %q to %q", file, begin, end)
	}
	want := extraArgsTable()
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		got = want
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("go test ./provider -update writes it anew:\n%s", diff)
	}
}
