"""What the child writes, cut into its lines and the raw bytes that follow some of them."""

# A line longer than this many bytes cannot be an answer: the protocol's own limit is lower.
LINE_LIMIT = 128 << 20

# How dockerbox writes a piece of output. A flood is thousands of these, and finding one field takes json.loads longer than all the rest;
# a line that is written in another way is read by json.loads.
_OUTPUT, _RAW, _END = b'{"jsonrpc":"2.0","method":"output","params":{"call":', b',"raw":', b"}}"


class TooLong(Exception):
    """A line without an end."""


class Incoming:
    """Takes pieces of any size and hands on what they hold, in order. For one thread."""

    def __init__(self, line, output):
        """``line(bytes)`` is called for each line, ``output(call, bytes)`` for raw output as it comes, a piece at a time."""
        self._line = line
        self._output = output
        self._rest = []  # the beginning of a line
        self._size = 0
        self._call = 0  # whose raw bytes follow
        self._left = 0  # and how many

    def feed(self, chunk):
        """The next piece; TooLong when it cannot be what dockerbox writes."""
        at = 0
        while at < len(chunk):
            if self._left:
                piece = chunk[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                self._output(self._call, piece)
                continue
            end = chunk.find(b"\n", at)
            if end < 0:
                self._rest.append(chunk[at:])
                self._size += len(chunk) - at
                if self._size > LINE_LIMIT:
                    raise TooLong
                return
            line = chunk[at:end]
            at = end + 1
            if self._rest:
                line = b"".join((*self._rest, line))
                self._rest, self._size = [], 0
            if not self._announced(line) and line:
                self._line(line)

    def announce(self, call, count):
        """``count`` raw bytes for ``call`` follow the line at hand."""
        self._call, self._left = int(call), max(0, int(count))

    def _announced(self, line):
        if not (line.startswith(_OUTPUT) and line.endswith(_END)):
            return False
        call, found, count = line[len(_OUTPUT) : -len(_END)].partition(_RAW)
        if not (found and call.isdigit() and count.isdigit()):
            return False
        self.announce(call, count)
        return True
