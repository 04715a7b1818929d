"""What the changed host asks of a provider, and what it tells one."""

import copy
import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass

from . import rules
from .mismatch import replace


def provider_class(module):
    """agent.terminal_env_provider: the two attributes. A provider that overrides neither behaves as before."""
    replace(module, "TerminalEnvironmentProvider", with_attributes)


def with_attributes(cls):
    cls.default_cwd = property(lambda _self: None)
    cls.supports_streams = property(lambda _self: False)
    return cls


@dataclass(frozen=True)
class WorkspaceBinding:
    """Which host directory a session works on. Context, never leave to mount it."""

    host_path: str
    source: str
    task_id: str


def factory(module):
    """tools.terminal_tool_backends: what a provider is told, and rule 4's note of what "~" is."""

    def build(real):
        @functools.wraps(real)
        def make(*, env_type, image, cwd, timeout, cc, task_id, **others):
            provider = module._get_plugin_env_provider(env_type)
            if provider is None:
                return real(env_type=env_type, image=image, cwd=cwd, timeout=timeout, cc=cc, task_id=task_id, **others)
            env = provider.create_environment(
                cwd=cwd, timeout=timeout, task_id=task_id, image=image, container_config=cc,
                backend_config=_backend_config(provider, env_type),
                workspace_binding=_binding(task_id, others.get("host_cwd")),
            )  # fmt: skip
            rules.record_resolved(env, cwd)
            for name, value in (("_hermes_backend_name", provider.name.strip().lower()), ("env_type", env_type)):
                rules.soft(lambda name=name, value=value: setattr(env, name, value))
            return env

        return make

    replace(module, "_build_plugin_env", build)


def _binding(task_id, given):
    """The directory that a creation names, else the session, else the process; told whether or not the backend mounts any."""
    from tools import terminal_tool as terminal

    if given:
        return WorkspaceBinding(given, "factory", task_id)
    said = terminal.resolve_task_overrides(task_id)
    session = (said.get("cwd"), said.get("cwd_source") or "session")
    for path, source in (session, (os.environ.get("TERMINAL_CWD") or os.getcwd(), "process")):
        if isinstance(path, str) and os.path.isabs(path) and os.path.isdir(path):
            return WorkspaceBinding(path, source, task_id)
    return None


def _backend_config(provider, env_type):
    """terminal.backends.NAME, by way of the provider when it wants to see it first."""
    from hermes_cli.config import load_config_readonly

    section = load_config_readonly()
    for key in ("terminal", "backends", env_type):
        section = section.get(key) if isinstance(section, Mapping) else None
    section = copy.deepcopy(dict(section)) if isinstance(section, Mapping) else {}
    resolve = rules.attribute(provider, "resolve_config", None)
    if not callable(resolve):
        return section
    return rules.soft(lambda: resolve(section), section)
