"""From Hermes's settings to the configuration that `dockerbox serve` is asked for.

Only translation: which values are allowed, and what a missing one means, is decided by dockerbox. Judged here is just what never gets
there: the settings that the plugin itself carries out.
"""

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

# Settings of this backend under terminal.backends.dockerbox, as `hermes config` and the dashboard show them.
SCHEMA = {
    "image": {"type": "string", "description": "Image the sandbox is made from; empty for dockerbox's default image."},
    "user": {"type": "string", "description": "Account commands run as; empty for the image's own."},
    "pids": {"type": "number", "description": "Most processes and threads at a time; 0 for no limit, empty for 2048."},
    "security": {
        "type": "select",
        "options": ["standard", "hardened"],
        "description": "hardened has no sudo, a read-only root and, unless terminal.docker_network is set, no network; empty for standard.",
    },
    "sandbox": {"type": "string", "description": "Name of the sandbox to use, as `dockerbox ps` shows it; empty for default."},
    "binary": {"type": "string", "description": "Absolute path of the dockerbox executable; empty to find it."},
    "host": {"type": "string", "description": "Docker endpoint such as ssh://me@server; empty for the docker CLI's choice."},
    "context": {"type": "string", "description": "Docker context; empty for the docker CLI's choice."},
}

_OWN = "terminal.backends.dockerbox"

# Settings of Hermes that are a field of the configuration as they stand.
_FIELDS = {
    "cpus": "container_cpu",
    "memory_mb": "container_memory",
    "disk_mb": "container_disk",
    "env": "docker_env",
    "forward_env": "docker_forward_env",
    "mounts": "docker_volumes",
    "extra_args": "docker_extra_args",
    "persistent": "container_persistent",
}

# Those of the backend's own section that are.
_OWN_FIELDS = ("image", "user", "pids", "security")

# Flags of docker run that may let a command change the host without any mount.
_WAYS_OUT = ("--device", "--cap-add")


class Settings(NamedTuple):
    """terminal.backends.dockerbox: each value a string, empty when not set; ``pids`` as it was written, None when not set."""

    image: str = ""
    user: str = ""
    pids: Any = None
    security: str = ""
    sandbox: str = ""
    binary: str = ""
    host: str = ""
    context: str = ""


class Wanted(NamedTuple):
    """What the settings ask for.

    ``config`` is that of a create request, less what identifies the sandbox. ``keys`` tells for each of its keys where people find the
    setting. ``faults`` is what is wrong with the settings that do not go to dockerbox. The rest is carried out by the plugin.
    """

    config: dict
    keys: dict
    faults: list
    forwarded: tuple
    persistent: bool
    keep: bool
    reap: bool
    mount_cwd: bool
    snap_compat: bool
    shared_key: str


def backend_section(terminal, passed=None):
    """The backend's own settings as written: those a newer host passes, else those below ``terminal`` in the configuration file."""
    return passed if isinstance(passed, Mapping) else _mapping(_mapping(terminal.get("backends")).get("dockerbox"))


def backend_settings(terminal, passed=None):
    """The backend's own settings; see :func:`backend_section`. What is wrong with them is found by :func:`wanted`."""
    found = backend_section(terminal, passed)
    texts = {key: str(found[key]).strip() for key in SCHEMA if key != "pids" and _is_text(found.get(key))}
    pids = found.get("pids")
    return Settings(**texts, pids=None if pids == "" else pids)


def serve_argv(executable, settings):
    """The words that start the child. The endpoint is part of it: one child speaks to one daemon."""
    argv = [executable]
    if settings.host:
        argv += ["--host", settings.host]
    if settings.context:
        argv += ["--context", settings.context]
    return [*argv, "serve", "--stdio"]


def wanted(sources, passed=None):
    """What the settings of ``sources``, and of the backend's own section, ask for: a Wanted."""
    own, faults = backend_settings(sources.merged, passed), _wrong_section(sources.merged, passed)
    values = {field: sources.read(key) for field, key in _FIELDS.items()}
    config = {field: found.value for field, found in values.items()}
    keys = {field: found.key for field, found in values.items()} | {field: f"{_OWN}.{field}" for field in _OWN_FIELDS}
    keys |= {"name": f"{_OWN}.sandbox"}
    chosen = {field for field, found in values.items() if found.chosen}

    def switch(key):
        found = sources.read(key)
        if isinstance(found.value, bool):
            return found
        faults.append((found.key, f"{_shown(found.value)} must be true or false"))
        return found._replace(value=False)

    network = switch("docker_network")
    config["network"], keys["network"] = "bridge" if network.value else "none", network.key
    shm = sources.read("docker_shm_size")
    # Empty means the daemon's own size to Hermes.
    config["shm_bytes"], keys["shm_bytes"] = shm.value if shm.value not in ("", "0") else 0, shm.key
    chosen |= {field for field, found in (("network", network), ("shm_bytes", shm)) if found.chosen}

    as_host_user = switch("docker_run_as_host_user")
    if as_host_user.value and not own.user and (numbers := _numbers()):
        config["user"], keys["user"] = numbers, as_host_user.key
        chosen.add("user")
    for field in _OWN_FIELDS:
        if (value := getattr(own, field)) not in ("", None):
            config[field] = value
            chosen.add(field)

    shared = sources.read("docker_shared_container_key")
    if not _is_text(shared.value):
        faults.append((shared.key, f"{_shown(shared.value)} must be text"))
    # A sandbox keeps what nobody chose here: `dockerbox up` may have. What reaches the host's files is always decided here, because
    # Hermes's guards go by these settings. Forwarded names need no new sandbox: their values go along with each command.
    config["given"] = sorted((chosen | {"mounts"}) - {"forward_env"})
    # An agent in the middle of its work gets the sandbox it has, with a warning, rather than none or an empty one.
    config["adapt"] = True
    names = config["forward_env"]
    return Wanted(
        config,
        keys,
        faults,
        forwarded=tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else (),
        persistent=config["persistent"] is not False,
        keep=switch("docker_persist_across_processes").value,
        reap=switch("docker_orphan_reaper").value,
        mount_cwd=switch("docker_mount_cwd_to_workspace").value,
        snap_compat=switch("docker_snap_compat").value,
        shared_key=str(shared.value).strip(),
    )


def not_honoured(sources, passed=None, *, tells_workspace):
    """A sentence for each setting that is on and cannot be carried out here. ``tells_workspace``: the host names working directories."""
    said = []
    if sources.read("docker_mount_cwd_to_workspace").value is True and not tells_workspace:
        said.append(
            "terminal.docker_mount_cwd_to_workspace: this Hermes version does not tell plugins the working directory, so it is not "
            "mounted; the release after 0.22.2 does, and terminal.docker_volumes can name a directory now"
        )
    run_as = sources.read("docker_run_as_host_user").value is True
    if run_as and not _numbers() and not backend_settings(sources.merged, passed).user:
        said.append(
            "terminal.docker_run_as_host_user: Windows has no user number to run as, so commands run as the image's user; "
            f"{_OWN}.user names another"
        )
    return said


def exposes_host(sources):
    """Whether the settings let commands change files of the host: its directories then need Hermes's guards. Unknown counts as yes."""
    if sources.read("docker_mount_cwd_to_workspace").value is not False:
        return True
    volumes, flags = (sources.read(key).value for key in ("docker_volumes", "docker_extra_args"))
    if not isinstance(volumes, list) or any(not read_only(volume) for volume in volumes):
        return True
    return not isinstance(flags, list) or any(str(flag).strip().startswith(_WAYS_OUT) for flag in flags)


def read_only(volume):
    """Whether an entry of terminal.docker_volumes surely cannot be written to."""
    return isinstance(volume, str) and volume.strip().endswith(":ro")


def _wrong_section(terminal, passed):
    """What is wrong with the backend's own section: a misspelt setting must not vanish."""
    backends = terminal.get("backends")
    written = passed if passed is not None else _mapping(backends).get("dockerbox")
    if backends is not None and not isinstance(backends, Mapping):
        return [("terminal.backends", f"{_shown(backends)} must be a map")]
    if written is not None and not isinstance(written, Mapping):
        return [(_OWN, f"{_shown(written)} must be a map")]
    faults = []
    for key, value in _mapping(written).items():
        if key not in SCHEMA:
            faults.append((f"{_OWN}.{key}", f"is no setting; there are {', '.join(SCHEMA)}"))
        elif key != "pids" and value is not None and not _is_text(value):
            faults.append((f"{_OWN}.{key}", f"{_shown(value)} must be text"))
    return faults


def _numbers():
    """Who runs Hermes, as "uid:gid"; "" where people have no numbers."""
    return f"{os.getuid()}:{os.getgid()}" if hasattr(os, "getuid") else ""


def _is_text(value):
    """A whole number will do: YAML takes a name or a user of digits for one."""
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def _mapping(value):
    return value if isinstance(value, Mapping) else {}


def _shown(value):
    """A value in a sentence, cut when it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:40]}…"
