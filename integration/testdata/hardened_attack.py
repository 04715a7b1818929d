"""What an account may try against the agent that runs as its own number. Prints what works."""

import array
import contextlib
import ctypes
import os
import pathlib
import resource
import socket

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_SEIZE, PIDFD_GETFD = 16, 0x4206, 438
CONNECTIONS = 65531  # their account


def works(what, attempt, *args):
    """Prints what, with the answer, unless attempt fails as the kernel lets things fail."""
    with contextlib.suppress(OSError):
        print(what, *args, "->", repr(attempt(*args))[:80])


def call(function, *args):
    done = function(*args)
    if done < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return done


def trace(request, pid):
    return call(libc.ptrace, request, pid, None, None)


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def move(function):
    mine = ctypes.create_string_buffer(8)
    local, remote = Piece(ctypes.addressof(mine), 8), Piece(0x400000, 8)
    return call(function, 1, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)


def take_descriptor():
    return call(libc.syscall, PIDFD_GETFD, os.pidfd_open(1), 0, 0)


def read(name):
    return pathlib.Path(name).read_bytes()[:8]


def write(name, text):
    with pathlib.Path(name).open("r+") as f:
        return f.write(text)


def take_name(address):
    socket.socket(socket.AF_UNIX).bind(address)


def talk(address):
    ours = socket.socket(socket.AF_UNIX)
    ours.settimeout(5)
    ours.connect(address)
    (_, out), (into, _) = os.pipe(), os.pipe()
    rights = array.array("i", [into, out])
    ours.sendmsg([b'{"user":"pn"}'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    if answer := ours.recv(10):
        return answer
    raise OSError("hung up")


for request in (PTRACE_ATTACH, PTRACE_SEIZE):
    works("tracing", trace, request, 1)
works("reading memory", move, libc.process_vm_readv)
works("writing memory", move, libc.process_vm_writev)
works("taking a descriptor", take_descriptor)
for name in ("mem", "environ", "maps", "auxv", "stack", "syscall"):
    works("reading", read, f"/proc/1/{name}")
for name in ("exe", "cwd", "root", "ns/pid", "ns/net"):
    works("following", os.readlink, f"/proc/1/{name}")
works("listing", os.listdir, "/proc/1/fd")
for name, value in (("oom_score_adj", "1000"), ("mem", "x"), ("comm", "x"), ("coredump_filter", "0")):
    works("writing", write, f"/proc/1/{name}", value)
for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_AS):
    works("setting a limit", resource.prlimit, 1, limit, (1, 1))
works("changing the program", write, "/.dockerbox/agent", "x")
works("making a file beside it", pathlib.Path("/.dockerbox/x").touch)
works("moving its directory", os.rename, "/.dockerbox", "/tmp/x")
works("becoming a connection", os.setresuid, CONNECTIONS, CONNECTIONS, CONNECTIONS)
works("becoming root", os.setuid, 0)

# The socket it listens on can be seen and connected to, and is of no use.
names = {word for word in pathlib.Path("/proc/net/unix").read_text().split() if word.startswith("@dockerbox-agent/first")}
if len(names) != 1:
    print("it listens on", names)
flood = []
for name in names:
    address = "\0" + name[1:]
    works("taking the name", take_name, address)
    works("talking", talk, address)
    for _ in range(500):  # many at once hold it up as little
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        flood.append(one)
        with contextlib.suppress(OSError):
            one.connect(address)

# The connections are processes of another account.
connections = 0
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    words = []
    with contextlib.suppress(OSError):
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    if words[1:3] != [b"attach", b"--first"]:
        continue
    connections += 1
    for signal in (9, 19, 11):
        works("signalling a connection", os.kill, pid, signal)
    works("tracing a connection", trace, PTRACE_ATTACH, pid)
    works("listing a connection's streams", os.listdir, f"/proc/{pid}/fd")
if connections == 0:
    print("there is no connection")
