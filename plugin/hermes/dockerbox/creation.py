"""Asking for a sandbox: the create request, and what a session gets when others share its sandbox."""

import logging

from . import workspace as workspaces
from .faults import Fault, wrong_settings
from .settings import read_only

logger = logging.getLogger(__name__)

# Seconds a create may take. A missing image is not what takes them: dockerbox pulls it in the background and says after 5 s how far it is.
CREATE_PATIENCE = 900.0

_LET_GO_PATIENCE = 30.0


class Creation:
    """How one environment asks for its sandbox, the first time and again after it lost its handle."""

    def __init__(self, config, *, cwd, keys=None, workspace=None, mounts_cwd=False):
        """``config`` is that of the create request, ``keys`` where people find its settings. ``workspace`` is this session's working
        directory on the host. ``mounts_cwd`` tells that sessions have theirs mounted, this one or others.
        """
        self.config = config
        self.persistent = config.get("persistent") is not False
        self.cwd = cwd
        self._keys = keys or {}
        self._workspace = workspace
        self._shared = mounts_cwd and self.persistent
        self.host_cwd = self.host_cwd_mount = None
        self.exposes_host = False

    def create(self, child, *, again=False):
        """What the child answers; a Fault otherwise. Afterwards ``host_cwd`` and ``host_cwd_mount`` tell what is mounted, and
        ``exposes_host`` whether commands can write to anything outside the sandbox.

        Asked ``again``, a living sandbox stays as it is: whoever changed it since may have had newer settings than these.
        """
        mine = self._workspace
        config, look = self.config, None
        if again:
            config = config | {"given": []}
        elif self._shared:
            look = self._ask(child, config | {"given": []}, mine)
            if not look.get("created"):
                config = self._beside_others(config, look)
        info = look
        if look is None or not look.get("created"):
            info = self._ask(child, config, mine)
            if look is not None:
                child.request("cleanup", {"env": look["env"], "remove": False}, _LET_GO_PATIENCE)
        self._take_over(info)
        return info

    def inside(self, cwd):
        """A command's directory as the sandbox has it: the host may use its own name for what is mounted."""
        return workspaces.start(cwd, self._workspace) if self.host_cwd else cwd

    def check(self, child):
        """Everything wrong with the config, as (key as the user wrote it, problem), without making anything; nothing if the executable is
        too old to tell.
        """
        try:
            child.request("validate", {"config": self.config}, _LET_GO_PATIENCE)
        except Fault as fault:
            if fault.kind == "config":
                return self._named(fault.faults)
            if not fault.unknown:
                raise
        return []

    def _ask(self, child, config, workspace):
        cwd = workspaces.start(self.cwd, workspace) if workspace else self.cwd
        try:
            return child.request("create", {"config": config, "cwd": cwd}, CREATE_PATIENCE)
        except Fault as fault:
            if fault.kind != "config" or not fault.faults:
                raise
            raise wrong_settings(self._named(fault.faults)) from fault

    def _named(self, faults):
        return [(self._keys.get(key, key), problem) for key, problem in faults]

    def _beside_others(self, config, look):
        """The config for a sandbox that exists. Another session's directory in it stays where it is: to put this session's there would
        have the other's commands write into a directory that is not theirs.
        """
        asked = self._volumes()
        others = [m for m in workspaces.others(look.get("mounts") or (), asked) if not self._is_mine(m)]
        if not others:
            return config
        if self._workspace is not None and self._workspace.entry:
            logger.warning(
                "sandbox %s is shared and has the working directory of another session mounted (%s), so %s is not mounted: "
                "terminal.container_persistent false gives each session a sandbox of its own; "
                "`dockerbox rm -f --keep-home %s` lets the next session mount its own",
                look.get("name"), ", ".join(others), self._workspace.host_path, look.get("name"),
            )  # fmt: skip
        return config | {"mounts": [*asked, *others]}

    def _volumes(self):
        mine = self._workspace.entry if self._workspace else ""
        return [entry for entry in self.config.get("mounts") or () if entry != mine]

    def _is_mine(self, mount):
        return self._workspace is not None and workspaces.mounted(self._workspace, [mount])

    def _take_over(self, info):
        mounts = info.get("mounts") or ()
        self.exposes_host = any(not read_only(mount) for mount in mounts)
        self.host_cwd = self.host_cwd_mount = None
        mine = self._workspace
        if mine is None:
            return
        if workspaces.mounted(mine, mounts):
            self.host_cwd, self.host_cwd_mount = mine.host_path, mine.target
        elif workspaces.start(self.cwd, mine) != self.cwd:
            info["cwd"] = info.get("home") or info.get("cwd")
