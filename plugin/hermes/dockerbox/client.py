"""The child of this Hermes process: started when first needed, started again when it died, never shared across a fork."""

import os
import threading
import weakref

from .child import Child
from .faults import Fault

# How long, in seconds, a child may take from its start to its agreement on the protocol.
START_PATIENCE = 10.0

_clients = weakref.WeakSet()


class Client:
    """Keeps one child running for one command line. Safe for any thread."""

    def __init__(self, argv):
        """``argv`` is the command line of `dockerbox serve --stdio`. Starts nothing."""
        self._argv = tuple(argv)
        self._child = None
        self._starting = threading.Lock()
        _clients.add(self)

    def child(self, patience=START_PATIENCE):
        """The living child, started within ``patience`` seconds if there is none; a Fault otherwise."""
        child = self._child
        if child is not None and not child.lost:
            return child
        if not self._starting.acquire(timeout=patience):
            raise Fault(f"dockerbox did not start within {patience:g} s", "see `hermes doctor`")
        try:
            if self._child is None or self._child.lost:
                fresh = Child(self._argv)
                try:
                    fresh.greet(patience)
                except Fault as fault:
                    fresh.end(fault)
                    raise
                self._child = fresh
            return self._child
        finally:
            self._starting.release()

    def retire(self):
        """Let the child end once it is idle. A later :meth:`child` starts another."""
        child, self._child = self._child, None
        if child is not None:
            child.retire()

    def forked(self):
        """In a forked copy of this process: forget the child of the original, and the lock its threads may have held."""
        child, self._child = self._child, None
        self._starting = threading.Lock()
        if child is not None:
            child.abandon()


def _forked():
    for client in list(_clients):
        client.forked()


# A forked copy keeps the pipe ends, and with them a child whose Hermes is gone: it must drop them. A process that execs has them
# closed by the kernel.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
