"""How a command's output reaches Hermes's drain thread, and how its input reaches the child.

Both directions are paced by credit, per command: a command that floods, or whose output nobody reads, fills its own window and stops
there, while the child and all other commands go on.
"""

import contextlib
import os
import queue
import threading

from .faults import Fault

# Bytes of output that may be under way for one command, and how many are consumed before the command gets them back. Large enough that
# a flood does not wait for Python's threads to take turns.
WINDOW = 4 << 20
_GRANT = WINDOW // 4

# Bytes of input that may be under way for one command (docs/protocol.md), and how many go into one message.
_INPUT_BUDGET = 1 << 20
_INPUT_PIECE = 256 << 10


class OutputQueue:
    """Output as an iterable of bytes. It has no descriptor, so Hermes's drain thread takes pieces of any size without a system call.

    For commands that stay with the thread that drains them: the drain thread cannot be stopped in here.
    """

    def __init__(self, grant):
        """``grant(n)`` gives the command n bytes back; called on the consumer's thread."""
        self._pieces = queue.SimpleQueue()
        self._grant = grant
        self._consumed = 0
        self._closed = False

    def put(self, piece):
        """Add output. Called on the reader thread, never blocks."""
        self._pieces.put(piece)

    def end(self):
        """No more output."""
        self._pieces.put(None)

    def __iter__(self):
        while (piece := self._pieces.get()) is not None:
            self._consumed += len(piece)
            if self._consumed >= _GRANT:
                granted, self._consumed = self._consumed, 0
                self._grant(granted)
            if not self._closed:
                yield piece
        self._pieces.put(None)  # whoever iterates again ends as well

    def close(self):
        """Drop what still comes. A thread that iterates goes on granting, so the command is not held up."""
        self._closed = True


class OutputPipe:
    """Output as a text file over an operating system pipe, just as a subprocess has it.

    For commands that may be handed over to another reader while they run: what one reader left in the pipe, the next one finds.
    """

    def __init__(self, grant):
        """``grant`` as in :class:`OutputQueue`; called on this pipe's own thread, which ends with the output."""
        descriptor, self._writer = os.pipe()
        self.reader = os.fdopen(descriptor, encoding="utf-8", errors="replace")  # Hermes closes it
        self._queue = OutputQueue(grant)
        self.put, self.end = self._queue.put, self._queue.end
        threading.Thread(target=self._pump, name="dockerbox-output", daemon=True).start()

    def _pump(self):
        unread = True
        for piece in self._queue:
            while piece and unread:
                try:
                    piece = piece[os.write(self._writer, piece) :]
                except OSError:
                    unread = False  # the reader closed: take the rest and drop it
        with contextlib.suppress(OSError):
            os.close(self._writer)


class InputFeed:
    """Sends a command's standard input piece by piece, as fast as the command takes it."""

    def __init__(self, child, data):
        """``data`` is bytes. Nothing is sent before :meth:`start`."""
        self._child = child
        self._data = memoryview(data)
        self._budget = _INPUT_BUDGET
        self._stopped = False
        self._changed = threading.Condition()

    def start(self, number):
        """Send to call ``number`` on a thread that ends with the data or with :meth:`stop`."""
        threading.Thread(target=self._run, args=(number,), name="dockerbox-input", daemon=True).start()

    def credit(self, count):
        """The command consumed ``count`` bytes."""
        with self._changed:
            self._budget += count
            self._changed.notify()

    def stop(self):
        """The command is over: whatever is left is not wanted."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _run(self, number):
        with contextlib.suppress(Fault):  # the call itself finishes with it
            for start in range(0, len(self._data), _INPUT_PIECE):
                piece = self._data[start : start + _INPUT_PIECE]
                with self._changed:
                    while not self._stopped and self._budget < len(piece):
                        self._changed.wait()
                    if self._stopped:
                        return
                    self._budget -= len(piece)
                self._child.send_input(number, piece)
            self._child.notify("stdin", {"call": number, "data": "", "eof": True})
