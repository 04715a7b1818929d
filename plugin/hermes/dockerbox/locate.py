"""Where the dockerbox executable is. Stats and one small file, so cheap enough for is_available()."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from .faults import Fault

# Written beside this file by `dockerbox plugin install`: the absolute path of the executable that installed the plugin.
RECORD = "binary"

GET_IT = (
    "build it with `make up` in the dockerbox repository and run `bin/dockerbox plugin install`,"
    " put `dockerbox` on PATH, or set terminal.backends.dockerbox.binary to its absolute path"
)


class Executable(NamedTuple):
    """A dockerbox executable and which of the three places named it."""

    path: str
    source: str


def find(setting, directory=None):
    """The executable that the setting, the install record or PATH names; a Fault with what to do when none does.

    A setting that is wrong is an error, never a reason to look elsewhere: another dockerbox would run without a word.
    """
    if setting:
        path = os.path.expanduser(setting)
        if not _runs(path):
            raise Fault(f"terminal.backends.dockerbox.binary is {setting}, which is not an executable file", GET_IT)
        return Executable(os.path.abspath(path), "terminal.backends.dockerbox.binary")
    recorded = _recorded(directory or Path(__file__).parent)
    if recorded and _runs(recorded):
        return Executable(recorded, "dockerbox plugin install")
    found = shutil.which("dockerbox")
    if found:
        return Executable(os.path.abspath(found), "PATH")
    if recorded:
        raise Fault(f"the dockerbox executable is gone from {recorded}, and there is none on PATH", GET_IT)
    raise Fault("there is no dockerbox executable on PATH", GET_IT)


def _recorded(directory):
    try:
        lines = (Path(directory) / RECORD).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""  # a plugin that came by `hermes plugins install` has no record
    path = lines[0].strip() if lines else ""
    return path if os.path.isabs(path) else ""


def _runs(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)
