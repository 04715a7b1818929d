package engine

import (
	"regexp"
	"strconv"
	"strings"
)

// refusal is something daemons are known to say, in words that somebody who never saw them can act on. $1 and ${1} are the pattern's
// groups, {did} is what was being done, {… bytes} becomes a number of MB. A reason without {did} stands alone.
type refusal struct {
	says         *regexp.Regexp
	reason, hint string
}

// Hints that several refusals share.
const (
	hintNetwork = "see whether the daemon's machine reaches it (proxy, DNS, firewall), or use an image that docker images lists"
	hintLogin   = "check the name and the tag; for a private image run docker login and docker pull first"
	hintSpace   = "make room there: docker system df shows what Docker uses, docker image prune removes images without a name"
	hintLimits  = "docker info tells at its end which limits that machine cannot set; --memory 0, --cpus 0 and --pids 0 ask for none"
	hintInUse   = "end what uses it, or choose a higher --memory; dockerbox up --recreate ends all of it"
	hintRuntime = "docker info names the runtimes of that daemon"
	hintCut     = "try again; if it stays, see what is between the daemon's machine and the registry (proxy, firewall)"
)

// refusals are tried in order, the first that matches counts: what names a cause exactly stands before what names it roughly. The texts
// are those of Docker 20.10 to 28 and of Podman.
var refusals = []refusal{
	// The machine.
	{re(`no space left on device|disk quota exceeded`), "{did}: the daemon's machine has no space left", hintSpace},
	{re(`read-only file system`), "{did}: the daemon's disk is read-only", "see its log (journalctl -k) for disk errors, and whether docker info answers"},
	{re(`OCI runtime.*too many open files`), "{did}: the limit of open files is too low to start anything", "raise --ulimit nofile if the extra arguments have it, else LimitNOFILE of the docker service"},
	{re(`too many open files`), "{did}: the daemon has too many files open", "stop containers that are not needed, or raise LimitNOFILE of the docker service"},
	{re(`cannot allocate memory`), "{did}: the daemon's machine has no memory left", "stop what is not needed there, or raise a --memory that is very low"},

	// Settings.
	{re(`Range of CPUs is from 0\.01 to ([0-9]+)`), "the daemon's machine has $1 CPUs, fewer than were asked for", "choose at most $1 (--cpus, in Hermes terminal.container_cpu), or 0 for no limit"},
	{re(`Minimum memory limit allowed is (\d+) ?MB`), "the daemon sets no memory limit below $1 MB", "choose at least ${1}m (--memory, in Hermes terminal.container_memory), or 0 for no limit"},
	{re(`unable to set memory limit to \d+ \(current usage: (\d+)`), "more memory is in use in the sandbox, {$1 bytes}, than the new limit allows", hintInUse},
	{re(`memory\.\S*limit_in_bytes\S*: device or resource busy`), "more memory is in use in the sandbox than the new limit allows", hintInUse},
	{re(`(?i)memory limit should be smaller than already set memoryswap limit|memoryswap limit`), "{did}: the limits for memory and swap do not fit together", "leave memory-swap out of the extra arguments, or make it larger than the memory limit"},
	{re(`memory limit can not be less than memory reservation limit`), "--memory-reservation is more than the memory limit", "make it less than --memory (in Hermes terminal.container_memory), or leave it out"},
	{re(`open /proc/sys/(\S+): no such file`), "the kernel of the daemon's machine has no setting $1", "correct --sysctl, or leave it out"},
	{re(`write /proc/sys/(\S+): `), "the kernel of the daemon's machine does not take the value for its setting $1", "correct --sysctl, or leave it out"},
	{re(`(?i)unknown or invalid runtime name: (\S+)|unknown runtime specified (\S+)`), "the daemon has no container runtime $1$2", hintRuntime},
	{re(`could not select device driver`), "the daemon's machine has no driver for the devices that --gpus asks for", "install the vendor's container toolkit there, or leave --gpus out"},
	{re(`(?:gathering device information while adding custom device|adding device) "?([^" :]+)"?`), "there is no device $1 on the daemon's machine", "ls -l /dev on that machine shows those there are"},
	{re(`network (\S+) not found`), "the daemon has no network $1", "docker network ls shows those there are"},
	{re(`invalid reference format`), "{did}: the daemon takes that for no image reference", "a reference looks like debian:12 or registry.example.com/team/image:tag, in lower case up to the colon"},

	{re(`unknown capability: "?(?:CAP_)?(\w+)`), "there is no capability $1", "man 7 capabilities lists them, each with CAP_ in front"},
	{re(`Requested (CPUs|memory nodes) are not available - requested (\S+), available: (\S+)`), "the daemon's machine has the $1 $3, and $2 was asked for", "correct --cpuset-cpus or --cpuset-mems, or leave it out"},
	{re(`error looking up logging plugin (\S+):`), "the daemon has no log driver $1", "docker info lists its log drivers behind Log"},
	{re(`failed to initialize logging driver: ([^\n]+)`), "the daemon cannot set the container's log up ($1)", "correct --log-driver and --log-opt, or leave them out"},
	{re(`Unable to find group (\S+):`), "{did}: the image has no group $1", "name the group by its number, or choose one of the image's /etc/group"},

	// Objects that are missing or in the way.
	{re(`(?i)no such (container|image|volume): (\S+)`), "there is no $1 $2", "docker ps -a, docker images and docker volume ls show what there is"},
	{re(`container name "/?([^"]+)" is already in use by container "?([0-9a-f]{12})`), "the container name $1 is taken by container $2", "docker rename or docker rm that container, or choose another sandbox name"},
	{re(`removal of container \S+ is already in progress|is marked for removal`), "{did}: somebody is removing it already", "wait until docker ps -a does not show it any more, then try again"},
	{re(`remove ([^ :]+): volume is in use - \[([0-9a-f]{12})`), "the volume $1 is in use by container $2", "docker rm that container if nobody needs it (docker ps -a shows it), then try again"},
	{re(`image is being used by (running|stopped) container ([0-9a-f]{12})`), "{did}: container $2 uses it", "docker rm that container first"},

	// Starting.
	{re(`exec format error`), "{did}: the image is for another kind of processor than the daemon's machine", "docker image inspect shows the image's Architecture, docker info that of the machine"},
	{re(`(?i)cgroup`), "{did}: the daemon's machine could not set the sandbox's limits", hintLimits},
	{re(`authorization denied by plugin (\S+?):?(?:\s|$)`), "{did}: the daemon's authorization plugin $1 forbids it", "ask whoever runs that daemon"},
	{re(`(?i)operation not permitted|permission denied`), "{did}: the daemon was not permitted to", "a rootless or restricted daemon cannot do that: docker info shows its SecurityOptions, and its log the cause"},
}

// registry are what daemons say when they cannot pull. They stand apart, because elsewhere a word such as "timeout" means something else.
var registry = []refusal{
	{re(`no matching manifest for (\S+)`), "{did}: there is no version of it for $1", "choose an image that is built for $1"},
	{re(`toomanyrequests|pull rate limit|429 Too Many Requests`), "{did}: its registry takes no more pulls from here for now", "wait an hour, or run docker login, which raises the limit"},
	{re(`pull access denied|repository does not exist|requested access to the resource is denied`), "{did}: its registry has no such image, or shows it to nobody who is not logged in", hintLogin},
	{re(`manifest unknown|manifest for \S+ not found|name unknown|404 Not Found`), "{did}: its registry has no such image or tag", hintLogin},
	{re(`unauthorized|authentication required|no basic auth credentials|403 Forbidden`), "{did}: its registry wants a login", "run docker login and docker pull first"},
	{re(`lookup ([^ :]+)(?: on \S+)?: `), "{did}: the name $1 cannot be resolved by the daemon's machine", hintNetwork},
	{re(`x509: |tls: |server gave HTTP response to HTTPS client`), "{did}: the daemon does not trust its registry's certificate, or the registry has none", "add its CA below /etc/docker/certs.d, or list it under insecure-registries in daemon.json, on the daemon's machine"},
	{re(`proxyconnect`), "{did}: the daemon's proxy does not answer", "correct the proxy of the docker service (docker info names it), or use an image that docker images lists"},
	{re(`(?:Get|Head) "https?://([^/"]+)[^"]*": .*(?:refused|timeout|Timeout|canceled|unreachable|no route|reset|deadline|EOF)`), "{did}: the registry $1 does not answer the daemon", hintNetwork},
	{re(`verification failed for digest|unexpected commit digest|invalid checksum digest`), "{did}: its registry sent something else than was asked for", hintCut},
	{re(`unexpected EOF|(?:^|: )EOF$|connection reset by peer|broken pipe|stream error|i/o timeout`), "{did}: the connection to its registry was cut", hintCut},
	{re(`unsupported manifest|unsupported media type|unknown media type|unknown blob|target is unknown|Encountered remote`), "{did}: what its registry has of that name is no image, or not a whole one", "choose another image or tag, or have whoever publishes it push it again"},
}

func re(pattern string) *regexp.Regexp { return regexp.MustCompile(pattern) }

// known finds the refusal that text is.
func known(table []refusal, did, text string) (reason, hint string, ok bool) {
	for _, r := range table {
		if at := r.says.FindStringSubmatchIndex(text); at != nil {
			expand := func(template string) string { return string(r.says.ExpandString(nil, template, text, at)) }
			reason = bytesInBraces.ReplaceAllStringFunc(expand(r.reason), megabytes)
			return strings.ReplaceAll(reason, "{did}", did), expand(r.hint), true
		}
	}
	return "", "", false
}

var bytesInBraces = re(`\{\d+ bytes\}`)

// megabytes writes "{N bytes}" in the unit that people give limits in, rounded up: what is in use must fit.
func megabytes(braces string) string {
	const mb = 1 << 20
	n, err := strconv.ParseUint(strings.TrimSuffix(braces[1:], " bytes}"), 10, 64)
	if err != nil { // beyond any machine
		return braces[1 : len(braces)-1]
	}
	return strconv.FormatUint((n+mb-1)/mb, 10) + " MB"
}

// Cause is the last clause of a chain such as "a failed: b failed: no such file", with the one before it behind in brackets, which names
// what it is about: people read one cause, not the road it took.
func Cause(text string) string {
	clauses := chain(text)
	last := clauses[len(clauses)-1]
	if len(clauses) > 1 {
		return last + " (" + clauses[len(clauses)-2] + ")"
	}
	return last
}

// innermost is the last clause alone.
func innermost(text string) string {
	clauses := chain(text)
	return clauses[len(clauses)-1]
}

// chain returns the clauses of an error's text, without those that say nothing.
func chain(text string) []string {
	text = oneLine(text)
	text = strings.TrimPrefix(text, "Error response from daemon: ")
	text = strings.TrimPrefix(text, "error during connect: ")
	clauses := split(text)
	for len(clauses) > 1 && (clauses[len(clauses)-1] == "unknown" || clauses[len(clauses)-1] == "") { // runc's and containerd's last word
		clauses = clauses[:len(clauses)-1]
	}
	return clauses
}

// split cuts a chain at its colons, but not within quotes.
func split(text string) []string {
	var (
		clauses []string
		from    int
		quoted  bool
	)
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ':' && !quoted && i+1 < len(text) && text[i+1] == ' ':
			clauses = append(clauses, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	if quoted { // a lone quote: take the text as it is
		return []string{text}
	}
	return append(clauses, strings.TrimSpace(text[from:]))
}
