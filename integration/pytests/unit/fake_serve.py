"""Plays `dockerbox serve --stdio` for the faults that a real one does not have to order.

It speaks docs/protocol.md, section 1, and lets the text of a command say how to misbehave; its only argument does so for the start.
"""

import base64
import hashlib
import itertools
import json
import os
import queue
import sys
import threading

_lock = threading.Lock()
_calls = {}
_sandboxes = {}
_containers = itertools.count(1)


class Running:
    """An execute under way: what arrives for it, and how much output it may still send."""

    def __init__(self, window):
        self.inbox = queue.Queue()
        self.credit = window
        self.sent = 0
        self.changed = threading.Condition()


def send(message):
    line = json.dumps(message, separators=(",", ":")) + "\n"
    with _lock:
        sys.stdout.write(line)
        sys.stdout.flush()


def raw(text):
    with _lock:
        sys.stdout.write(text)
        sys.stdout.flush()


def b64(data):
    return base64.b64encode(data).decode()


def result(number, **fields):
    send({"jsonrpc": "2.0", "id": number, "result": fields})


def failure(number, code, message, data=None):
    error = {"code": code, "message": message}
    if data:
        error["data"] = data
    send({"jsonrpc": "2.0", "id": number, "error": error})


def execute(number, params, call):
    verb, _, rest = params.get("command", "").partition(" ")
    if verb == "echo":
        result(number, returncode=0, output=b64(rest.encode()), cwd=params.get("cwd") or "/home/pn")
    elif verb == "params":
        result(number, returncode=0, output=b64(json.dumps(params).encode()))
    elif verb == "cd":
        result(number, returncode=0, output="", cwd=rest)
    elif verb == "cd-raw":
        name = os.fsencode("/tmp/\udcff")
        result(number, returncode=0, output="", cwd=name.decode("utf-8", "replace"), cwd_b64=b64(name))
    elif verb == "status":
        result(number, returncode=int(rest), output="")
    elif verb == "pieces":
        for place, piece in enumerate(rest.encode()):
            params = {"call": number, "data": b64(bytes([piece]))}
            # The order of members is nobody's promise.
            send({"jsonrpc": "2.0", "method": "output", "params": params if place % 2 else dict(reversed(params.items()))})
        result(number, returncode=0, output="")
    elif verb == "flood":
        flood(number, int(rest), call)
    elif verb == "hash":
        digest, size = hashlib.sha256(), 0
        while (message := call.inbox.get())["method"] == "stdin":
            data = base64.b64decode(message["params"].get("data", ""))
            digest.update(data)
            size += len(data)
            if message["params"].get("eof"):
                break
            send({"jsonrpc": "2.0", "method": "credit", "params": {"call": number, "bytes": len(data)}})
        result(number, returncode=0, output=b64(f"{size} {digest.hexdigest()}".encode()))
    elif verb == "ignore-input":
        result(number, returncode=0, output="")
    elif verb == "hang":
        while call.inbox.get()["method"] != "cancel":
            pass
        result(number, returncode=130, output=b64(rest.encode()), interrupted=True)
    elif verb == "deaf":
        pass  # no answer ever, not even to a cancel
    elif verb == "die":
        print("panic: the fake was told to die", file=sys.stderr, flush=True)
        os._exit(3)
    elif verb == "garbage":
        raw('this is no JSON\n[1,2]\n{"jsonrpc":"2.0","method":"output","params":{}}\n\n' + "x" * 100000 + "\n")
        result(number, returncode=0, output=b64(b"survived"))
    elif verb == "nonsense":
        result(number, returncode="seven", output=5)
    elif verb == "backend":
        failure(number, -32000, rest, {"kind": "backend", "reason": rest, "hint": "start the daemon"})
    elif verb == "recreated":
        result(number, returncode=0, output="", environment_recreated=True, container_id="second", cwd="/home/pn")
    else:
        result(number, returncode=127, output=b64(f"{verb}: not known to the fake".encode()))
    _calls.pop(number, None)


def flood(number, size, call):
    """Output in 32 KiB pieces, never more under way than the window allows; says how much that was at most."""
    left, most = size, 0
    while left:
        piece = b"y" * min(left, 32 << 10)
        with call.changed:
            while call.credit < len(piece):
                if not call.changed.wait(30):
                    os._exit(9)
            call.credit -= len(piece)
            call.sent += len(piece)
        send({"jsonrpc": "2.0", "method": "output", "params": {"call": number, "data": b64(piece)}})
        left -= len(piece)
        most = max(most, call.sent)
    result(number, returncode=0, output="")


def found_in(config):
    """Faults as the real one answers them, by a rule that tests can follow: no value may be the text "wrong"."""
    return [{"key": key, "problem": '"wrong" must be right'} for key, value in config.items() if value == "wrong"]


def refuse(number, faults):
    failure(number, -32602, "; ".join(f"{f['key']}: {f['problem']}" for f in faults), {"kind": "config", "faults": faults})


def create(number, params):
    """A sandbox is made anew when mounts are among what the request chose and differ, unless a job lives in it."""
    config = params["config"]
    if faults := found_in(config):
        refuse(number, faults)
        return
    name, mounts = config["name"], config.get("mounts", [])
    has = _sandboxes.get(name)
    chosen = config.get("given")
    differs = has is not None and (chosen is None or "mounts" in chosen) and has["mounts"] != mounts
    created = has is None or (differs and not os.environ.get("FAKE_JOB"))
    if created:
        has = _sandboxes[name] = {"mounts": mounts, "container_id": f"container-{next(_containers)}"}
    cwd = params.get("cwd")
    result(
        number,
        env=f"e{number}",
        name=name,
        home="/home/pn",
        user="pn",
        cwd="/home/pn" if cwd == "~" else cwd,
        temp_dir="/tmp",
        created=created,
        warnings=["a warning from create"],
        **has,
    )


def note(method, params):
    """Write down what happens, where the test reads it."""
    if path := os.environ.get("FAKE_LOG"):
        with open(path, "a", encoding="utf-8") as log:
            log.write(json.dumps({"method": method, "params": params}) + "\n")


def handle(message, mode):
    number, method, params = message.get("id"), message["method"], message.get("params") or {}
    note(method, params)
    call = _calls.get(params.get("call"))
    if method == "initialize" and mode == "refuse":
        failure(number, -32600, "protocol 1 is not spoken here, only 7")
    elif method == "initialize":
        result(number, protocol=1, version="0.0-fake")
    elif method == "probe":
        if mode == "ready-probe":
            result(number, status="ready", detail="Docker API 1.41")
        elif mode == "odd-probe":
            result(number, status="splendid", detail="all is well")
        elif mode != "deaf-probe":
            result(number, status="needs_setup", detail="no daemon answers", hint="start it")
    elif method == "doctor" and mode == "doctor-slow":
        pass
    elif method == "doctor" and mode.startswith("doctor"):
        checks = [
            {"name": "daemon", "status": "ok", "detail": "it answers"},
            {"name": "disk limit", "status": "warn", "detail": "it is not enforced", "remedy": "use xfs"},
            {"name": "image", "status": "fail", "detail": "there is none", "remedy": "make image"},
        ]
        result(number, checks=7 if mode == "doctor-broken" else checks)
    elif method == "create":
        if mode == "no-image":
            failure(number, -32000, "no image", {"kind": "backend", "reason": "the image is missing", "hint": "make image"})
        else:
            create(number, params)
    elif method == "validate":
        if mode == "old":
            failure(number, -32601, "no such method: validate")
        elif faults := found_in(params["config"]):
            refuse(number, faults)
        else:
            result(number)
    elif method == "execute":
        _calls[number] = Running(params.get("window", 0))
        threading.Thread(target=execute, args=(number, params, _calls[number]), daemon=True).start()
    elif method in ("stdin", "cancel"):
        if call:
            call.inbox.put(message)
    elif method == "credit":
        if call:
            with call.changed:
                call.credit += params["bytes"]
                call.sent -= params["bytes"]
                call.changed.notify()
    elif method == "exec_prefix":
        result(number, argv=["docker", "exec", "-i", "first"])
    elif method == "realpath":
        failure(number, -32001, "loop", {"kind": "file", "path": params["path"], "problem": "too many links"})
    elif method == "cleanup":
        result(number)
    else:
        failure(number, -32601, f"no such method: {method}")


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    note("started", {"pid": os.getpid()})
    if mode == "silent":
        sys.stdin.read()
        return
    if mode == "exit":
        print("cannot even begin", file=sys.stderr)
        sys.exit(7)
    if mode == "complain":
        print("dockerbox: error: there is no such context", "dockerbox: hint: choose another", sep="\n", file=sys.stderr)
        sys.exit(125)
    if mode == "chatty":
        raw("Welcome to the fake!\n\n")
    hello = {
        "name": "dockerbox",
        "protocol": int(mode.removeprefix("protocol-")) if mode.startswith("protocol-") else 1,
        "version": os.environ.get("FAKE_VERSION", "9.9"),
        "features": ["execute", "doctor"] if mode.startswith("doctor") else ["execute"],
    }
    send({"jsonrpc": "2.0", "method": "hello", "params": hello})
    if mode == "deaf-input":
        # Greets, answers initialize, and then reads no more.
        handle(json.loads(sys.stdin.readline()), mode)
        threading.Event().wait()
    for line in sys.stdin:
        handle(json.loads(line), mode)
    note("ended", {"pid": os.getpid()})


main()
