"""Real Hermes in this process, told by a real configuration file; with the model of the changed host when that is on the path."""

import copy
import json
import os
import sys
from pathlib import Path

from hermes_cli.plugins import discover_plugins

discover_plugins()

from agent.terminal_env_provider import TerminalEnvironmentProvider  # noqa: E402
from agent.terminal_env_registry import get_provider  # noqa: E402
from hermes_cli.plugin_isolation import isolation_mode  # noqa: E402
from tools import terminal_tool as terminal  # noqa: E402
from tools.terminal_tool_backends import _create_environment  # noqa: E402

CONFIG = Path(os.environ["HERMES_HOME"]) / "config.yaml"
BASE = json.loads(CONFIG.read_text())  # JSON is YAML, and the tests' homes are written in it
CHANGED = hasattr(TerminalEnvironmentProvider, "default_cwd")
ISOLATED = isolation_mode() == "host"
ACME = get_provider("acme")
if ACME is None or get_provider("dockerbox") is None:
    sys.exit("a plugin did not register its provider: see the log above")


def configure(terminal_section, **sections):
    """Write the file and let Hermes read it as it does at its start. Keys of None are left out."""
    config = copy.deepcopy(BASE) | sections
    config["terminal"] |= {key: value for key, value in terminal_section.items() if value is not None}
    CONFIG.write_text(json.dumps(config))
    for name in ("TERMINAL_ENV", "TERMINAL_CWD"):
        os.environ.pop(name, None)
    terminal._terminal_config_bridge_attempted = False


def declare(*, default=None, raises=False, home="/home/acme"):
    """Make acme's provider say this. ``default`` None declares nothing at all."""
    cls = type(ACME)
    for name in ("default_cwd", "home"):
        if name in vars(cls):
            delattr(cls, name)
    cls.home = home
    if raises:
        cls.default_cwd = property(lambda _self: 1 / 0)
    elif default is not None:
        cls.default_cwd = property(lambda _self: default)


def acme(cwd):
    """An environment of acme's, out of Hermes's own factory."""
    return _create_environment("acme", "", cwd, 60, container_config={}, task_id="default")


__all__ = ["ACME", "CHANGED", "ISOLATED", "acme", "configure", "declare", "get_provider", "terminal"]
