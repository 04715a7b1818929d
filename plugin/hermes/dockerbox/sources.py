"""Where the value of one of Hermes's terminal settings comes from.

Values stay as they were written: dockerbox judges their types, so that everything wrong with them is said at once.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

# The settings of Hermes's container backends and what each is when nobody says anything. Hermes's own table of defaults has not all.
DEFAULTS = {
    "container_cpu": 1,
    "container_memory": 5120,
    "container_disk": 51200,
    "container_persistent": True,
    "docker_volumes": [],
    "docker_mount_cwd_to_workspace": False,
    "docker_forward_env": [],
    "docker_env": {},
    "docker_run_as_host_user": False,
    "docker_extra_args": [],
    "docker_shm_size": "1g",
    "docker_network": True,
    "docker_persist_across_processes": True,
    "docker_shared_container_key": "",
    "docker_orphan_reaper": True,
    "docker_snap_compat": False,
}

_WORDS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


class Value(NamedTuple):
    """A setting's value, the name under which people find it, and whether somebody chose it."""

    value: Any
    key: str
    chosen: bool


class Sources(NamedTuple):
    """Everything a setting may stand in.

    ``merged`` is the terminal section of the active profile's configuration with Hermes's defaults in it, ``written`` the one that the
    user wrote, ``defaults`` Hermes's. ``container`` is what the host passes. ``environ`` is the process environment, empty where it is
    another profile's.
    """

    merged: Mapping
    written: Mapping = {}
    defaults: Mapping = {}
    container: Mapping = {}
    environ: Mapping = {}

    def read(self, key):
        """The Value of terminal.``key``.

        1. The file, where it names the key or (an administrator's overlay) differs from the default: it belongs to the profile and is
           read anew each time. What the host passes comes from the same file, but by way of variables that it sets once per process.
        2. What the host passes, where it differs from the default. It knows a routed profile's own variables. 0.22.2 passes defaults for
           the five settings it parses for its own backend alone.
        3. The environment, where it differs from the default. Hermes copies the file's values and its defaults there too.
        """
        default = self.defaults.get(key, DEFAULTS[key])
        name = f"terminal.{key}"
        value = self.merged.get(key)
        if value is not None and (self.written.get(key) is not None or value != default):
            return Value(value, name, True)
        passed = self.container.get(key)
        if passed is not None and passed != default:
            return Value(passed, name, True)
        variable = f"TERMINAL_{key.upper()}"
        text = self.environ.get(variable)
        if text is not None:
            value = _parsed(text, default)
            if value not in (default, None):
                return Value(value, variable, True)
        return Value(default, name, False)


def _parsed(text, default):
    """What a variable's text means for a setting with such a default; the text itself if it means nothing. None means nothing is said."""
    if isinstance(default, bool):
        return _WORDS.get(text.strip().lower(), text)
    if isinstance(default, (list, dict)):
        try:
            return json.loads(text)
        except ValueError:
            return text
    if isinstance(default, (int, float)) and text.strip() == str(default):
        return None
    return text
