"""One `dockerbox serve --stdio` process, from its first line to its end.

Two threads belong to it: one reads its answers and hands each to the call it belongs to, one carries its log to Hermes's. Both are
daemons and end when the process does; the process ends when its stdin closes, which the kernel does for a Hermes that was killed.
"""

import contextlib
import itertools
import json
import logging
import os
import re
import select
import subprocess
import threading
import time
from collections import deque

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

from .bytes64 import base64, from_base64
from .faults import Fault, from_error
from .incoming import Incoming, TooLong
from .version import PROTOCOL, VERSION

logger = logging.getLogger(__name__)

# A child that takes no input for this long, in seconds, is not coming back.
WRITE_PATIENCE = 10.0

# How long, in seconds, a child whose output ended may take to exit before it is killed.
EXIT_PATIENCE = 5.0

# What is kept of a log line and of a line that is no answer, in bytes.
LOG_LINE = 2000

# Bytes the kernel keeps between this process and the child, where it lets itself be asked. With its usual 64 KiB both sides are woken for
# each quarter of a piece.
_PIPE_SIZE = 1 << 20

_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+)")

_encode = json.JSONEncoder(separators=(",", ":")).encode


class Child:
    """A running child. Any thread may send; answers arrive on the reader thread, so what a call does there must not block.

    A call is an object with ``finish(result, fault)`` and, for `execute`, ``output(data)`` and ``credit(count)``.
    """

    def __init__(self, argv):
        """Start the process; a Fault when it cannot be. :meth:`greet` makes it usable."""
        self.argv = tuple(argv)
        self.hello = None  # the first line's params
        self._raw = False  # bulk follows its line as it is
        self.lost = None  # the Fault that ended it; set once, before any call is finished with it
        self._ids = itertools.count(1)
        self._calls = {}
        self._calls_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._greeted = threading.Event()
        self._gone = threading.Event()  # after lost
        self._retired = False
        self._last_words = deque(maxlen=3)
        self._incoming = Incoming(self._dispatch, self._output)
        try:
            # bufsize 0: a forked copy of Hermes must be able to let go of these pipes without taking a buffer's lock.
            # A session of its own: ^C in Hermes's terminal interrupts a command, not the connection.
            self._process = subprocess.Popen(
                self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, start_new_session=True
            )
        except OSError as error:
            why = error.strerror or error
            raise Fault(f"cannot start {self.argv[0]}: {why}", f"run `{self.argv[0]} version` to see what it is", lost=True) from error
        with contextlib.suppress(OSError, AttributeError):  # not on Windows: writes block there
            os.set_blocking(self._process.stdin.fileno(), False)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, AttributeError):  # Linux alone has it, within each user's limit
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        self._log_thread = threading.Thread(target=self._log, name="dockerbox-log", daemon=True)
        self._log_thread.start()
        threading.Thread(target=self._read, name="dockerbox-answers", daemon=True).start()

    @property
    def pid(self):
        """Process id of the child."""
        return self._process.pid

    def greet(self, patience):
        """Wait for the child's first line and agree on the protocol, within ``patience`` seconds. After a Fault it cannot be used."""
        deadline = time.monotonic() + patience
        if not self._greeted.wait(patience):
            raise Fault(f"{self.argv[0]} did not greet within {patience:g} s", f"run `{self.argv[0]} version` to see what it is", lost=True)
        if self.lost:
            raise self.lost
        spoken = self.hello.get("protocol")
        if spoken != PROTOCOL:
            raise Fault(
                f"this plugin ({VERSION}) speaks protocol {PROTOCOL}, but {self.argv[0]} ({self.version}) speaks protocol {spoken}",
                self._how_to_agree(spoken),
                lost=True,
            )
        if self.other_version:
            logger.warning("%s", self.other_version)
        client = {"name": "hermes", "version": VERSION}
        # Bulk as it is: base64 takes this process, which can do one thing at a time, longer than all else about it.
        asked = {"protocol": PROTOCOL, "client": client, "raw": True}
        agreed = self.request("initialize", asked, max(0.1, deadline - time.monotonic()))
        self._raw = isinstance(agreed, dict) and agreed.get("raw") is True

    @property
    def version(self):
        """The version the child greeted with, or "?"."""
        return str((self.hello or {}).get("version") or "?")

    def _how_to_agree(self, spoken):
        install = f"`{self.argv[0]} plugin install`"
        if isinstance(spoken, int) and spoken < PROTOCOL:
            return f"the executable is the older one: update it, or run {install} for the plugin of its version, and restart Hermes"
        return f"the plugin is the older one: run {install} and restart Hermes"

    @property
    def other_version(self):
        """A sentence when plugin and executable are of different releases, else "". A build between releases is of none."""
        release = _RELEASE.match(self.version)
        if not release or release[1] == VERSION:
            return ""
        return (
            f"plugin {VERSION} and executable {self.version} are of different versions:"
            f" run `{self.argv[0]} plugin install` and restart Hermes"
        )

    @property
    def features(self):
        """What the child said it can do, by name."""
        features = (self.hello or {}).get("features")
        return frozenset(map(str, features)) if isinstance(features, list) else frozenset()

    def request(self, method, params, patience):
        """Ask and wait at most ``patience`` seconds for the result; a Fault otherwise."""
        answer = _Answer()
        number = self.begin(method, params, answer)
        if not answer.done.wait(patience):
            self.forget(number)
            raise Fault(f"dockerbox gave no answer to {method} within {patience:g} s", "see `hermes doctor`, then try again")
        if answer.fault:
            raise answer.fault
        return answer.result

    def begin(self, method, params, call):
        """Send a request whose answer goes to ``call``; its number. A Fault means that nothing was started."""
        number = next(self._ids)
        with self._calls_lock:
            if self.lost:
                raise self.lost
            self._calls[number] = call
        call.number = number  # before it is sent: the answer may be faster than this thread
        try:
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        except Fault:
            self.forget(number)
            raise
        return number

    def notify(self, method, params):
        """Send a notification; a Fault when the child is gone."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def send_input(self, number, piece):
        """Send a piece of a command's standard input."""
        if not self._raw:
            return self.notify("stdin", {"call": number, "data": base64(piece)})
        return self._send_line(b'{"jsonrpc":"2.0","method":"stdin","params":{"call":%d,"raw":%d}}\n' % (number, len(piece)), piece)

    def forget(self, number):
        """Ignore whatever still comes for this request."""
        with self._calls_lock:
            self._calls.pop(number, None)
        self._end_when_idle()

    def retire(self):
        """End the child as soon as no request is under way."""
        self._retired = True
        self._end_when_idle()

    def end(self, fault):
        """End the child now; every call under way finishes with ``fault``."""
        self._lose(fault)
        with contextlib.suppress(OSError):
            self._process.kill()

    def abandon(self):
        """In a forked copy of this process: let go of the pipes. The threads and the child belong to the original."""
        self.lost = Fault("the connection belongs to the process this one was forked from", lost=True)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()
        self._process.returncode = 0  # not ours to wait for

    def _send(self, message):
        self._send_line(_encode(message).encode("ascii") + b"\n")

    def _send_line(self, line, bulk=b""):
        try:
            taken = self._write(line, bulk)
        except (OSError, ValueError) as error:  # ValueError: closed since
            # Its end is under way and the reader knows more about it than this error does.
            self._process.kill()
            self._gone.wait(EXIT_PATIENCE)
            raise (self.lost or Fault(f"the connection to dockerbox broke: {error}", "run the command again", lost=True)) from error
        if not taken:
            fault = Fault(f"dockerbox took no input for {WRITE_PATIENCE:g} s", "run the command again", lost=True)
            self.end(fault)
            raise fault

    def _write(self, line, bulk):
        """Write ``line`` and ``bulk``; False when they were not taken in time. The child then has to go, as no line may follow a half."""
        if not self._write_lock.acquire(timeout=WRITE_PATIENCE):
            return False
        try:
            descriptor = self._process.stdin.fileno()
            left = [memoryview(piece) for piece in (line, bulk) if piece]
            while True:
                try:
                    written = _write_pieces(descriptor, left)
                except BlockingIOError:
                    written = 0
                while left and written >= len(left[0]):
                    written -= len(left.pop(0))
                if not left:
                    return True
                left[0] = left[0][written:]
                if not _writable(descriptor, WRITE_PATIENCE):
                    return False
        finally:
            self._write_lock.release()

    def _close_input(self):
        """Tell the child that nothing follows. Never while another thread writes: its descriptor could be given out anew meanwhile."""
        if self._write_lock.acquire(timeout=WRITE_PATIENCE):
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._write_lock.release()

    def _read(self):
        """Body of the reader thread."""
        descriptor = self._process.stdout.fileno()
        try:
            while chunk := os.read(descriptor, 1 << 18):
                self._incoming.feed(chunk)
        except (OSError, ValueError, TooLong) as error:
            logger.debug("reading from dockerbox ended: %s", error)
        self._lose(self._ending())
        self._gone.set()

    def _ending(self):
        """Why the output ended, with the child's own last words. Waits for its exit, so that it leaves no zombie."""
        self._close_input()
        try:
            status = self._process.wait(EXIT_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._log_thread.join(1)  # what it said last is still in the pipe
        if self.hello is None and (said := _complaint(self._last_words)):
            return Fault(*said, lost=True)
        words = [line for line in self._last_words if not line.startswith("dockerbox: ") or line.startswith("dockerbox: error: ")]  # no log
        said = f', having said "{"; ".join(words)}"' if words else ""
        if self.hello is None:
            hint = f"run `{self.argv[0]} version` to see whether it works"
            return Fault(f"{self.argv[0]} ended with status {status} before it greeted{said}", hint, lost=True)
        return Fault(
            f"dockerbox serve ended with status {status}{said}",
            "run the command again; the sandbox and its files are still there",
            lost=True,
        )

    def _dispatch(self, line):
        """Hand one line to its call. Nothing a line holds may end the reader: all other calls depend on it."""
        try:
            message = json.loads(line)
            method = message.get("method")
            params = message.get("params")
            if method == "output":
                if "raw" in params:
                    self._incoming.announce(params["call"], params["raw"])
                else:
                    self._output(params["call"], from_base64(params["data"]))
            elif method == "credit":
                if call := self._calls.get(params["call"]):
                    call.credit(params["bytes"])
            elif method == "hello":
                self.hello = params if isinstance(params, dict) else {}
                self._greeted.set()
            elif method == "warning":
                logger.warning("%s", params["text"])
            elif method is None:
                self._answer(message)
        except Exception as error:
            words = bytes(line[:LOG_LINE]).decode("utf-8", "replace")
            if self.hello is None:
                self._last_words.append(words[:200])
            logger.warning("dockerbox sent a line that is no answer (%s: %s): %.200s", type(error).__name__, error, words)

    def _output(self, number, piece):
        if call := self._calls.get(number):
            call.output(piece)

    def _answer(self, message):
        with self._calls_lock:
            call = self._calls.pop(message["id"], None)
        if call is None:
            if message["id"] is None:
                logger.warning("dockerbox refused a message: %s", (message.get("error") or {}).get("message"))
            return
        error = message.get("error")
        if error is not None:
            call.finish(None, from_error(error if isinstance(error, dict) else {}))
        else:
            call.finish(message.get("result"), None)
        if self._retired:
            self._end_when_idle()

    def _log(self):
        """Body of the log thread."""
        descriptor = self._process.stderr.fileno()
        rest = b""
        try:
            while chunk := os.read(descriptor, 1 << 14):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._say(line)
                if len(rest) > LOG_LINE:
                    self._say(rest)
                    rest = b""
        except (OSError, ValueError) as error:
            logger.debug("reading dockerbox's log ended: %s", error)
        if rest:
            self._say(rest)

    def _say(self, line):
        text = line[:LOG_LINE].decode("utf-8", "replace").strip()
        if text:
            self._last_words.append(text[:200])
            logger.info("dockerbox: %s", text)

    def _lose(self, fault):
        with self._calls_lock:
            if self.lost:
                return
            self.lost = fault
            calls = list(self._calls.values())
            self._calls.clear()
        self._greeted.set()
        for call in calls:
            call.finish(None, fault)

    def _end_when_idle(self):
        if self._retired and not self._calls and not self.lost:
            self._close_input()


class _Answer:
    """A call that only wants its result."""

    def __init__(self):
        self.done = threading.Event()
        self.result = None
        self.fault = None
        self.number = 0

    def finish(self, result, fault):
        self.result, self.fault = result, fault
        self.done.set()


if hasattr(os, "writev"):
    _write_pieces = os.writev
else:  # Windows

    def _write_pieces(descriptor, pieces):
        return os.write(descriptor, pieces[0])


def _writable(descriptor, patience):
    if not hasattr(select, "poll"):
        return True  # Windows: the write itself blocks
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(patience * 1000))


def _complaint(lines):
    """The reason and the hint that dockerbox says when it cannot begin, such as on a wrong context; None when it said no such thing."""
    said = {}
    for line in lines:
        for kind in ("error", "hint"):
            mark = f"dockerbox: {kind}: "
            if line.startswith(mark):
                said[kind] = line.removeprefix(mark)
    return (said["error"], said["hint"]) if said.keys() == {"error", "hint"} else None
