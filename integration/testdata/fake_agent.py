"""A program in a sandbox that takes the agent's place: python3 fake_agent.py SOCKET-NAME BEHAVIOUR."""

import array
import json
import os
import socket
import struct
import sys

DESCRIPTORS = 2
MANY = 2000


def frame(kind: str, number: int, payload: bytes) -> bytes:
    """Encode one frame."""
    return struct.pack(">IcI", len(payload) + 5, kind.encode(), number) + payload


class Host:
    """The streams that an attach handed over."""

    def __init__(self, connection: socket.socket) -> None:
        fds = array.array("i")
        _, controls, _, _ = connection.recvmsg(4096, socket.CMSG_SPACE(DESCRIPTORS * fds.itemsize))
        for _, _, data in controls:
            fds.frombytes(data[: DESCRIPTORS * fds.itemsize])
        self.read_fd, self.write_fd = fds
        connection.send(b"+")

    def send(self, data: bytes) -> None:
        """Write everything."""
        while data:
            data = data[os.write(self.write_fd, data) :]

    def exactly(self, size: int) -> bytes:
        """Read size bytes, or end."""
        data = b""
        while len(data) < size:
            piece = os.read(self.read_fd, size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def command(self) -> int:
        """Answer as an agent would until a command comes."""
        hello = {"name": "dockerbox-agent", "protocol": 1, "version": "fake", "boot": "fake", "uid": 0}
        self.send(frame("H", 0, json.dumps(hello).encode()))
        while True:
            size, kind, number = struct.unpack(">IcI", self.exactly(9))
            self.exactly(size - 5)
            if kind == b"Q":
                account = {"name": "pn", "uid": 1000, "gid": 1000, "home": "/home/pn"}
                self.send(frame("A", number, json.dumps({"account": account, "temp_dir": "/tmp"}).encode()))
            elif kind == b"R":
                return number


def behave(host: Host, behaviour: str) -> None:
    """Do what no agent does, until the host hangs up."""
    if behaviour == "zeros":
        while True:
            host.send(bytes(65536))
    number = host.command()
    data = {
        "too much": frame("O", number, bytes(65536)),
        "exits": frame("X", number, json.dumps({"code": -1 << 40, "cwd": "Li4vLi4="}).encode()) * MANY,
        "long frame": struct.pack(">IcI", 0xFFFFFFFF, b"O", number),
        "answers": frame("A", number, b'{"error":"x"}') * MANY,
        "nothing": (frame("O", number, b"") + frame("P", number, b"")) * MANY,
    }[behaviour]
    while True:
        host.send(data)


def main() -> None:
    """Serve one host after the other."""
    _, name, behaviour = sys.argv
    server = socket.socket(socket.AF_UNIX)
    server.bind("\0" + name.removeprefix("@"))
    server.listen()
    print("listening", flush=True)
    while True:
        connection, _ = server.accept()
        try:
            behave(Host(connection), behaviour)
        except (EOFError, OSError, ValueError):  # ValueError: it handed over nothing
            connection.close()


main()
