"""Whether commands can run, and what to do when they cannot: for the dashboard, `hermes doctor`, `hermes status` and `hermes setup`.

What is looked at and what each finding means is decided by dockerbox; here it becomes rows and lines as Hermes shows them.
"""

import logging
import shlex
import time
from typing import NamedTuple

from . import limits, locate, settings
from .faults import Fault
from .version import PROTOCOL, VERSION

logger = logging.getLogger(__name__)

# Hermes gives a probe about 2 s, of which the child keeps some for its own answer.
PROBE_PATIENCE = 1.9

# How long, in seconds, dockerbox may take for all its checks. It promises 10.
DOCTOR_PATIENCE = 12.0

_STATUSES = frozenset({"ready", "needs_setup", "unavailable"})


class Health(NamedTuple):
    """``status`` in Hermes's words, ``detail`` a sentence, ``hint`` the next step, empty when ready."""

    status: str
    detail: str
    hint: str = ""

    @property
    def sentence(self):
        """Detail and hint as one."""
        return sentence(self.detail, self.hint)


def probe(chosen, connect):
    """The Health, within 2 s. ``chosen`` are the backend's settings, ``connect()`` gives the Client for them or a Fault."""
    deadline = time.monotonic() + PROBE_PATIENCE
    try:
        locate.find(chosen.binary)
    except Fault as fault:
        return Health("needs_setup", fault.reason, fault.hint)
    try:
        child = connect().child(PROBE_PATIENCE)
        answer = child.request("probe", {}, max(0.1, deadline - time.monotonic()))
    except Fault as fault:
        return Health("unavailable", fault.reason, fault.hint)
    found = Health(*(str(answer.get(key) or "") for key in Health._fields))
    if found.status not in _STATUSES:
        return found._replace(status="unavailable")
    if found.status == "needs_setup" and chosen.image:  # the one step that dockerbox itself finds missing is its own image
        return Health("ready", f"the daemon answers; sandboxes are made from {chosen.image}, by terminal.backends.dockerbox.image")
    return found


def doctor_rows(chosen, connect, remarks):
    """Rows ``(ok, label, detail)``. Hermes has no row for a warning, so one is ok and says that it is a warning.

    ``remarks`` are sentences about settings that are on and not in effect.
    """
    try:
        executable = locate.find(chosen.binary)
    except Fault as fault:
        return [_row(False, "executable", fault.reason, fault.hint)]
    rows = [_row(True, "executable", f"{executable.path}, by {executable.source}")]
    try:
        child = connect().child(PROBE_PATIENCE)
    except Fault as fault:
        return [*rows, _row(False, "versions", fault.reason, fault.hint)]
    versions = f"plugin {VERSION}, executable {child.version}, protocol {PROTOCOL}"
    rows.append(_row(True, "versions", child.other_version or versions, warning=bool(child.other_version)))
    rows += _checks(child, chosen, connect)
    rows += [_row(True, "setting not in effect", line, warning=True) for line in remarks]
    rows += [_row(True, "on this Hermes", line, warning=True) for line in limits.host_limits()]
    if line := limits.isolation_limit():
        rows.append(_row(False, "out of process", line))
    return rows


def _checks(child, chosen, connect):
    """What dockerbox itself checks; of one that is too old for that, its probe."""
    if "doctor" not in child.features:
        found = probe(chosen, connect)
        old = f"this executable ({child.version}) is older than the plugin ({VERSION}) and checks nothing else"
        return [
            _row(found.status == "ready", "daemon", found.detail or found.status, found.hint),
            _row(True, "checks", old, "update dockerbox", warning=True),
        ]
    try:
        checks = child.request("doctor", {}, DOCTOR_PATIENCE).get("checks") or []
        return [_check(check, chosen) for check in checks]
    except Fault as fault:
        return [_row(False, "checks", fault.reason, fault.hint)]
    except (AttributeError, TypeError) as error:
        return [_row(False, "checks", f"dockerbox answered doctor with what are no checks: {error}", "run `dockerbox doctor`")]


def _check(check, chosen):
    """One check of dockerbox's as a row."""
    name, status = str(check.get("name") or "?"), check.get("status")
    detail, remedy = str(check.get("detail") or ""), str(check.get("remedy") or "")
    if name == "image" and status == "fail" and chosen.image:
        return _row(True, name, f"{chosen.image}, by terminal.backends.dockerbox.image")
    text = f"{detail}; remedy: {remedy}" if remedy else detail  # a detail may have colons of its own
    return _row(status != "fail", name, text, warning=status == "warn")


def setup_lines(chosen, connect):
    """What somebody who has just chosen this backend has to do, in order."""
    try:
        words = settings.serve_argv(locate.find(chosen.binary).path, chosen)[:-2]
    except Fault as fault:
        return [
            f"dockerbox cannot run yet: {fault.reason}.",
            f"1. To get it: {fault.hint}.",
            "2. Run `hermes doctor`: it says what else is missing, such as a Docker daemon or the image.",
        ]
    command = shlex.join(words)
    sandbox = chosen.sandbox or "default"
    found = probe(chosen, connect)
    if found.status == "ready":
        lines = [
            f"dockerbox can run: {found.detail}.",
            f"The sandbox is made with the first command; `{command} up {sandbox}` makes it now.",
            f"`{command} run {sandbox} pwd` then shows what the agent sees; `{command} doctor` says what this machine cannot keep.",
        ]
    else:
        lines = [
            f"dockerbox cannot run yet: {found.detail or found.status}.",
            f"1. Next step: {found.hint or 'see what `hermes doctor` says'}.",
            f"2. `{command} doctor` checks everything else.",
            f"3. `{command} up {sandbox}` then makes the sandbox; or Hermes does, with the first command.",
        ]
    if line := limits.isolation_limit():
        lines.append(f"{line}.")
    return lines


def _row(ok, name, detail, hint="", *, warning=False):
    # Hermes takes the parentheses off again to make an issue of a failed row.
    text = sentence(detail, hint)
    return bool(ok), f"dockerbox {name}", f"(warning: {text})" if warning else f"({text})"


def sentence(reason, hint):
    """A reason and what to do about it, either of which may be empty."""
    return f"{reason}: {hint}" if reason and hint else reason or hint
