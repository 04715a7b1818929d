"""The terminal backend ``dockerbox``: what Hermes asks before there is a sandbox, and how one is made."""

import copy
import logging
import os
import threading
from collections.abc import Mapping

import hermes_constants
from agent.terminal_env_provider import TerminalEnvironmentProvider
from hermes_cli.config import DEFAULT_CONFIG, load_config_readonly, read_raw_config

from . import health, limits, locate, settings, workspace
from .client import Client
from .creation import Creation
from .delivery import BASE
from .environment import SandboxEnvironment
from .faults import Fault, wrong_settings
from .host import connection_error
from .identity import DEFAULT_SANDBOX, PROMPT_PROBE, identify, profile_id, session_key
from .sources import Sources

logger = logging.getLogger(__name__)

# Seconds for removing what is left behind: a thread of its own waits for it.
REAP_PATIENCE = 120.0


class DockerboxProvider(TerminalEnvironmentProvider):
    """See agent.terminal_env_provider; section numbers of the contract are in docs of the repository."""

    is_remote = True
    is_container = True
    session_isolated_when_nonpersistent = True  # a sandbox is attached to by name: two ephemeral sessions must not share one

    def __init__(self):
        """Starts nothing and reads nothing: Hermes makes a provider whenever it loads the plugin."""
        self._clients = {}
        self._clients_lock = threading.Lock()
        self._said = set()
        self._reaped = set()
        self._exposed = False

    # What Hermes reads while it decides or paints: no I/O, or as little as a stat.

    @property
    def name(self):
        """The value of terminal.backend."""
        return "dockerbox"

    @property
    def display_name(self):
        """For pickers."""
        return "dockerbox"

    @property
    def description(self):
        """For pickers."""
        return "Docker sandbox over one kept connection: fast commands, time-outs that kill, state that lasts"

    @property
    def env_description(self):
        """For the prompt, when the sandbox could not be asked."""
        return "a dockerbox sandbox (a Linux container)"

    @property
    def default_cwd(self):
        """Where commands start: each sandbox's own home. Read by hosts after 0.22.2."""
        return "~"

    @property
    def supports_streams(self):
        """Environments have exec_prefix. Read by hosts after 0.22.2."""
        return True

    @property
    def skip_container_guards(self):
        """Whether a command can change nothing of the host: not once it is asked for or a sandbox has it, nor when that is unknown."""
        try:
            return self.is_container and not self._exposed and not settings.exposes_host(_sources())
        except Exception:
            logger.debug("the terminal settings cannot be read: guards stay on", exc_info=True)
            return False

    @property
    def cache_path_base(self):
        """Where Hermes's cache files are in every sandbox; see delivery.py. The shell inside knows whose home it is."""
        return BASE

    @property
    def strip_env_keys(self):
        """Nothing: dockerbox has no credentials of its own."""
        return frozenset()

    def is_available(self):
        """Whether there is an executable to ask. No daemon, no network."""
        try:
            self._executable(self._settings())
        except Exception:
            logger.debug("dockerbox is not available", exc_info=True)
            return False
        return True

    # Health.

    def check_requirements(self, config):
        """Whether commands can run now; an error that says what to do is logged when they cannot.

        Isolation is not looked at: Hermes would leave the tools out without a reason, while the refusal of a sandbox names it.
        """
        found = self._health(health.probe, self._settings(config))
        if found.status != "ready":
            logger.error("the dockerbox backend cannot be used: %s", found.sentence)
        return found.status == "ready"

    def probe(self):
        """``(status, detail)`` for the dashboard, within 2 s, never an exception."""
        return self.probe_with_config({})

    def probe_with_config(self, config):
        """As :meth:`probe`, with settings a newer host passes."""
        if limits.refused_by_isolation():
            return "unavailable", limits.isolation_limit()
        try:
            found = self._health(health.probe, self._settings(config))
        except Exception as error:
            logger.debug("the probe failed", exc_info=True)
            return "unavailable", f"the probe failed: {error}"
        return found.status, found.sentence

    def doctor_checks(self):
        """Rows ``(ok, label, detail)`` for `hermes doctor` and `hermes status`, within 15 s."""
        return self._health(health.doctor_rows, self._settings(), _not_honoured(_sources()))

    # Set-up.

    def setup_instructions(self):
        """Lines for `hermes setup`, which prints them once this backend was chosen."""
        return self._health(health.setup_lines, self._settings())

    def _health(self, ask, chosen, *further):
        return ask(chosen, lambda: self._client(chosen), *further)

    def get_config_schema(self):
        """The fields under terminal.backends.dockerbox. Asked by hosts after 0.22.2."""
        return copy.deepcopy(settings.SCHEMA)

    def resolve_config(self, config):
        """A copy that the host may change. Asked by hosts after 0.22.2."""
        return copy.deepcopy(config)

    # Sandboxes.

    def create_environment(self, *, cwd, timeout, task_id="default", container_config=None, **others):
        """A sandbox for a task. ``others`` holds what need not be understood: an ``image``, which if not empty is that of some other
        backend (the setting decides), and what later hosts add; of those ``backend_config`` and ``workspace_binding`` are used.
        """
        if limits.refused_by_isolation():
            raise connection_error(Fault(limits.isolation_limit()))
        sources = _sources(container_config)
        passed = others.get("backend_config")
        chosen = settings.backend_settings(sources.merged, passed)
        asked = settings.wanted(sources, passed)
        identity = identify(
            task_id, _profile(), persistent=asked.persistent, main=chosen.sandbox or DEFAULT_SANDBOX, shared_key=asked.shared_key
        )
        place, trouble = self._workspace(asked, others.get("workspace_binding"), task_id)
        config = {**asked.config, **{field: value for field, value in identity._asdict().items() if value}}
        if place and place.entry:
            config["mounts"] = [*config["mounts"], place.entry]
        creation = Creation(config, cwd=cwd, keys=asked.keys, workspace=place, mounts_cwd=asked.mount_cwd and limits.tells_workspace())
        try:
            client = self._client(chosen)
            if asked.faults:
                raise wrong_settings(asked.faults + creation.check(client.child()))
        except Fault as fault:
            raise connection_error(fault) from fault
        self._say_once(_not_honoured(sources, passed))
        self._say_once([trouble, *limits.host_limits(), limits.isolation_limit()])
        if asked.snap_compat:
            logger.debug("terminal.docker_snap_compat: dockerbox uses nothing that Docker from a snap cannot do")
        environment = limits.shown(SandboxEnvironment)(
            client,
            creation,
            timeout=timeout,
            forwarded=self._forwarded(asked.forwarded),
            session=session_key(task_id) or None,
            probe=task_id == PROMPT_PROBE,
            keep=asked.keep,
        )
        self._exposed |= environment.exposes_host
        if asked.reap:
            self._reap_once(client, identity.profile)
        return environment

    def _workspace(self, asked, binding, task_id):
        """(the Workspace that is to be mounted or None, a sentence for the log or "")."""
        volumes = asked.config["mounts"]
        if not asked.mount_cwd or not limits.tells_workspace() or not isinstance(volumes, list):
            return None, ""
        path, trouble = workspace.bound_directory(binding, task_id, shared=asked.persistent)
        return (workspace.place(path, volumes) if path else None), trouble

    def _reap_once(self, client, profile):
        """Have what dead processes of this profile left behind removed, once per process, while the first commands run."""
        with self._clients_lock:
            if (client, profile) in self._reaped:
                return
            self._reaped.add((client, profile))
        threading.Thread(target=_reap, args=(client, profile), name="dockerbox-reap", daemon=True).start()

    def retire(self):
        """Let go of the children, each once it is idle. Environments made before start another when they need it."""
        with self._clients_lock:
            clients = list(self._clients.values())
        for client in clients:
            client.retire()

    def _settings(self, config=None):
        passed = config.get("backend_config") if isinstance(config, Mapping) else None
        return settings.backend_settings(_terminal(), passed)

    def _executable(self, chosen):
        return locate.find(chosen.binary)

    def _client(self, chosen):
        argv = tuple(settings.serve_argv(self._executable(chosen).path, chosen))
        with self._clients_lock:
            if argv not in self._clients:
                self._clients[argv] = Client(argv)
            return self._clients[argv]

    def _forwarded(self, names):
        if names and _routed():
            self._say_once(["terminal.docker_forward_env: not forwarded to a routed profile, for the environment here is another's"])
            return ()
        return names

    def _say_once(self, lines):
        fresh = [line for line in lines if line and line not in self._said]
        self._said.update(fresh)
        if fresh:
            logger.warning("dockerbox: %s", "; ".join(fresh))


def _terminal():
    """The ``terminal`` section of the active profile's configuration. Not to be changed: it is Hermes's own copy."""
    section = load_config_readonly().get("terminal")
    return section if isinstance(section, Mapping) else {}


def _sources(container=None):
    written, defaults = read_raw_config().get("terminal"), DEFAULT_CONFIG.get("terminal")
    return Sources(
        _terminal(),
        written if isinstance(written, Mapping) else {},
        defaults if isinstance(defaults, Mapping) else {},
        container if isinstance(container, Mapping) else {},
        {} if _routed() else os.environ,
    )


def _not_honoured(sources, passed=None):
    return settings.not_honoured(sources, passed, tells_workspace=limits.tells_workspace())


def _reap(client, profile):
    try:
        child = client.child()
        if "reap" not in child.features:
            return
        gone = child.request("reap", {"profile": profile}, REAP_PATIENCE).get("removed") or ()
    except Fault as fault:
        logger.warning("what earlier processes may have left behind was not removed: %s", fault.reason)
        return
    if gone:
        logger.info("removed sandboxes that ended and nobody can come back to: %s", ", ".join(map(str, gone)))


def _profile():
    home = hermes_constants.get_hermes_home()
    return profile_id(hermes_constants.profile_name_for_home(home), home)


def _routed():
    """Whether this call serves another profile than the one the process was started for."""
    override = hermes_constants.get_hermes_home_override()
    if not override:
        return False
    return hermes_constants.hermes_home_key(override) != hermes_constants.hermes_home_key(hermes_constants.get_process_hermes_home())
