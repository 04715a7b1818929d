"""What the child writes, however it arrives."""

import unittest

from plugin_modules import load

incoming = load("incoming")

LINE = b'{"jsonrpc":"2.0","id":1,"result":{}}'
HEAD = b'{"jsonrpc":"2.0","method":"output","params":{"call":%d,"raw":%d}}\n'
STREAM = LINE + b"\n\n" + HEAD % (7, 5) + b"a\nb\n\xff" + LINE + b"\n"
STREAM += HEAD % (8, 1) + b"\n" + HEAD % (7, 3) + b"end" + LINE + b"\n" + b"cut"
WANTED = ([LINE, LINE, LINE], {7: b"a\nb\n\xffend", 8: b"\n"})


def taken(pieces):
    lines, output = [], {}
    reader = incoming.Incoming(lines.append, lambda call, piece: output.__setitem__(call, output.get(call, b"") + piece))
    for piece in pieces:
        reader.feed(piece)
    return lines, output


class IncomingTest(unittest.TestCase):
    def test_pieces_of_any_size(self):
        for size in range(1, len(STREAM) + 1):
            pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
            self.assertEqual(taken(pieces), WANTED, f"in pieces of {size}")

    def test_what_only_looks_announced_is_a_line(self):
        for line in [b"x", b"-1", b"", b"1,2", b"1}"]:
            text = (HEAD % (7, 0)).replace(b":0}", b":" + line + b"}").strip()
            self.assertEqual(taken([text + b"\n" + LINE + b"\n"]), ([text, LINE], {}))

    def test_a_line_without_an_end(self):
        reader = incoming.Incoming(None, None)
        with self.assertRaises(incoming.TooLong):
            for _ in range(130):
                reader.feed(b"x" * (1 << 20))


if __name__ == "__main__":
    unittest.main()
