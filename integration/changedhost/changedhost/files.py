"""Rules 4 to 6 for the file tools: what a path means to a command it means to them."""

import functools

from . import rules
from .directories import home_of_task, knowing, live_environment
from .mismatch import replace


def file_tools(module):
    """tools.file_tools, rules 2 and 5, where a file tool is the first to need the environment."""
    replace(module, "_create_terminal_env_for_file_ops", lambda real: knowing(real, lambda raw, _task: home_of_task(raw)))


def file_paths(module):
    """tools.file_tools_paths, rules 4 and 6: a file tool means by a path what a command means by it."""
    replace(module, "_authoritative_workspace_root", lambda real: _same_place(module, real))
    replace(module, "_resolve_path_for_task", lambda real: _tilde_of_sandbox(module, real))


def _declaring(module, task_id):
    """The backend of a task when it is a plugin's container that declared a place of its own, else ""."""
    from tools.terminal_tool_config import _get_plugin_env_provider

    env_type = module.container_backend_for_task(task_id)
    provider = _get_plugin_env_provider(env_type or "")
    return env_type if provider is not None and rules.declared_default(provider) != rules.BUILTIN else ""


def _same_place(module, real):
    @functools.wraps(real)
    def root(task_id="default"):
        from tools import terminal_tool as terminal

        env_type = _declaring(module, task_id)
        if not env_type:
            return real(task_id)
        start = terminal.resolve_task_overrides(task_id).get("cwd") or terminal._get_env_config()["cwd"]
        cwd = terminal._resolve_command_cwd(
            workdir=None, default_cwd=start, session_key=task_id, env_type=env_type, env=live_environment(task_id)
        )
        return _home_inside(task_id) or None if cwd == rules.TILDE else cwd

    return root


def _home_inside(task_id):
    """What "~" is inside, with an environment brought up to ask when there is none, as for ssh; "" when it cannot be."""
    env = live_environment(task_id)
    if env is None:
        from tools.file_tools import _get_file_ops

        env = rules.soft(lambda: _get_file_ops(task_id).env)
    return rules.attribute(env, rules.RECORD, "")


def _tilde_of_sandbox(module, real):
    @functools.wraps(real)
    def resolve(filepath, task_id="default"):
        text = str(filepath or "")
        if (text == rules.TILDE or text.startswith("~/")) and _declaring(module, task_id) and (home := _home_inside(task_id)):
            filepath = home + text[1:]
        return real(filepath, task_id)

    return resolve
