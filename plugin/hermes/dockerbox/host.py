"""Hermes's own exceptions, and how a Fault becomes one."""

import sys

from tools.environments.base import BaseEnvironment

# The two exceptions are not among the names a plugin may import, but they live in the module that defines BaseEnvironment, and the
# tools recognise a broken backend by this very class.
_base = sys.modules[BaseEnvironment.__module__]
EnvironmentConnectionError = getattr(_base, "EnvironmentConnectionError", None)
FileFetchError = getattr(_base, "FileFetchError", RuntimeError)


def connection_error(fault):
    """The exception that tells Hermes that the backend, not a command, failed."""
    # The terminal tool reports any exception whose text has the word "timeout" as a command that timed out (124).
    reason = fault.reason.replace("timeout", "time-out").replace("Timeout", "Time-out")
    if EnvironmentConnectionError is None:
        return RuntimeError(f"{reason}: {fault.hint}" if fault.hint else reason)
    return EnvironmentConnectionError(reason, retry_hint=fault.hint)
