"""What the modules here share: which host this is, and the configuration file as a user would change it."""

import contextlib
import json
import os
from unittest import mock

from agent.terminal_env_provider import TerminalEnvironmentProvider
from agent.terminal_env_registry import get_provider
from hermes_fixture import CONFIG, HOME, PROVIDER, base, terminal
from tools.bot_desktop import placement

CHANGED = hasattr(TerminalEnvironmentProvider, "default_cwd")
ACME = get_provider("acme")


@contextlib.contextmanager
def backend(name):
    """Hermes's terminal backend is ``name`` as long as this lasts."""
    terminal._get_env_config()  # which puts the configuration file's settings into os.environ, once
    with mock.patch.dict(os.environ, {"TERMINAL_ENV": name}):
        yield


def placed(name, setting):
    """Where Bot Desktop goes with that backend and that bot_desktop.placement, decided by Hermes's own code."""
    text = CONFIG.read_text()
    try:
        CONFIG.write_text(f"{text}\nbot_desktop: {json.dumps({'placement': setting})}\n")
        with backend(name):
            return placement.resolve()
    finally:
        CONFIG.write_text(text)


@contextlib.contextmanager
def declaring(provider, **attributes):
    """The provider says this of itself as long as this lasts; an exception is raised instead."""

    def said(value):
        def read(_self):
            if isinstance(value, Exception):
                raise value
            return value

        return property(read)

    with contextlib.ExitStack() as stack:
        for name, value in attributes.items():
            stack.enter_context(mock.patch.object(type(provider), name, said(value), create=True))
        yield


def forget_environments():
    """Let go of every live environment, as Hermes does with those that were idle for long; sessions keep their records."""
    terminal.cleanup_all_environments()


__all__ = ["ACME", "CHANGED", "HOME", "PROVIDER", "backend", "base", "declaring", "forget_environments", "placed"]
