"""Rules 7 and 8: streams, and where Bot Desktop puts the screen."""

import functools

from . import rules
from .mismatch import replace


def exec_prefix(module):
    """tools.environments.streams, rule 7: an environment of a plugin that declares streams gives its own prefix."""

    def ask(real):
        @functools.wraps(real)
        def prefix(env, *, user=None, interactive=True):
            from tools.terminal_tool_config import _get_plugin_env_provider

            provider = _get_plugin_env_provider(rules.attribute(env, "_hermes_backend_name", ""))
            if provider is None or not rules.streams(provider) or not callable(rules.attribute(env, "exec_prefix", None)):
                return real(env, user=user, interactive=interactive)
            words = env.exec_prefix(user=user, interactive=interactive)
            return list(words) if words else None

        return prefix

    replace(module, "exec_prefix", ask)


class Streaming(tuple):
    """Rules 7 and 8: the backends that can host a screen, by declaration too. A stand-in for an isolated one cannot."""

    def __contains__(self, backend):
        from tools.terminal_tool_config import _get_plugin_env_provider

        provider = _get_plugin_env_provider(backend)
        if provider is None:
            return super().__contains__(backend)
        return rules.streams(provider) and not rules.isolated(provider)


def placement(module):
    """tools.bot_desktop.placement, rules 7 and 8: its own decision, and a sentence of its own about isolation."""
    replace(module, "_STREAM_BACKENDS", Streaming)

    def explain(real):
        @functools.wraps(real)
        def resolve():
            from tools.terminal_tool_config import _get_plugin_env_provider

            answer = real()
            provider = _get_plugin_env_provider(answer.backend)
            if answer.where != module.REFUSED or provider is None or not rules.streams(provider):
                return answer
            reason = (
                f"terminal.backend is {answer.backend}, which can host a screen, but plugins.isolation: host keeps its plugin in another "
                "process. Set plugins.isolation: in_process, or bot_desktop.placement: gateway for a screen outside the sandbox."
            )
            return module.Placement(answer.where, answer.backend, reason)

        return resolve

    replace(module, "resolve", explain)
