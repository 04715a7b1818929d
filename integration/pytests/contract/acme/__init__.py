"""A terminal backend derived from the host's base class and nothing else: containers, no streams, and no default directory until a test
gives it one.
"""

from agent.terminal_env_provider import TerminalEnvironmentProvider


class Environment:
    """Runs nothing. Its home is what a test says; a start of "~" means that."""

    def __init__(self, cwd, timeout, home, told):
        self.cwd = home if cwd == "~" else cwd
        self.asked = cwd
        self.timeout = timeout
        self.env = {}
        self.told = told

    def execute(self, command, cwd="", **_options):
        return {"output": f"{command} in {cwd or self.cwd}", "returncode": 0}

    def cleanup(self):
        pass


class Provider(TerminalEnvironmentProvider):
    home = "/home/acme"

    @property
    def name(self):
        return "acme"

    @property
    def display_name(self):
        return "acme"

    def is_available(self):
        return True

    def create_environment(self, *, cwd, timeout, **told):
        return Environment(cwd, timeout, self.home, told)


def register(ctx):
    ctx.register_terminal_environment_provider(Provider())
