"""What the running Hermes cannot do for a plugin backend, said before somebody runs into it."""

import os

from agent.terminal_env_provider import TerminalEnvironmentProvider

_OUT_OF_PROCESS = "plugins.isolation: host keeps this plugin in a process of its own"


def host_limits():
    """A sentence for each limit of this version, none on a host without them."""
    if _newer():
        return []
    return [
        "on this Hermes version a recorded `cd` into /home/… does not last between tool calls; the release after 0.22.2 lifts that",
        "on this Hermes version Bot Desktop is refused for plugin backends; the release after 0.22.2 lifts that",
    ]


def isolation_limit():
    """What plugins.isolation: host costs, "" when the plugin runs in Hermes's own process."""
    if not isolated():
        return ""
    if refused_by_isolation():
        return f"{_OUT_OF_PROCESS}, where this Hermes version cannot run commands: set plugins.isolation: in_process"
    return f"{_OUT_OF_PROCESS}, where Bot Desktop is refused and commands may be: set plugins.isolation: in_process"


def refused_by_isolation():
    """Whether no environment can be handed to Hermes from here. Up to 0.22.2 it would get a placeholder that can do nothing, and fail
    at each command, after retries, without naming the setting. Later releases may do better, so there they are given the chance.
    """
    return isolated() and not _newer()


def shown(cls):
    """The class to make environments of: in the plugin host ``cls`` by a name that says what to do, for if Hermes makes a placeholder of
    one, each of its errors gives that name and nothing else of it.
    """
    return type(f"{cls.__name__} (to use it, set plugins.isolation: in_process)", (cls,), {}) if isolated() else cls


def isolated():
    """Whether this process is the one in which Hermes keeps plugins out of its own; Hermes marks it so."""
    return os.environ.get("HERMES_PLUGIN_HOST_PROCESS") == "1"


def tells_workspace():
    """Whether this Hermes tells a backend the working directory of a session."""
    return _newer()


def _newer():
    return hasattr(TerminalEnvironmentProvider, "default_cwd")
