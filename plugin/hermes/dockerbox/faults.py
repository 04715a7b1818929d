"""The one exception that the plugin's own modules raise, before it becomes one of Hermes's."""


class Fault(Exception):
    """Something outside a command failed: the executable, the daemon, the image, a file.

    ``reason`` is a sentence for people, ``hint`` what to do next (may be empty). ``kind`` is the protocol's: "backend", "file",
    "config", or "" for everything else. ``lost`` is true when the connection itself is gone.
    """

    def __init__(self, reason, hint="", *, kind="", lost=False):
        """All fields as the class describes them."""
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.kind = kind
        self.lost = lost


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
        return Fault(message, "correct these settings: `hermes config edit`", kind=kind)
    return Fault(message, kind=kind)
