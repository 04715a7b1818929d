"""Rules 1 to 6 for the terminal tool: where an environment starts, and where each command runs."""

import functools

from . import rules
from .mismatch import replace


def tilde(module):
    """hermes_cli.config, rule 4: the host expands no "~" that is meant for a plugin's sandbox. 0.22.2 spares that of ssh alone."""

    def spare(real):
        @functools.wraps(real)
        def decide(backend, cwd):
            name = (backend or "").strip().lower()
            return real(backend, cwd) or (_is_plugin(name) and (cwd == rules.TILDE or cwd.startswith("~/")))

        return decide

    replace(module, "_is_ssh_remote_tilde_cwd", spare)


def _is_plugin(name):
    # By name: the configuration is read before any plugin is loaded.
    from agent.terminal_env_registry import BUILTIN_BACKEND_NAMES

    return bool(name) and name not in BUILTIN_BACKEND_NAMES


def guard(module):
    """tools.terminal_tool_config, rules 2 and 5: the guard as it was, less what lies in the home believed in."""

    def spare_home(real):
        @functools.wraps(real)
        def decide(cwd, *, mounted_host=None):
            if not real(cwd, mounted_host=mounted_host):
                return False
            return module._is_mounted_host_cwd(cwd, mounted_host) or not rules.in_believed_home(cwd)

        return decide

    replace(module, "_is_unusable_container_cwd", spare_home)


def home_of(env_type, env=None):
    """Rule 5: the declared home of a backend's environment, "" for none and for what is no plugin's."""
    from tools.terminal_tool_config import _get_plugin_env_provider

    provider = _get_plugin_env_provider(env_type)
    if provider is None:
        return ""
    return rules.declared_home(rules.declared_default(provider), rules.attribute(env, rules.RECORD, ""))


class Defaults(dict):
    """Rule 1: the default directory per backend, where a plugin's own word comes before the built-in one."""

    def get(self, env_type, default=None):
        from tools.terminal_tool_config import _get_plugin_env_provider

        provider = None if env_type in self else _get_plugin_env_provider(env_type)
        declared = rules.BUILTIN if provider is None else rules.declared_default(provider)
        return super().get(env_type, default) if declared == rules.BUILTIN else declared


def terminal_tool(module):
    """tools.terminal_tool, rules 1, 2, 5 and 6: its own code decides, with the guard knowing the home of the environment at hand."""
    replace(module, "_DEFAULT_CWD_BY_BACKEND", Defaults)
    replace(module, "_resolve_config_cwd", lambda real: knowing(real, lambda env_type, _mount: home_of(env_type)))
    replace(module, "_sanitize_cwd_for_live_env", lambda real: knowing(real, lambda env, _cwd: home_of(getattr(env, "env_type", ""), env)))
    replace(module, "_resolve_command_cwd", lambda real: knowing(real, lambda env_type=None, env=None, **_rest: home_of(env_type, env)))
    replace(module, "_plan_execution", lambda real: knowing(real, lambda _command, task_id=None, **_rest: home_of_task(task_id)))


def knowing(real, home):
    """``real``, run while the guard believes in what ``home`` makes of the same arguments."""

    @functools.wraps(real)
    def run(*args, **kwargs):
        with rules.believing(home(*args, **kwargs)):
            return real(*args, **kwargs)

    return run


def live_environment(task_id):
    """The environment a task's commands run in, None before there is one."""
    from tools import terminal_tool as terminal

    with terminal._env_lock:
        return terminal._lookup_active_env(terminal._resolve_container_task_id(task_id), task_id)


def home_of_task(task_id):
    from tools import terminal_tool as terminal

    return home_of(terminal._get_env_config()["env_type"], live_environment(task_id))
