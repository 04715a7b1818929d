package provider

import (
	"strconv"
	"strings"
)

// limitsScript prints, for bash in a container, the limits that its own cgroup has: a line "name value" for each file it finds. It uses
// builtins alone, for an image need have nothing but bash. Its words are the cgroup tree and the file that names the place in it.
//
// Version 1 has a tree per controller, version 2 one tree. In a cgroup namespace of its own a container is at the top of what it sees,
// without one it may see all of the machine's.
const limitsScript = `
c=${1:-/sys/fs/cgroup} own= memory= cpu= pids=
while IFS=: read -r _ list path; do
  case ,$list, in ,,) own=$path ;; esac
  case ,$list, in *,memory,*) memory=$path ;; esac
  case ,$list, in *,cpu,*) cpu=$path ;; esac
  case ,$list, in *,pids,*) pids=$path ;; esac
done 2>/dev/null <"${2:-/proc/self/cgroup}"
put() {
  local name=$1 file value; shift
  for file; do
    if [ -r "$file" ] && read -r value <"$file"; then printf '%s %s\n' "$name" "$value"; return; fi
  done
}
put memory "$c$own/memory.max" "$c/memory.max" "$c/memory$memory/memory.limit_in_bytes" "$c/memory/memory.limit_in_bytes"
put cpu "$c$own/cpu.max" "$c/cpu.max"
put quota "$c/cpu$cpu/cpu.cfs_quota_us" "$c/cpu/cpu.cfs_quota_us"
put period "$c/cpu$cpu/cpu.cfs_period_us" "$c/cpu/cpu.cfs_period_us"
put pids "$c$own/pids.max" "$c/pids.max" "$c/pids$pids/pids.max" "$c/pids/pids.max"
`

// limits are those of a cgroup: bytes, cores and a count. 0 is no limit, unknownLimit what no file told.
type limits struct {
	memory int64
	cpus   float64
	pids   int64
}

const unknownLimit = -1

// unlimitedMemory is below what version 1 of cgroups writes for no limit, which depends on the page size.
const unlimitedMemory = 1 << 60

// readLimits reads what limitsScript printed, among other lines.
func readLimits(text string) limits {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		values[name] = value
	}
	l := limits{memory: count(values["memory"]), cpus: unknownLimit, pids: count(values["pids"])}
	if l.memory >= unlimitedMemory {
		l.memory = 0
	}
	quota, period, ok := strings.Cut(values["cpu"], " ")
	if !ok {
		quota, period = values["quota"], values["period"]
	}
	if per := count(period); per > 0 {
		switch most := count(quota); {
		case most > 0:
			l.cpus = float64(most) / float64(per)
		case most == 0:
			l.cpus = 0
		}
	}
	return l
}

// count reads a limit: "max", and the -1 of version 1, are none.
func count(value string) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case value == "max" || err == nil && n < 0:
		return 0
	case err != nil:
		return unknownLimit
	}
	return n
}
