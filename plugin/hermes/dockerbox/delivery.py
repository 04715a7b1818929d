"""Hermes's cache files in the sandbox: pictures, documents and what else the host tells the model about, at the paths it names.

Only the directories below travel. What else is in Hermes's home, credentials and settings above all, never does.
"""

import logging
import os
import threading
import time

from hermes_constants import get_hermes_dir

from .faults import Fault

logger = logging.getLogger(__name__)

# Where they land in the sandbox; "~" is its account's home, there as in what the host tells the model.
BASE = "~/.hermes"

# (path below Hermes's home and below BASE, what older installations call it) of each directory, as Hermes itself has them.
_GENERATED = "cache/generated"
DIRECTORIES = (
    ("cache/documents", "document_cache"),
    ("cache/images", "image_cache"),
    ("cache/audio", "audio_cache"),
    ("cache/videos", "video_cache"),
    ("cache/screenshots", "browser_screenshots"),
    ("cache/web", "web_cache"),
    ("cache/delegation", "delegation_cache"),
    ("cache/spillover", "cache/spillover"),
    (_GENERATED, _GENERATED),
    ("images", "images"),
    ("attachments", "attachments"),
    ("composer-pastes", "composer-pastes"),
)

# Seconds after which a generated file is left where it is: Hermes keeps those for ever, and would name no old one.
GENERATED_AGE = 24 * 3600

# The largest file that is delivered, in bytes.
LIMIT = 256 << 20

# Seconds within which the host's directories are not looked at again, for commands in a row.
_REST = 0.2

# Seconds for one delivery; a command waits for it.
PATIENCE = 300.0


class Delivery:
    """What one sandbox was given so far. Safe for any thread."""

    def __init__(self):
        """Nothing was delivered yet."""
        self._lock = threading.RLock()  # a request may find that the sandbox is another one, and forget
        self._given = {}  # path below BASE -> (modification time in ns, size)
        self._looked = 0.0
        self._said = None

    def forget(self):
        """The sandbox is another one: everything has to be delivered again."""
        with self._lock:
            self._given = {}  # another dict: who is about to enter something has the old one
            self._looked = 0.0

    def bring(self, request):
        """Deliver what is new or newer, and remove what the host removed.

        ``request(method, params, patience)`` asks the child. A failure is logged, once as long as it stays the same: a command is worth
        running without a picture.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._looked < _REST:
                return
            there = _files()
            fresh = {name: found for name, found in there.items() if self._given.get(name) != found[1]}
            gone = [name for name in self._given if name not in there]
            try:
                if fresh or gone:
                    self._deliver(request, fresh, gone)
                self._looked = time.monotonic()
            except Fault as fault:
                self._looked = time.monotonic()
                self._say(f"{fault.reason}{f' ({fault.hint})' if fault.hint else ''}")

    def _deliver(self, request, fresh, gone):
        given = self._given
        files = [{"source": source, "path": name} for name, (source, _) in fresh.items()]
        answer = request("deliver", {"dest": BASE, "files": files, "remove": gone, "max_bytes": LIMIT}, PATIENCE)
        # What was left out is not tried again until it changes.
        given.update({name: stamp for name, (_, stamp) in fresh.items()})
        for name in gone:
            del given[name]
        self._say(answer.get("problem"))

    def _say(self, problem):
        if problem and problem != self._said:
            logger.warning("a file of Hermes's cache is not in the sandbox: %s", problem)
        self._said = problem or self._said


def _files():
    """The host's cache files: path below BASE -> (path on this machine, (modification time in ns, size))."""
    found = {}
    for path, older in DIRECTORIES:
        oldest = (time.time() - GENERATED_AGE) * 1e9 if path == _GENERATED else 0
        _collect(str(get_hermes_dir(path, older)), path, oldest, found)
    return found


def _collect(directory, name, oldest, found):
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return  # there is none, which is usual
    for entry in entries:
        below = f"{name}/{entry.name}"
        try:
            if entry.is_dir(follow_symlinks=False):
                _collect(entry.path, below, oldest, found)
            elif entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                below.encode()  # a name that is not text cannot be told to a model either
                if status.st_mtime_ns >= oldest:
                    found[below] = (entry.path, (status.st_mtime_ns, status.st_size))
        except (OSError, UnicodeEncodeError) as error:
            logger.debug("%r is not delivered: %s", below, error)
