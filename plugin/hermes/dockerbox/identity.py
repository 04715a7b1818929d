"""Which sandbox a Hermes task uses.

One sandbox per profile, as Hermes's own docker backend has it, and it carries the name and the settings that `dockerbox up` without
arguments would use: people can look into what the agent sees with `dockerbox run default …`.
"""

import hashlib
import os
import re
from typing import NamedTuple

DEFAULT_SANDBOX = "default"

# The prompt builder makes an environment of its own under this task, runs uname and tears it down with force.
PROMPT_PROBE = "prompt-backend-probe"

# What Hermes calls a task that shares the profile's environment: the plain "default"; a chat session of the gateway (a plugin backend
# gets one key per session where the docker backend gets one per profile); either qualified by the profile or home it was routed to.
_SHARED = re.compile(r"(default|profile:[^:]+|home:[^:]+)(:session:.*)?|session:.*", re.DOTALL)

# Mirrors what `dockerbox` accepts as a name, only to decide whether an identifier can be used as it stands.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")

# Ephemeral sandboxes belong to this process alone: two Hermes processes must not attach to one and remove it under each other.
_PROCESS = os.urandom(4).hex()


class Identity(NamedTuple):
    """The identifying fields of a sandbox's configuration: ``name`` and ``profile`` tell it from all others, ``task`` is for people.

    ``task`` is empty for the profile's shared sandbox.
    """

    name: str
    profile: str
    task: str


def identify(task_id, profile, *, persistent, main=DEFAULT_SANDBOX, shared_key=""):
    """The sandbox for a task of a profile. ``main`` names the profile's shared sandbox, ``shared_key`` one shared across profiles.

    The three kinds of names begin differently, so a task called "default" by its maker does not get into the shared one.
    """
    task = task_id or "default"
    if not persistent:
        return Identity(valid_name(f"task:{task}-{_PROCESS}"), profile, task)
    if task != PROMPT_PROBE and not _SHARED.fullmatch(task):
        return Identity(valid_name(f"task:{task}"), profile, task)
    if shared_key:
        return Identity(valid_name(f"shared:{shared_key}"), "", "")
    return Identity(main, profile, "")


def session_key(task_id):
    """The gateway session a task belongs to, or "" for a task outside any."""
    return (task_id or "").partition("session:")[2]


def profile_id(home_name, home):
    """The profile part of an identity: empty for the default profile, else its name; a home outside any profile is told by its path."""
    if home_name == "default":
        return ""
    return home_name or f"home-{_digest(str(home))}"


def valid_name(wanted):
    """``wanted``, or a name made from it that no other identifier is mapped to."""
    if _NAME.fullmatch(wanted):
        return wanted
    readable = re.sub(r"[^A-Za-z0-9_.:-]+", "-", wanted).strip("-._:")[:80]
    return f"{readable or 'task'}-{_digest(wanted)}"


def _digest(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
