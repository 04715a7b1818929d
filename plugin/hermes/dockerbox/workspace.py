"""The host's working directory in the sandbox: terminal.docker_mount_cwd_to_workspace.

What a host tells about it is context. It is mounted because the user switched that on, and never for another task than the one it is
told for.
"""

import ntpath
import os
import posixpath
from typing import NamedTuple

# Where the directory is mounted: the first that no volume claims.
TARGETS = ("/workspace", "/host-cwd", "/host-workspace")


# What Hermes calls the task of a process that serves one session.
_MAIN = "default"

# Sources of a binding that say where the process works rather than a session.
_OF_PROCESS = frozenset({"process"})


class Workspace(NamedTuple):
    """A host directory and its place in the sandbox. ``entry`` is to be mounted, "" when a volume brings the directory already."""

    host_path: str
    target: str
    entry: str


def bound_directory(binding, task_id, *, shared):
    """(directory, why there is none) out of a host's ``workspace_binding``; ("", "") when it named none.

    ``shared`` tells that other sessions use the sandbox too. They get to see what the process was started in, but not what one of them
    works on; and a sandbox of one session's own gets what that session works on, but not what the process was started in, which may have
    been for another.
    """
    path = getattr(binding, "host_path", None)
    if binding is None or not path:
        return "", ""
    of, task_id = getattr(binding, "task_id", None) or _MAIN, task_id or _MAIN
    process = getattr(binding, "source", None) in _OF_PROCESS
    if not process and of != task_id:
        own = "; terminal.container_persistent false gives each session a sandbox of its own, with its directory" if shared else ""
        return "", f"the working directory of {of} is not mounted in the sandbox of {task_id}{own}"
    if process and not shared and task_id != _MAIN:
        return "", f"the directory Hermes was started in is not mounted in the sandbox of {task_id}, which named none of its own"
    if not isinstance(path, (str, os.PathLike)) or not _absolute(str(path)):
        return "", f"the working directory {str(path)!r} is not absolute and is not mounted"
    path = str(path)
    if ":" in ntpath.splitdrive(path)[1]:
        return "", f"the working directory {path!r} has a colon in its name, which a volume cannot have, and is not mounted"
    return path, ""


def place(host_path, volumes):
    """The Workspace for a directory beside ``volumes``, the entries of terminal.docker_volumes."""
    taken = set()
    for source, target in map(_split, volumes):
        if target and _same(source, host_path):
            return Workspace(host_path, target, "")
        taken.add(target)
    target = next((t for t in TARGETS if not any(t == used or used.startswith(f"{t}/") for used in taken)), TARGETS[-1])
    return Workspace(host_path, target, f"{host_path}:{target}")


def others(mounts, volumes):
    """Of a sandbox's ``mounts`` those that are another session's working directory: nothing in ``volumes`` asks for them."""
    asked = {target for _, target in map(_split, volumes)}
    return [mount for mount in mounts if (target := _split(mount)[1]) in TARGETS and target not in asked]


def mounted(workspace, mounts):
    """Whether a sandbox with these ``mounts`` has the directory in its place."""
    return any(target == workspace.target and _same(source, workspace.host_path) for source, target in map(_split, mounts))


def start(cwd, workspace):
    """Where a sandbox starts in which the host's directory is mounted: in the mount when the host asked for that directory, or for one
    below it; else as asked."""
    if not cwd or not _absolute(cwd):
        return cwd
    path, top = _clean(cwd), _clean(workspace.host_path)
    if path == top:
        return workspace.target
    if path.startswith(top.rstrip("/") + "/"):
        return posixpath.join(workspace.target, path[len(top) :].lstrip("/"))
    return cwd


def _split(entry):
    """(source, target) of SOURCE:TARGET[:OPTION]; empty where an entry has none. What is allowed in one is dockerbox's to say."""
    drive, rest = ntpath.splitdrive(entry.strip()) if isinstance(entry, str) else ("", "")
    if not rest.startswith(("/", "\\")):
        drive, rest = "", drive + rest
    source, _, rest = rest.partition(":")
    target = rest.partition(":")[0]
    return drive + source, posixpath.normpath(target) if target else ""


def _same(one, other):
    return bool(one) and os.path.realpath(os.path.expanduser(one)) == os.path.realpath(os.path.expanduser(other))


def _absolute(path):
    return path.startswith("/") or bool(ntpath.splitdrive(path)[0])


def _clean(path):
    """The path with slashes only: below a mount they are what separates names, whatever the host uses."""
    return posixpath.normpath(path.replace("\\", "/") if ntpath.splitdrive(path)[0] else path)
