"""From Hermes's settings to the configuration that `dockerbox serve` is asked for.

Only translation: which values are allowed, and what a missing one means, is decided by dockerbox.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from .faults import Fault

# Settings of this backend under terminal.backends.dockerbox, as `hermes config` and the dashboard show them.
SCHEMA = {
    "image": {"type": "string", "description": "Image the sandbox is made from; empty for dockerbox's default image."},
    "user": {"type": "string", "description": "Account commands run as; empty for the image's own."},
    "sandbox": {"type": "string", "description": "Name of the sandbox to use, as `dockerbox ps` shows it; empty for default."},
    "binary": {"type": "string", "description": "Absolute path of the dockerbox executable; empty to find it."},
    "host": {"type": "string", "description": "Docker endpoint such as ssh://me@server; empty for the docker CLI's choice."},
    "context": {"type": "string", "description": "Docker context; empty for the docker CLI's choice."},
}

# terminal.* settings of Hermes's own docker backend that dockerbox does not carry out yet, and what each is when it is off.
_NOT_YET = {
    "docker_volumes": "host directories are not mounted",
    "docker_extra_args": "no further arguments reach docker",
    "docker_mount_cwd_to_workspace": "the host's working directory is not mounted",
    "docker_run_as_host_user": "commands run as the image's user, or as terminal.backends.dockerbox.user",
}

# Hermes's default for terminal.container_disk, which nobody chose.
_DEFAULT_DISK_MB = 51200

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Settings(NamedTuple):
    """terminal.backends.dockerbox: each value a string, empty when not set."""

    image: str = ""
    user: str = ""
    sandbox: str = ""
    binary: str = ""
    host: str = ""
    context: str = ""


def backend_settings(terminal, passed=None):
    """The backend's own settings: those a newer host passes, else those below ``terminal`` in the configuration file."""
    found = passed if isinstance(passed, Mapping) else _mapping(_mapping(terminal.get("backends")).get("dockerbox"))
    return Settings(**{key: str(found[key]).strip() for key in SCHEMA if found.get(key) is not None})


def serve_argv(executable, settings):
    """The words that start the child. The endpoint is part of it: one child speaks to one daemon."""
    argv = [executable]
    if settings.host:
        argv += ["--host", settings.host]
    if settings.context:
        argv += ["--context", settings.context]
    return [*argv, "serve", "--stdio"]


def sandbox_config(identity, settings, terminal, container):
    """The ``config`` of a create request. ``container`` is what the host passes, ``terminal`` the configuration file.

    A host of 0.22.2 reads the docker_* settings for its own backend alone and passes their defaults here, so those come from the file.
    """
    config = {
        "name": identity.name,
        "cpus": container.get("container_cpu", 1),
        "memory_mb": container.get("container_memory", 5120),
        "shm_bytes": size_in_bytes("terminal.docker_shm_size", _own(terminal, container, "docker_shm_size", "1g")),
        "network": "bridge" if container.get("docker_network", True) else "none",
        "persistent": bool(container.get("container_persistent", True)),
        # An agent in the middle of its work gets the sandbox it has, with a warning, rather than none or an empty one.
        "adapt": True,
    }
    env = {str(k): str(v) for k, v in _mapping(_own(terminal, container, "docker_env", {})).items()}
    optional = {"profile": identity.profile, "task": identity.task, "image": settings.image, "user": settings.user, "env": env}
    return config | {key: value for key, value in optional.items() if value}


def forwarded_names(terminal, container):
    """Names whose values go along with every command, from terminal.docker_forward_env."""
    names = _own(terminal, container, "docker_forward_env", [])
    return tuple(str(name) for name in names) if isinstance(names, (list, tuple)) else ()


def not_honoured(terminal, container):
    """A sentence for each setting that is on and cannot be carried out yet."""
    said = [f"terminal.{key}: {means}" for key, means in _NOT_YET.items() if terminal.get(key) or container.get(key)]
    if container.get("container_disk", _DEFAULT_DISK_MB) not in (0, _DEFAULT_DISK_MB):
        said.append("terminal.container_disk: the size of the sandbox's disk is not limited")
    return said


def mounts_host_paths(terminal):
    """Whether host directories are asked for: the sandbox then no longer keeps the host out of reach."""
    return bool(terminal.get("docker_volumes") or terminal.get("docker_mount_cwd_to_workspace"))


def size_in_bytes(key, value):
    """``value`` in bytes; "" and 0 are 0. Sizes are written as docker writes them: 64m, 1g, or a plain number of bytes."""
    text = str(value if value is not None else "").strip()
    if not text:
        return 0
    match = _SIZE.fullmatch(text)
    if not match:
        raise Fault(f"{key} is {text!r}, which is not a size", "write a number with a unit, such as 512m or 1g", kind="config")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def _own(terminal, container, key, default):
    """The file's value when it differs from the default, else the host's: see sandbox_config."""
    value = terminal.get(key)
    return container.get(key, default) if value is None or value == default else value


def _mapping(value):
    return value if isinstance(value, Mapping) else {}
