package contract

// Setting describes one thing people can choose. [Settings] is the source of the table in docs/operations.md; what checks a value is
// [Config.Validate].
type Setting struct {
	// Key is the JSON key in [Config]; empty for what is decided before there is a configuration.
	Key string
	// Type is "string", "select", "number", "size", "boolean", "list" or "map"; Unit what a bare number counts, may be empty.
	Type, Unit string
	// Default is the value when nothing is said, as people would write it.
	Default string
	// HostKey is the key in Hermes's configuration, and with a "terminal." key that Hermes also takes from its environment, Environ that
	// variable. Flag is the flag of dockerbox up, or of dockerbox itself. Each may be empty.
	HostKey, Environ, Flag string
	// Live says that a living sandbox takes a change on; others need it made anew. Meaningless without Key.
	Live bool
	// Since is the version that first had it.
	Since string
	// Doc is one sentence without a full stop.
	Doc string
}

// Settings returns every setting, by topic. No I/O.
func Settings() []Setting {
	const first = "0.1.0"
	return []Setting{
		{"image", "string", "", "the dockerbox image", "terminal.backends.dockerbox.image", "", "--image", false, first, "image reference the sandbox is made from"},
		{"user", "string", "", "the image's user", "terminal.backends.dockerbox.user", "", "--user", false, first, "account commands run as: a name or number, with an optional :group"},
		{"", "boolean", "", "false", "terminal.docker_run_as_host_user", "TERMINAL_DOCKER_RUN_AS_HOST_USER", "", false, first, "run as the number and group of whoever runs Hermes; terminal.backends.dockerbox.user wins over it"},
		{"cpus", "number", "cores", "1", "terminal.container_cpu", "TERMINAL_CONTAINER_CPU", "--cpus", true, first, "cores it may use, 0 = no limit"},
		{"memory_mb", "number", "MB", "5120", "terminal.container_memory", "TERMINAL_CONTAINER_MEMORY", "--memory", true, first, "memory limit, 0 = no limit; the flag takes a size such as 5g"},
		{"pids", "number", "processes", "2048", "terminal.backends.dockerbox.pids", "", "--pids", true, first, "most processes and threads at a time, 0 = no limit, else at least 64"},
		{"disk_mb", "number", "MB", "51200", "terminal.container_disk", "TERMINAL_CONTAINER_DISK", "--disk", false, first, "limit of what is written outside the home and the mounts, 0 = no limit; needs a storage driver with quotas; the flag takes a size"},
		{"shm_bytes", "size", "bytes", "1g", "terminal.docker_shm_size", "TERMINAL_DOCKER_SHM_SIZE", "--shm-size", false, first, "size of /dev/shm, 0 = the daemon's default"},
		{"security", "select", "", "standard", "terminal.backends.dockerbox.security", "", "--profile", false, first, "standard or hardened, which has no sudo, no capabilities, a read-only root and, unless asked for, no network; see below"},
		{"network", "string", "", "bridge", "terminal.docker_network", "TERMINAL_DOCKER_NETWORK", "--network", false, first, "bridge or none; in Hermes true or false"},
		{"env", "map", "", "{}", "terminal.docker_env", "TERMINAL_DOCKER_ENV", "-e, --env-file", false, first, "variables of the sandbox; docker inspect shows them, so no secrets"},
		{"forward_env", "list", "", "[]", "terminal.docker_forward_env", "TERMINAL_DOCKER_FORWARD_ENV", "--forward-env", false, first, "names of variables whose values go along with each command and are kept nowhere"},
		{"mounts", "list", "", "[]", "terminal.docker_volumes", "TERMINAL_DOCKER_VOLUMES", "-v", false, first, "SOURCE:TARGET or SOURCE:TARGET:ro, a host path or the name of a volume"},
		{"", "boolean", "", "false", "terminal.docker_mount_cwd_to_workspace", "TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE", "", false, first, "mount the host's working directory at /workspace; needs the release after Hermes 0.22.2"},
		{"extra_args", "list", "", "[]", "terminal.docker_extra_args", "TERMINAL_DOCKER_EXTRA_ARGS", "", false, first, "further flags of docker run; those accepted are listed below, any other is a fault"},
		{"persistent", "boolean", "", "true", "terminal.container_persistent", "TERMINAL_CONTAINER_PERSISTENT", "--ephemeral (off)", false, first, "keep the home in a volume and the sandbox running between sessions; false gives each session its own"},
		{"", "boolean", "", "true", "terminal.docker_persist_across_processes", "TERMINAL_DOCKER_PERSIST_ACROSS_PROCESSES", "", false, first, "false removes the sandbox, not its home, when Hermes ends"},
		{"", "string", "", "", "terminal.docker_shared_container_key", "TERMINAL_DOCKER_SHARED_CONTAINER_KEY", "", false, first, "profiles with the same key share one sandbox"},
		{"", "boolean", "", "true", "terminal.docker_orphan_reaper", "TERMINAL_DOCKER_ORPHAN_REAPER", "", false, first, "at start, remove what dead sessions of this profile left: sandboxes that keep no home and ended more than 10 minutes ago, or that nobody has used for an hour"},
		{"", "boolean", "", "false", "terminal.docker_snap_compat", "TERMINAL_DOCKER_SNAP_COMPAT", "", false, first, "for Docker from a snap, whose AppArmor profile breaks --init and no-new-privileges; a standard sandbox uses neither, so it changes nothing; a hardened one needs the second"},
		{"name", "string", "", "default", "terminal.backends.dockerbox.sandbox", "", "NAME", false, first, "the sandbox to use, as dockerbox ps shows it"},
		{"", "string", "", "found on PATH", "terminal.backends.dockerbox.binary", "", "", false, first, "absolute path of the dockerbox executable"},
		{"", "string", "", "as the docker CLI", "terminal.backends.dockerbox.host", "DOCKER_HOST", "--host", false, first, "URL of the daemon"},
		{"", "string", "", "as the docker CLI", "terminal.backends.dockerbox.context", "DOCKER_CONTEXT", "--context", false, first, "docker context that chooses the daemon"},
	}
}
