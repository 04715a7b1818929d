"""Gives tests the plugin's modules that need no Hermes, without running the package's __init__, which does."""

import importlib
import os
import sys
import types
from pathlib import Path

sys.dont_write_bytecode = True  # nothing may appear beside the sources that the binary embeds

HERE = Path(__file__).resolve().parent
PLUGIN = HERE.parents[2] / "plugin" / "hermes" / "dockerbox"
FAKE = str(HERE / "fake_serve.py")

_package = types.ModuleType("dockerbox_plugin")
_package.__path__ = [str(PLUGIN)]
sys.modules.setdefault("dockerbox_plugin", _package)


def load(name):
    """The plugin's module ``name``."""
    return importlib.import_module(f"dockerbox_plugin.{name}")


def fake_argv(mode=""):
    """The command line of a fake serve that misbehaves as ``mode`` says."""
    return [sys.executable, FAKE, *([mode] if mode else [])]


def alive(pid):
    """Whether a process that is no child of this one runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone before the file was opened, or before it was read
        return False
    except OSError:
        os.kill(pid, 0)
        return True
    return state != "Z"
