"""Where Hermes 0.22.2 decides what the change decides anew, module by module."""

from . import backends, directories, files, screens

SITES = {
    "agent.terminal_env_provider": backends.provider_class,
    "hermes_cli.config": directories.tilde,
    "tools.terminal_tool_config": directories.guard,
    "tools.terminal_tool": directories.terminal_tool,
    "tools.file_tools": files.file_tools,
    "tools.file_tools_paths": files.file_paths,
    "tools.terminal_tool_backends": backends.factory,
    "tools.environments.streams": screens.exec_prefix,
    "tools.bot_desktop.placement": screens.placement,
}
