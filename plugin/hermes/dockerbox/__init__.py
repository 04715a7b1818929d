"""Hermes plugin: the terminal backend ``dockerbox``.

Thin on purpose: every rule about sandboxes, directories, limits and endings lives in the ``dockerbox`` executable, which this
plugin starts once per Hermes process as ``dockerbox serve --stdio`` and asks over JSON-RPC. What is here translates between
Hermes's hooks and those requests.
"""

from .provider import DockerboxProvider


def register(ctx):
    """Called once by Hermes when the plugin is loaded; starts nothing."""
    provider = DockerboxProvider()
    ctx.register_terminal_environment_provider(provider)
    # A reload leaves environments of the old copy behind. Their child goes once it has no command running.
    ctx.on_unload(provider.retire)
