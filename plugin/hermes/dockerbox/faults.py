"""The one exception that the plugin's own modules raise, before it becomes one of Hermes's."""


class Fault(Exception):
    """Something outside a command failed: the executable, the daemon, the image, a file.

    ``reason`` is a sentence for people, ``hint`` what to do next (may be empty). ``kind`` is the protocol's: "backend", "file",
    "config", or "" for everything else; with "config", ``faults`` lists (key, problem). ``lost`` is true when the connection itself is
    gone. ``unknown`` is true for a request that the executable does not know.
    """

    def __init__(self, reason, hint="", *, kind="", lost=False, faults=(), unknown=False):
        """All fields as the class describes them."""
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.kind = kind
        self.lost = lost
        self.faults = list(faults)
        self.unknown = unknown


def wrong_settings(faults):
    """The Fault for settings that cannot be used: ``faults`` lists (key as the user wrote it, problem)."""
    reason = "; ".join(f"{key}: {problem}" for key, problem in faults)
    keys = list(dict.fromkeys(key for key, _ in faults))
    in_file = [key for key in keys if key.startswith("terminal.")]
    hints = []
    if len(in_file) == 1:
        hints.append(f"correct it: `hermes config set {in_file[0]} VALUE`, or `hermes config edit`")
    elif in_file:
        hints.append("correct these settings: `hermes config edit`, or `hermes config set KEY VALUE` for each")
    if variables := [key for key in keys if key.startswith("TERMINAL_")]:
        hints.append(f"correct {', '.join(variables)} in Hermes's environment or .env, or `hermes config set` the setting, which wins")
    return Fault(reason, "; ".join(hints) or "correct these settings: `hermes config edit`", kind="config", faults=faults)


def from_error(error):
    """The Fault for the ``error`` member of a JSON-RPC answer."""
    data = error.get("data")
    if not isinstance(data, dict):
        data = {}
    message = str(error.get("message") or "the request failed without a reason")
    kind = data.get("kind") or ""
    if kind == "backend":
        return Fault(str(data.get("reason") or message), str(data.get("hint") or ""), kind=kind)
    if kind == "config":
        listed = [(str(f.get("key")), str(f.get("problem"))) for f in data.get("faults") or () if isinstance(f, dict)]
        return wrong_settings(listed) if listed else Fault(message, "correct these settings: `hermes config edit`", kind=kind)
    return Fault(message, kind=kind, unknown=error.get("code") == -32601)
