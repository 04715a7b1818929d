"""A running command, as Hermes's wait loop sees it and as the child reports about it."""

import logging
import threading

from .bytes64 import from_base64
from .faults import Fault
from .streams import OutputPipe, OutputQueue

logger = logging.getLogger(__name__)

# How long, in seconds, poll() waits for the end of the command. The host sleeps up to 200 ms between two polls, so a poll that
# returned at once would let a finished command wait for the host; one that waited longer would hold up its look at the interrupt flag.
POLL_PATIENCE = 0.1

# How long, in seconds, after kill() the sandbox may take to report the end. Its own grace between TERM and KILL is 1 s.
KILL_PATIENCE = 5.0

# What a command has for a status when its backend failed; nobody sees it, for poll() raises in the thread that runs the command.
_NO_STATUS = -1


class Command:
    """Hermes's process handle: poll, kill, wait, stdout, returncode.

    There is no ``pid`` on purpose: a backstop of the host kills the process tree of that number on the host.
    """

    def __init__(self, child, *, piped, to_error):
        """``piped`` gives stdout a descriptor. ``to_error`` turns a Fault into what poll() raises."""
        self.number = 0
        self.returncode = None
        self.result = {}
        self._child = child
        self._to_error = to_error
        self._fault = None
        self._feed = None
        self._killed = False
        self._finishing = threading.Lock()  # taken once, by whoever brings the end
        self._patience = None  # the timer that runs after kill()
        # The thread that runs the command waits in poll(); the drain thread and the process registry only look.
        self._owner = threading.get_ident()
        self._done = threading.Lock()
        self._done.acquire()
        self._output = OutputPipe(self._grant) if piped else OutputQueue(self._grant)
        self.stdout = self._output.reader if piped else self._output

    # What Hermes calls.

    def poll(self):
        """The exit status, or None while the command runs. Raises the backend's failure in the thread that started the command."""
        if threading.get_ident() != self._owner:
            return self.returncode
        if self.returncode is None and self._done.acquire(timeout=POLL_PATIENCE):
            self._done.release()
        if self._fault is not None:
            raise self._to_error(self._fault)
        return self.returncode

    def wait(self, timeout=None):
        """The exit status, or None when the command still runs after ``timeout`` seconds. Raises as poll() does, in any thread."""
        if self._done.acquire(timeout=-1 if timeout is None else timeout):
            self._done.release()
        if self._fault is not None:
            raise self._to_error(self._fault)
        return self.returncode

    def kill(self):
        """End the command's whole tree. Returns at once; the end is reported when the tree is dead."""
        if self._killed or self.returncode is not None:
            return
        self._killed = True
        self._patience = threading.Timer(KILL_PATIENCE, self._give_up)
        self._patience.daemon = True
        self._patience.start()
        try:
            self._child.notify("cancel", {"call": self.number, "cause": "interrupt"})
        except Fault as fault:
            self.finish(None, fault)

    # What the reader thread calls.

    def output(self, piece):
        """A piece of output arrived."""
        self._output.put(piece)

    def credit(self, count):
        """The command took ``count`` bytes of its input."""
        if self._feed is not None:
            self._feed.credit(int(count))

    def finish(self, result, fault):
        """The command is over. The output ends first, so that a poll() which sees the end finds the drain thread at its end too."""
        if not self._finishing.acquire(blocking=False):
            return
        status = _NO_STATUS
        if fault is None:
            try:
                status = self._accept(result)
            except (AttributeError, TypeError, ValueError, KeyError) as error:
                fault = Fault(f"dockerbox answered execute with what is no result: {error}", "see `hermes doctor`")
        self._output.end()
        self._fault = fault
        self.returncode = status
        if self._feed is not None:
            self._feed.stop()
        if self._patience is not None:
            self._patience.cancel()
        self._done.release()

    # Inside.

    def feed(self, feed):
        """Let ``feed`` bring the input. Before the request is sent."""
        self._feed = feed

    def _accept(self, result):
        status = int(result["returncode"])
        if output := from_base64(result.get("output")):
            self._output.put(output)
        self.result = result
        return status

    def _grant(self, count):
        try:
            self._child.notify("credit", {"call": self.number, "bytes": count})
        except Fault as fault:
            logger.debug("credit for a command whose connection is gone: %s", fault.reason)

    def _give_up(self):
        self._child.forget(self.number)
        self.finish(None, Fault(f"the sandbox did not confirm within {KILL_PATIENCE:g} s that the command is dead", "see `hermes doctor`"))
