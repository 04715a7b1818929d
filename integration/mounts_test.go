//go:build integration

package integration

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// These tests look at what a sandbox is made of beside its image: mounts, homes, forwarded variables, extra arguments. The daemon must be on
// this machine.

// hostDirectory is a directory of this machine that any account may write to.
func hostDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// hostFile writes a file that any account may write to.
func hostFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// owner is who owns a file of this machine, as uid:gid.
func owner(t *testing.T, file string) string {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("%T is no stat", info.Sys())
	}
	return fmt.Sprintf("%d:%d", stat.Uid, stat.Gid)
}

// volumeExists asks the daemon.
func volumeExists(t *testing.T, name string) bool {
	t.Helper()
	return slices.Contains(strings.Fields(docker(t, "volume", "ls", "-q")), name)
}

// freshVolume is a volume name that nobody has; the volume goes with the test.
func freshVolume(t *testing.T) string {
	t.Helper()
	name := "t-" + strings.ToLower(rand.Text()[:10])
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "volume", "rm", "-f", name).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return name
}

// withMounts is a sandbox of an account with mounts. Those that another cleanup removes come before it, so that they are free by then.
func withMounts(t *testing.T, user string, mounts ...string) (*provider.Provider, contract.Environment) {
	t.Helper()
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name, cfg.User = uniqueName(t, p), user
	for _, m := range mounts {
		cfg.Mounts = append(cfg.Mounts, contract.ParseMount(m))
	}
	return p, create(t, p, cfg)
}

func TestMountsKeepWhatIsReadOnlyAndGiveTheAccountsNumberToTheRest(t *testing.T) {
	for user, number := range map[string]string{"root": "0:0", "pn": "1000:1000", "4242:4343": "4242:4343"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			open, shut := hostDirectory(t), hostDirectory(t)
			file, sealed := hostFile(t, "file\n"), hostFile(t, "sealed\n")
			_, env := withMounts(t, user, open+":/mnt/open", shut+":/mnt/shut:ro", file+":/mnt/file", sealed+":/mnt/sealed:ro")
			wants(t, env, "echo in >/mnt/open/new; mkdir /mnt/open/dir; echo more >>/mnt/file; cat /mnt/open/new /mnt/file /mnt/sealed", "in\nfile\nmore\nsealed\n")
			r := run(t, env, contract.Request{Command: "touch /mnt/shut/x; echo x >>/mnt/sealed"})
			if n := strings.Count(string(r.Output), "Read-only file system"); r.ExitCode == 0 || n != 2 {
				t.Errorf("status %d, %q; want both refused", r.ExitCode, r.Output)
			}
			for _, made := range []string{"new", "dir"} {
				if got := owner(t, filepath.Join(open, made)); got != number {
					t.Errorf("%s is %s's, want %s's", made, got, number)
				}
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != "file\nmore\n" {
				t.Errorf("the file on the host holds %q, %v", text, err)
			}
			if left, err := os.ReadDir(shut); err != nil || len(left) > 0 {
				t.Errorf("the read-only directory holds %v, %v", left, err)
			}
			if i := env.Info(); i.Home == "" || len(i.Warnings) > 0 {
				t.Errorf("%+v", i)
			}
			sh(t, env, `touch "$HOME/writable"`)
		})
	}
}

// What leads to a mount in the home is the account's, and the home is kept as without one.
func TestMountsInTheHome(t *testing.T) {
	t.Parallel()
	cache, config := hostDirectory(t), hostFile(t, "setting\n")
	p, env := withMounts(t, "", cache+":/home/pn/.cache/tool/deep", config+":/home/pn/.config/tool.conf:ro")
	wants(t, env, "stat -c '%U %a %n' ~/.cache ~/.cache/tool ~/.config; cat ~/.config/tool.conf; touch ~/.cache/a ~/.cache/tool/b ~/.config/c ~/.cache/tool/deep/d && ls ~/.profile",
		"pn 755 /home/pn/.cache\npn 755 /home/pn/.cache/tool\npn 755 /home/pn/.config\nsetting\n/home/pn/.profile\n")
	if got := owner(t, filepath.Join(cache, "d")); got != "1000:1000" {
		t.Errorf("the file on the host is %s's", got)
	}
	sh(t, env, "chmod 700 ~/.cache")
	name := env.Info().Name
	if err := p.Remove(t.Context(), name, provider.RemoveOptions{Force: true, KeepHome: true}); err != nil {
		t.Fatal(err)
	}
	cfg := contract.Defaults()
	cfg.Name, cfg.Mounts = name, []contract.Mount{{Source: cache, Target: "/home/pn/.cache/tool/deep"}}
	again := create(t, p, cfg)
	wants(t, again, "stat -c '%U %a' ~/.cache; ls ~/.cache/a ~/.config/c ~/.cache/tool/deep", "pn 700\n/home/pn/.cache/a\n/home/pn/.config/c\n\n/home/pn/.cache/tool/deep:\nd\n")
}

func TestAMountOverTheHomeTakesItsPlace(t *testing.T) {
	t.Parallel()
	home := hostDirectory(t)
	p, env := withMounts(t, "", home+":/home/pn")
	if i := env.Info(); i.Home != "/home/pn" || i.Cwd != "/home/pn" {
		t.Errorf("%+v", i)
	}
	sh(t, env, "echo kept >~/f; cd /; cd; [[ $PWD == /home/pn ]]")
	if text, err := os.ReadFile(filepath.Join(home, "f")); err != nil || string(text) != "kept\n" {
		t.Errorf("on the host: %q, %v", text, err)
	}
	mounted := docker(t, "inspect", "-f", "{{range .Mounts}}{{.Destination}}={{.Type}} {{end}}", env.Info().ContainerID)
	if !strings.Contains(mounted, "/home/pn=bind") || strings.Contains(mounted, "/home/pn=volume") {
		t.Errorf("mounted: %s", mounted)
	}
	name := strings.TrimPrefix(docker(t, "inspect", "-f", "{{.Name}}", env.Info().ContainerID), "/dockerbox-")
	if volumeExists(t, "dockerbox-home-"+name) {
		t.Error("a volume was made for a home that is somewhere else")
	}
	if err := p.Remove(t.Context(), env.Info().Name, provider.RemoveOptions{Force: true}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(home, "f")); err != nil {
		t.Errorf("the home was removed with the sandbox: %v", err)
	}
}

// A host path that is missing is neither made nor passed over, and of what was made before it was found nothing is left.
func TestAMissingSourceIsRefused(t *testing.T) {
	t.Parallel()
	name, volume := freshName("missing"), freshVolume(t)
	missing := filepath.Join(t.TempDir(), "no", "such")
	got := cli(t, "up", name, "-v", volume+":/cache", "-v", missing+":/data:ro")
	want := said{"", "dockerbox: error: the host path " + missing + ", to be mounted at /data, does not exist on the daemon's machine\n" +
		"dockerbox: hint: make it, or correct -v (in Hermes terminal.docker_volumes)\n", 125}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if _, err := os.Stat(filepath.Dir(missing)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s was made: %v", filepath.Dir(missing), err)
	}
	if left := docker(t, "ps", "-aq", "--filter", "label=dev.dockerbox.name="+name); left != "" {
		t.Errorf("a container is left: %s", left)
	}
	if volumeExists(t, volume) {
		t.Error("the volume that was made for it is left")
	}
	if left := docker(t, "volume", "ls", "-q", "--filter", "label=dev.dockerbox.name="+name); left != "" {
		t.Errorf("a volume is left: %s", left)
	}
}

// A file on a directory, which only starting the container shows.
func TestAMountThatDoesNotFitLeavesNothing(t *testing.T) {
	t.Parallel()
	name, volume := freshName("unfit"), freshVolume(t)
	file := hostFile(t, "")
	got := cli(t, "up", name, "-v", volume+":/cache", "-v", file+":/etc")
	if got.status != 125 || got.stdout != "" || !strings.HasPrefix(got.stderr, "dockerbox: error: the host path "+file+" cannot be mounted at /etc: one is a file and the other a directory\ndockerbox: hint: ") {
		t.Errorf("%+v", got)
	}
	if left := docker(t, "ps", "-aq", "--filter", "label=dev.dockerbox.name="+name) + docker(t, "volume", "ls", "-q", "--filter", "label=dev.dockerbox.name="+name); left != "" || volumeExists(t, volume) {
		t.Errorf("left: %s, the volume %v", left, volumeExists(t, volume))
	}
}

func TestNamedVolumesAreTheUsersOwn(t *testing.T) {
	t.Parallel()
	volume := freshVolume(t)
	p, env := withMounts(t, "", volume+":/cache", volume+":/again:ro")
	wants(t, env, "echo kept >/cache/f; cat /again/f; touch /again/x 2>/dev/null || echo refused", "kept\nrefused\n")
	if labels := docker(t, "volume", "inspect", "-f", "{{json .Labels}}", volume); strings.Contains(labels, "dockerbox") {
		t.Errorf("it is labelled %s", labels)
	}
	if err := p.Remove(t.Context(), env.Info().Name, provider.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if !volumeExists(t, volume) {
		t.Fatal("it went with the sandbox")
	}
	_, other := withMounts(t, "4242", volume+":/cache")
	wants(t, other, "cat /cache/f; stat -c %u /cache/f", "kept\n1000\n")
}

func TestAHomeInUseIsNotRemoved(t *testing.T) {
	t.Parallel()
	p, env := newSandbox(t)
	full := strings.TrimPrefix(docker(t, "inspect", "-f", "{{.Name}}", env.Info().ContainerID), "/dockerbox-")
	_, other := withMounts(t, "", "dockerbox-home-"+full+":/theirs:ro")
	user := strings.TrimPrefix(docker(t, "inspect", "-f", "{{.Name}}", other.Info().ContainerID), "/")
	name := env.Info().Name
	got := cli(t, "rm", "-f", name)
	want := said{"", "dockerbox: error: the volume dockerbox-home-" + full + " with the home of sandbox \"" + name + "\" is used by container " + user + "\n" +
		"dockerbox: hint: remove what uses it first, or let dockerbox rm -f --keep-home " + name + " leave it there\n", 125}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	wants(t, env, "echo here", "here\n")
	if err := p.Remove(t.Context(), other.Info().Name, provider.RemoveOptions{Force: true}); err != nil {
		t.Error(err)
	}
	if got := cli(t, "rm", "-f", name); got.status != 0 || volumeExists(t, "dockerbox-home-"+full) {
		t.Errorf("%+v, and the volume is there: %v", got, volumeExists(t, "dockerbox-home-"+full))
	}
}

func TestUpTakesSourcesRelativeToTheCaller(t *testing.T) {
	t.Parallel()
	dir, name := hostDirectory(t), freshName("relative")
	t.Cleanup(func() { removeSandboxes(t, name) })
	if err := os.MkdirAll(filepath.Join(dir, "work", "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "beside"), []byte("beside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), dockerboxBinary(t), "up", name, "-v", "./src:/src", "-v", "../beside:/beside:ro", "-v", "~:/mine:ro")
	c.Dir, c.Env = filepath.Join(dir, "work"), append(os.Environ(), "HOME="+dir)
	for _, choose := range dockerVariables { // HOME chose docker's configuration
		if choose == "DOCKER_CONFIG" && os.Getenv(choose) == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				t.Fatal(err)
			}
			c.Env = append(c.Env, "DOCKER_CONFIG="+filepath.Join(home, ".docker"))
		}
	}
	if got := programme(t, c); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if got := cli(t, "run", "-u", "root", name, "cat /beside /mine/beside; touch /src/made"); got.stdout != "beside\nbeside\n" || got.status != 0 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "work", "src", "made")); err != nil {
		t.Error(err)
	}
}

// Values of --forward-env are where the command is that they go along with, and nowhere else.
func TestForwardedVariablesAreOutOfSight(t *testing.T) {
	t.Parallel()
	name, secret := freshName("forward"), rand.Text()
	t.Cleanup(func() { removeSandboxes(t, name) })
	if got := programmeWith(t, []string{"FWD1=" + secret}, "up", name, "--forward-env", "FWD1", "--forward-env", "FWD2"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	sh := func(env []string, args ...string) string {
		t.Helper()
		got := programmeWith(t, env, args...)
		if got.status != 0 || got.stderr != "" {
			t.Errorf("%q: %+v", args, got)
		}
		return got.stdout
	}
	const show = `echo "[${FWD1-unset}]" "[${FWD2-unset}]"`
	for what, out := range map[string][2]string{
		"run":                    {sh([]string{"FWD1=a b", "FWD2="}, "run", name, show), "[a b] []\n"},
		"exec":                   {sh([]string{"FWD1=$x"}, "exec", name, "bash", "-c", show), "[$x] [unset]\n"},
		"-e over it":             {sh([]string{"FWD1=outer"}, "run", "-e", "FWD1=given", name, show), "[given] [unset]\n"},
		"nothing to forward":     {sh(nil, "run", name, show), "[unset] [unset]\n"},
		"nothing lasts":          {sh([]string{"FWD1=" + secret}, "run", name, "export MINE=1") + sh(nil, "run", name, show), "[unset] [unset]\n"},
		"other names do not go":  {sh([]string{"FWD3=x"}, "run", name, `echo "[${FWD3-unset}]"`), "[unset]\n"},
		"a taken one forwards":   {sh(nil, "up", name, "--json")[:10] + sh([]string{"FWD1=y"}, "run", name, show), `{"schema":` + "[y] [unset]\n"},
		"as another account too": {sh([]string{"FWD1=z"}, "run", "-u", "root", name, show), "[z] [unset]\n"},
	} {
		if out[0] != out[1] {
			t.Errorf("%s: %q, want %q", what, out[0], out[1])
		}
	}

	sh(nil, "run", name, "mkfifo ~/go")
	c := exec.CommandContext(t.Context(), dockerboxBinary(t), "run", name, `echo "${#FWD1}"; cat ~/go`)
	c.Env = append(os.Environ(), "FWD1="+secret)
	ready, done := make(chan struct{}), make(chan error, 1)
	out := &trigger{want: "26\n", fire: sync.OnceFunc(func() { close(ready) })}
	c.Stdout = out
	go func() { done <- c.Run() }()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("it ended: %v, %q", err, out.got.String())
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatalf("no command line in /proc: %v", err)
	}
	for _, path := range lines {
		if words, err := os.ReadFile(path); err == nil && strings.Contains(string(words), secret) { // one that is gone meanwhile had nothing to hide
			t.Errorf("%s: %q", path, words)
		}
	}
	id := docker(t, "ps", "-q", "--filter", "label=dev.dockerbox.name="+name)
	inspected := docker(t, "inspect", id)
	if strings.Contains(inspected, secret) || !strings.Contains(inspected, "FWD1") {
		t.Error("docker inspect shows the value, or does not show the name")
	}
	half := secret[:20] // so that the search does not find itself
	if found := docker(t, "exec", "-u", "root", id, "bash", "-c", `grep -rlsa "`+half+`[A-Z0-9]" /tmp /run /dev/shm /var /etc /root /home || :`); found != "" {
		t.Errorf("it stands in %s", found)
	}
	sh(nil, "exec", name, "bash", "-c", "echo >~/go")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// programmeWith runs dockerbox with further variables.
func programmeWith(t *testing.T, variables []string, args ...string) said {
	t.Helper()
	c := exec.CommandContext(t.Context(), dockerboxBinary(t), args...)
	c.Env = append(os.Environ(), variables...)
	return programme(t, c)
}

// Flags of docker run have the effect they have there, for commands of every account.
func TestExtraArgumentsShowInside(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name = uniqueName(t, p)
	cfg.ExtraArgs = []string{
		"--ulimit", "nofile=1234:2345", "--add-host=db.test:10.9.8.7", "--tmpfs", "/scratch:size=8m,mode=1777", "--tmpfs=/home/pn/.cache/memory:uid=1000",
		"--sysctl=net.ipv4.ip_unprivileged_port_start=7", "--dns", "192.0.2.53", "--dns-search=boxes.test", "--dns-option=ndots:3",
		"--group-add", "4711", "--group-add=video", "--cap-drop=CHOWN", "--cap-add", "NET_RAW", "--device=/dev/null:/dev/mine:rw",
		"--label", "team=blue", "--oom-score-adj=321", "--memory-reservation", "64m", "--cpu-shares=512",
	}
	env := create(t, p, cfg)
	for command, want := range map[string]string{
		"ulimit -Sn; ulimit -Hn": "1234\n2345\n",
		"getent hosts db.test":   "10.9.8.7        db.test\n",
		"df -k --output=fstype,size /scratch | tail -1 | tr -s ' '":                    "tmpfs 8192\n",
		"touch /scratch/x ~/.cache/x ~/.cache/memory/x && stat -fc %T ~/.cache/memory": "tmpfs\n",
		"cat /proc/sys/net/ipv4/ip_unprivileged_port_start":                            "7\n",
		"grep -v '^#' /etc/resolv.conf":                                                "search boxes.test\nnameserver 192.0.2.53\noptions ndots:3\n",
		"id -G":                                                                        "1000 44 4711\n",
		"echo x >/dev/mine":                                                            "",
		"cat /proc/self/oom_score_adj":                                                 "321\n",
		"sudo -n chown 1 /etc/hostname 2>/dev/null || echo refused":                    "refused\n",
		"sudo -n grep CapBnd /proc/self/status":                                        "CapBnd:\t00000000a00024fa\n",
	} {
		wants(t, env, command, want)
	}
	if r := run(t, env, contract.Request{Command: "id -G", User: "root"}); string(r.Output) != "0 44 4711\n" {
		t.Errorf("root is in %q", r.Output)
	}
	if r := run(t, env, contract.Request{Command: "id -G", User: "4242:7"}); string(r.Output) != "7 44 4711\n" {
		t.Errorf("a number is in %q", r.Output)
	}
	got := docker(t, "inspect", "-f", `{{index .Config.Labels "team"}} {{.HostConfig.MemoryReservation}} {{.HostConfig.CpuShares}}`, env.Info().ContainerID)
	if got != "blue 67108864 512" {
		t.Errorf("docker has %q", got)
	}
}

// All capabilities but one, and none but those the agent needs, are things a daemon takes.
func TestAllCapabilities(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"all but one":          {[]string{"--cap-add=ALL", "--cap-drop=NET_RAW"}, "13 "},
		"what the agent needs": {[]string{"--cap-drop=ALL"}, "0 1 2 3 4 8 9 10 11 12 13 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			cfg := contract.Defaults()
			cfg.Name, cfg.ExtraArgs, cfg.Persistent = uniqueName(t, p), tc.args, false
			env := create(t, p, cfg)
			// Numbers of the first 14 that are not there.
			wants(t, env, `b=$((16#$(awk '/CapBnd/ { print $2 }' /proc/self/status))); for i in {0..13}; do ((b >> i & 1)) || printf '%s ' $i; done; id -un`, tc.want+"pn\n")
		})
	}
}

// No flag of the docker command here is unknown: each is carried out or refused by a reason of its own.
func TestEveryFlagOfDockerRunIsKnown(t *testing.T) {
	t.Parallel()
	help := docker(t, "run", "--help")
	flags := regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z0-9-]+)`).FindAllStringSubmatch(help, -1)
	if len(flags) < 80 {
		t.Fatalf("only %d flags in %s", len(flags), help)
	}
	for _, f := range flags {
		cfg := contract.Defaults()
		cfg.ExtraArgs = []string{"--" + f[1] + "=x"}
		for _, fault := range provider.Check(cfg) {
			if strings.Contains(fault.Problem, "no flag of docker run") || !strings.HasPrefix(fault.Problem, "--"+f[1]+": ") {
				t.Errorf("--%s: %s", f[1], fault.Problem)
			}
		}
	}
}

func TestExtraArgumentsThatAreWrongAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	cfg := contract.Defaults()
	cfg.Name, cfg.MemoryMB = freshName("faults"), 1
	cfg.ExtraArgs = []string{"--privileged", "-v", "/:/host", "--ulimit=x"}
	_, err := p.CreateEnvironment(t.Context(), cfg, "")
	var faults contract.Faults
	if !errors.As(err, &faults) || len(faults) != 4 {
		t.Errorf("%v, want four faults", err)
	}
	if left := docker(t, "ps", "-aq", "--filter", "label=dev.dockerbox.name="+cfg.Name); left != "" {
		t.Errorf("a container is left: %s", left)
	}
}

// A number that the image does not know has a home like any account's: its own, kept, and the same for streams.
func TestNumbersHaveAHomeThatIsKept(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	for user, id := range map[string]string{"4242:4343": "4242", "54321": "54321"} {
		cfg := contract.Defaults()
		cfg.Name, cfg.User = uniqueName(t, p), user
		env := create(t, p, cfg)
		home := "/home/" + id
		if i := env.Info(); i.Home != home || i.Cwd != home || len(i.Warnings) > 0 {
			t.Errorf("%+v", i)
		}
		wants(t, env, `echo $HOME ~ $PWD; stat -c '%u %a' ~; echo kept >~/f`, home+" "+home+" "+home+"\n"+id+" 700\n")
		argv, err := env.ExecPrefix(t.Context(), "", false)
		if err != nil {
			t.Fatal(err)
		}
		if got := programme(t, exec.CommandContext(t.Context(), argv[0], append(argv[1:], "bash", "-c", "echo $HOME; pwd; cat ~/f")...)); got.stdout != home+"\n"+home+"\nkept\n" {
			t.Errorf("a stream says %+v", got)
		}
		if r := run(t, env, contract.Request{Command: "echo $HOME", User: "root"}); string(r.Output) != "/root\n" {
			t.Errorf("root's home is %q", r.Output)
		}
		if r := run(t, env, contract.Request{Command: `echo $HOME; touch "$HOME/x" && cd /home/` + id, User: "7777"}); !strings.HasPrefix(string(r.Output), "/tmp/home-7777\n") || r.ExitCode == 0 {
			t.Errorf("another number says %q", r.Output)
		}
		if err := env.Cleanup(context.Background(), true); err != nil {
			t.Fatal(err)
		}
		wants(t, create(t, p, cfg), "cat ~/f", "kept\n")
	}
}

// A limit of the disk is kept, or it is said that it is not.
func TestADiskLimitIsKeptOrSaid(t *testing.T) {
	t.Parallel()
	name := freshName("disk")
	t.Cleanup(func() { removeSandboxes(t, name) })
	got := cli(t, "up", name, "--disk", "1000m", "--json")
	var answer struct{ ID string }
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || got.status != 0 {
		t.Fatalf("%+v: %v", got, err)
	}
	limited := docker(t, "inspect", "-f", `{{index .HostConfig.StorageOpt "size"}}`, answer.ID) == "1000M"
	if warned := strings.Contains(got.stderr, "dockerbox: warning: the disk limit of 1000 MB is not enforced: the storage driver "); warned == limited {
		t.Errorf("limited: %v, warned: %v; %s", limited, warned, got.stderr)
	}
}
