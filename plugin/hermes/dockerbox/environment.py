"""A sandbox as Hermes sees it: BaseEnvironment's hooks over requests to the child.

Hermes keeps what it is good at (deadline, interrupt, bounded capture, passwords); the shell state, the directories and the endings are the
sandbox's. So nothing is wrapped around a command here: its text goes out as it is, and its directory comes back with its result.
"""

import logging
import os
import shutil
import threading

from tools.environments.base import BaseEnvironment

from .bytes64 import base64, from_base64
from .command import Command
from .creation import CREATE_PATIENCE
from .delivery import Delivery
from .faults import Fault
from .host import FileFetchError, connection_error
from .streams import WINDOW, InputFeed

logger = logging.getLogger(__name__)

# Seconds for a request that asks a living sandbox.
ASK_PATIENCE = 30.0
# Seconds for a removal: the container gets its time to stop.
REMOVE_PATIENCE = 60.0
# Seconds for a file; as long as Hermes's own transfer may take.
FETCH_PATIENCE = 300.0

# The host keeps the deadline of a command. The sandbox's own, this much later in milliseconds, is for a host that hangs.
_SANDBOX_DEADLINE_AFTER = 1000

# Input up to this many bytes travels inside the request; more is streamed.
_INLINE_INPUT = 256 << 10

# Names, or their beginnings, by which Hermes tells a command whose session it runs for.
_SESSION_NAMES = ("HERMES_SESSION_", "HERMES_UI_SESSION_ID")

# Variables that say whose session or which agent a command runs for. They hold for one command and must never be found by a later one,
# which may be another session's, not even when a command exports them itself.
_TRANSIENT = [
    "HERMES_SESSION_*", "HERMES_UI_SESSION_ID", "AI_AGENT", "HERMES_AGENT", "HERMES_RPC_*", "HERMES_KERNEL_DIR", "HERMES_CRON_*",
    "HERMES_BROWSER_CONTROL_*", "HERMES_DELEGATED_CHILD_CONTEXT",
]  # fmt: skip

# Told to every command, as Hermes's other backends do; tools use them to know that an agent runs them.
_HARNESS = {"AI_AGENT": "hermes-agent", "HERMES_AGENT": "true"}


class _Script(str):
    """A command's text on its way from _wrap_command to _run_bash, with what belongs to this one execute()."""

    call: "_Call"


class _Call:
    """One execute(): concurrent ones on the same environment must not mix up their results."""

    def __init__(self, *, piped):
        self.piped = piped
        self.cwd = ""
        self.command = None


class _Attachment:
    """A handle on the sandbox, valid as long as the child that gave it lives."""

    def __init__(self, child, info):
        self.child = child
        self.handle = info["env"]
        self.info = info


# BaseEnvironment's switches for probes that a backend has to allow. All are allowed: a probe is a command like any other here, and one
# that takes too long ends alone. Found by what they have in common, for Hermes's install scanner takes the name of one of them for a
# line of a sudoers file and refuses the plugin.
_PROBES = [name for name in dir(BaseEnvironment) if name.endswith("_probe_supported")]


# The name must not contain "docker", "local" or another built-in backend: the file tools guess a backend from the class's name before
# they ask the environment, and would take this one's paths for those of the docker backend.
class SandboxEnvironment(BaseEnvironment):
    """One sandbox. Commands may run concurrently; their changes to the shell's state merge."""

    def __init__(self, client, creation, *, timeout, forwarded=(), session=None, probe=False, keep=True):
        """Create the sandbox or attach to it, as ``creation`` says. ``forwarded`` names variables whose values go along with every
        command. ``session`` is the gateway session this environment serves, None outside the gateway. A ``probe`` never removes the
        sandbox it shares. ``keep`` false removes the sandbox at cleanup() although it is persistent.
        """
        self._attachment = None  # first: __del__ and the base class must find it
        super().__init__(cwd=creation.cwd, timeout=timeout)
        for name in _PROBES:
            setattr(self, name, True)
        self._snapshot_ready = True  # the sandbox keeps the shell's state: there is no snapshot to take or to source
        self._client = client
        self._creation = creation
        self._forwarded = tuple(forwarded)
        self._session = session
        self._probe = probe
        self._keep = keep
        self._delivery = None if probe else Delivery()
        self._raw_directories = {}
        self._attaching = threading.Lock()
        self._thread = threading.local()
        # What the host asks whether an environment outlives a turn: a persistent one does, an ephemeral one lives as long as its session.
        self._persistent = creation.persistent
        self._session_scoped = not self._persistent
        # Bot Desktop writes both down to find out later whether the sandbox still exists.
        self._container_id = ""
        self._docker_exe = shutil.which("docker") or "docker"
        try:
            self._attach()
        except Fault as fault:
            raise connection_error(fault) from fault

    # The sandbox.

    def _attach(self):
        """The living handle; creates or attaches to the sandbox when there is none. A Fault otherwise."""
        attachment = self._attachment
        if attachment is not None and not attachment.child.lost:
            return attachment
        if not self._attaching.acquire(timeout=CREATE_PATIENCE):
            raise Fault("the sandbox is still being created", "try again in a while")
        try:
            stale = self._attachment
            if stale is None or stale.child.lost:
                child = self._client.child()
                again = bool(self._container_id)
                info = self._creation.create(child, again=again)
                self._attachment = _Attachment(child, info)
                self._adopt(info, again=again)
            return self._attachment
        finally:
            self._attaching.release()

    def _adopt(self, info, *, again):
        """Take over what a create reported. ``again`` is true when this environment had the sandbox before."""
        for warning in info.get("warnings") or ():
            logger.warning("sandbox %s: %s", info.get("name"), warning)
        replaced = again and (info.get("created") or info.get("container_id") != self._container_id)
        if not again or replaced:
            self.cwd = info.get("cwd") or self.cwd
        if replaced:
            self._mark_recreated()
            self._forget_delivered()
        self._container_id = info.get("container_id") or ""
        for name in ("host_cwd", "host_cwd_mount"):
            # Hermes compares directories with these two once they are there.
            if value := getattr(self._creation, name):
                setattr(self, name, value)
            else:
                self.__dict__.pop(name, None)

    @property
    def exposes_host(self):
        """Whether commands can write to anything outside the sandbox."""
        return self._creation.exposes_host

    def get_temp_dir(self):
        """A directory inside the sandbox that any account may write to."""
        attachment = self._attachment
        return (attachment.info.get("temp_dir") if attachment else "") or "/tmp"

    def cleanup(self, force_remove=False):
        """Let go of the sandbox: a persistent one keeps running, another is removed. A second call does nothing.

        The prompt builder's probe shares the agent's own sandbox and ends with ``force_remove``: it only lets go.
        """
        attachment, self._attachment = self._attachment, None
        if attachment is None:
            return
        remove = (bool(force_remove) or not self._keep) and not self._probe
        try:
            if attachment.child.lost:
                if not remove and self._persistent:
                    return  # the handle went with the child, and the sandbox is to stay
                attachment = self._attach()
                self._attachment = None
            attachment.child.request("cleanup", {"env": attachment.handle, "remove": remove}, REMOVE_PATIENCE)
        except Fault as fault:
            raise connection_error(fault) from fault

    def __del__(self):
        """Nothing: the daemon is not asked from a garbage collection, which may run in any thread at any moment."""

    # Commands.

    def execute(self, command, cwd="", **options):
        """Run one command; see BaseEnvironment.execute. The text is never rewritten: the sandbox does not wait for background jobs."""
        options["rewrite_compound_background"] = False
        self._thread.call = _Call(piped=options.get("yield_handler") is not None)
        try:
            return super().execute(command, self._creation.inside(cwd), **options)
        finally:
            self._thread.call = None

    def _before_execute(self):
        """Create the sandbox again, if need be, and bring the host's newest files, before the command's own time begins."""
        try:
            attachment = self._attach()
        except Fault as fault:
            raise connection_error(fault) from fault
        if self._delivery is not None and "deliver" in attachment.child.features:
            self._delivery.bring(self._ask)

    def _forget_delivered(self):
        if self._delivery is not None:
            self._delivery.forget()

    def _wrap_command(self, command, cwd):
        script = _Script(command)
        script.call = self._thread.call
        script.call.cwd = cwd
        return script

    def _run_bash(self, cmd_string, *, login=False, timeout=120, stdin_data=None):
        call = getattr(cmd_string, "call", None) or _Call(piped=False)  # a probe comes without one
        request = self._request(cmd_string, call.cwd, timeout)
        data, unsendable = _input(stdin_data)
        if data is not None:
            if len(data) > _INLINE_INPUT:
                request["stream_stdin"] = True
            else:
                request["stdin"] = base64(data)
        try:
            try:
                command = self._begin(request, call, data)
            except Fault as fault:
                if not fault.lost:
                    raise
                command = self._begin(request, call, data)  # the child died before it had the whole request: nothing ran
        except Fault as fault:
            raise connection_error(fault) from fault
        if unsendable is not None:
            command._hermes_stdin_errors = [unsendable]  # where the host looks for input that did not arrive
        return command

    def _request(self, text, cwd, timeout):
        request = {"window": WINDOW, "environ": self._environ(), "transient": _TRANSIENT}
        try:
            text.encode()
            request["command"] = str(text)
        except UnicodeEncodeError:
            request["command_b64"] = base64(text.encode("utf-8", "surrogateescape"))
        if cwd in self._raw_directories:
            request["cwd_b64"] = base64(self._raw_directories[cwd])
        elif cwd:
            request["cwd"] = cwd
        if isinstance(timeout, (int, float)) and timeout > 0:
            request["timeout_ms"] = int(timeout * 1000) + _SANDBOX_DEADLINE_AFTER
        return request

    def _begin(self, request, call, data):
        attachment = self._attach()
        command = Command(attachment.child, piped=call.piped, to_error=connection_error)
        feed = None
        if request.get("stream_stdin"):
            feed = InputFeed(attachment.child, data)
            command.feed(feed)
        number = attachment.child.begin("execute", {"env": attachment.handle, **request}, command)
        if feed is not None:
            feed.start(number)
        call.command = command
        return command

    def _environ(self):
        """Variables for one command. They never enter the sandbox's lasting state."""
        environ = dict(_HARNESS)
        for name in self._forwarded:
            if (value := os.environ.get(name)) is not None:
                environ[name] = value
        # The process environment holds the session that spoke last, which in a gateway need not be the one this command is for.
        if self._session is None or os.environ.get("HERMES_SESSION_KEY") == self._session:
            environ.update({name: os.environ.get(name, "") for name in os.environ if name.startswith(_SESSION_NAMES)})
        return environ

    def _update_cwd(self, result):
        """Report where this very command ended up, and whether the sandbox was made anew for it."""
        call = self._thread.call
        report = call.command.result if call is not None and call.command is not None else {}
        if report.get("environment_recreated"):
            result["environment_recreated"] = True
            self._forget_delivered()
            self._container_id = report.get("container_id") or self._container_id
        cwd = report.get("cwd")
        if not cwd:
            return
        if report.get("cwd_b64"):
            # Not UTF-8: Hermes gets a path it can print and store, and the sandbox gets its own bytes back for it.
            self._raw_directories = {cwd: from_base64(report["cwd_b64"])}
        self.cwd = cwd
        result["cwd"] = cwd
        result["cwd_observed"] = True

    # Files and streams.

    def fetch_file(self, remote_path, local_dest, *, max_bytes):
        """Copy a regular file out of the sandbox to ``local_dest``, which appears whole or not at all."""
        params = {"path": str(remote_path), "dest": os.path.abspath(local_dest), "max_bytes": max_bytes}
        try:
            self._ask("fetch", params, FETCH_PATIENCE)
        except Fault as fault:
            if fault.kind == "file":
                raise FileFetchError(fault.reason) from fault
            raise connection_error(fault) from fault

    def fetch_realpath(self, remote_path):
        """The path with all links resolved, or None when it cannot be."""
        try:
            return self._ask("realpath", {"path": str(remote_path)}, ASK_PATIENCE)["path"]
        except Fault as fault:
            if fault.kind == "file":
                return None
            raise connection_error(fault) from fault

    def exec_prefix(self, *, user=None, interactive=True):
        """The local argv that runs the words after it inside the sandbox, or None when there is none now; the log says why."""
        try:
            argv = self._ask("exec_prefix", {"user": user or "", "interactive": bool(interactive)}, ASK_PATIENCE)["argv"]
        except Fault as fault:
            logger.warning("no stream into the sandbox: %s%s", fault.reason, f" ({fault.hint})" if fault.hint else "")
            return None
        return list(argv)

    def _ask(self, method, params, patience):
        attachment = self._attach()
        try:
            return attachment.child.request(method, {"env": attachment.handle, **params}, patience)
        except Fault as fault:
            if not fault.lost:
                raise
        attachment = self._attach()  # all of these may be asked twice
        return attachment.child.request(method, {"env": attachment.handle, **params}, patience)


def _input(data):
    """The bytes of standard input, None for none, and the error of text that cannot be encoded: the command then gets no input."""
    if data is None or isinstance(data, (bytes, bytearray, memoryview)):
        return data, None
    try:
        return data.encode("utf-8", "surrogateescape"), None
    except UnicodeEncodeError as error:
        return b"", error
