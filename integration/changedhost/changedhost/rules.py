"""What the changed host demands, as far as it can be said without a site. The numbers are those of contract/guard.go."""

import contextlib
import contextvars
import posixpath
import re

BUILTIN = "/root"
TILDE = "~"

# Where the host keeps on an environment what "~" turned out to be.
RECORD = "_hermes_resolved_home"

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")

_home = contextvars.ContextVar("declared_home", default="")


def soft(call, default=None):
    """What ``call`` gives; a plugin's code that raises counts as the default."""
    try:
        return call()
    except Exception:
        return default


def attribute(thing, name, default):
    """Read an attribute of something that a plugin made, as fail-soft as :func:`soft`."""
    return soft(lambda: getattr(thing, name), default)


def declared_default(provider):
    """Rule 3: where a provider says commands start. Absolute, or "~" and nothing longer; else it said nothing, and that is no error."""
    said = attribute(provider, "default_cwd", None)
    if said == TILDE:
        return TILDE
    if not isinstance(said, str) or not posixpath.isabs(said) or said.startswith("/Users/") or _DRIVE.match(said):
        return BUILTIN
    return said


def declared_home(declared, resolved):
    """Rule 5: the directory in which a recorded one is believed; "" for none. A "~" that nobody resolved is none (rule 8)."""
    home = resolved if declared == TILDE else declared
    if not isinstance(home, str) or not posixpath.isabs(home) or home == BUILTIN:
        return ""
    return home


def record_resolved(env, asked):
    """Rule 4: after connecting, note what the environment made of a "~" that it was handed literally."""
    cwd = attribute(env, "cwd", None)
    if asked == TILDE and isinstance(cwd, str) and posixpath.isabs(cwd):
        soft(lambda: setattr(env, RECORD, cwd))  # an environment may refuse attributes, and stays as it is then


def streams(provider):
    """Rule 7: whether a provider's environments hand out streams. Off unless declared."""
    return bool(attribute(provider, "supports_streams", False))


def isolated(provider):
    """Rule 8: whether the provider is a stand-in for one that lives in the plugin host."""
    return hasattr(type(provider), "__hermes_plugin_host_ref__")


@contextlib.contextmanager
def believing(home):
    """The guard believes in ``home`` (rule 5) as long as this lasts. The sites know the environment, the guard has only the path."""
    token = _home.set(home)
    try:
        yield
    finally:
        _home.reset(token)


def in_believed_home(cwd):
    """Rule 5: whether ``cwd`` is the home that is believed in now, or below it: /home/acme2 is not below /home/acme."""
    home = _home.get()
    if not home:
        return False
    cwd, home = posixpath.normpath(cwd), posixpath.normpath(home)
    return cwd == home or cwd.startswith(home.rstrip("/") + "/")
