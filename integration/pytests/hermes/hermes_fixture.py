"""Real Hermes in this process, with a home of its own, the plugin installed there and a sandbox that only these tests use.

What runs these tests prepares the home: HERMES_HOME holds config.yaml and plugins/dockerbox, and names the sandbox and the executable
in DOCKERBOX_SANDBOX and DOCKERBOX. Nothing of Hermes is replaced.
"""

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

# The plugin logs what it cannot do on this Hermes version; the tests that want to know look for it.
logging.disable(logging.NOTSET)

from hermes_cli.plugins import discover_plugins  # noqa: E402

discover_plugins()

from agent.terminal_env_registry import get_provider  # noqa: E402
from hermes_cli.config import read_raw_config  # noqa: E402
from tools import terminal_tool as terminal  # noqa: E402
from tools.environments import base  # noqa: E402
from tools.terminal_tool_backends import _container_config_from_config, _create_environment  # noqa: E402

PROVIDER = get_provider("dockerbox")
if PROVIDER is None:
    sys.exit("the plugin did not register a provider: see the log above")
PLUGIN = sys.modules[type(PROVIDER).__module__.rpartition(".")[0]]

# Hermes puts the file's settings into os.environ, once: those of the tests' own file, not of one that a test writes for a while.
terminal._get_env_config()

CONFIG = Path(os.environ["HERMES_HOME"]) / "config.yaml"
SANDBOX = os.environ["DOCKERBOX_SANDBOX"]
DOCKERBOX = os.environ["DOCKERBOX"]
HOME = "/home/pn"
LOGGER = logging.getLogger(PLUGIN.__name__)


def module(name):
    """The installed plugin's module ``name``."""
    return sys.modules[f"{PLUGIN.__name__}.{name}"]


def dockerbox(*words):
    """Run the executable; its stdout."""
    return subprocess.run([DOCKERBOX, *words], check=True, capture_output=True, text=True, timeout=120).stdout


def docker(*words):
    """Run the docker CLI; its stdout."""
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True, timeout=120).stdout.strip()


def make(task_id="default", *, cwd="/root", timeout=60, image="", **container):
    """An environment out of Hermes's own factory."""
    config = _container_config_from_config(terminal._get_env_config())
    return _create_environment("dockerbox", image, cwd, timeout, container_config={**config, **container}, task_id=task_id)


def tool(command, **options):
    """Run a command through the terminal tool; its result as the model gets it."""
    return json.loads(terminal.terminal_tool(command, **options))


@contextlib.contextmanager
def configured(path=CONFIG, *, own=None, **terminal_settings):
    """The configuration file has these settings as long as this lasts, ``own`` among those of the backend."""
    before = path.read_text(encoding="utf-8")
    config = read_raw_config()
    config["terminal"] |= terminal_settings
    config["terminal"]["backends"]["dockerbox"] |= own or {}
    try:
        path.write_text(json.dumps(config), encoding="utf-8")  # which is YAML
        yield
    finally:
        path.write_text(before, encoding="utf-8")


def until(condition, patience=15):
    """Wait for what happens elsewhere; False when it does not."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.02)
    return True


def running(env, pattern):
    """How many processes of the sandbox have ``pattern`` in their command line. Write it so that it does not match itself."""
    return int(env.execute(f"pgrep -fc '{pattern}'")["output"].strip() or 0)


def in_thread(call):
    """Run ``call`` in a thread of its own; the thread and a list that will hold its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    return thread, results


class HermesCase(unittest.TestCase):
    """A test on the tests' own sandbox."""

    @classmethod
    def setUpClass(cls):
        cls.env = make()

    @classmethod
    def tearDownClass(cls):
        cls.env.cleanup()

    def run_in(self, command, **options):
        """Run a command that has to succeed; its output."""
        result = self.env.execute(command, **options)
        self.assertEqual(result["returncode"], 0, result)
        return result["output"]


__all__ = [
    "CONFIG", "DOCKERBOX", "HOME", "LOGGER", "PROVIDER", "SANDBOX", "HermesCase", "base", "configured", "docker", "dockerbox", "in_thread",
    "make", "module", "running", "terminal", "tool", "until",
]  # fmt: skip
