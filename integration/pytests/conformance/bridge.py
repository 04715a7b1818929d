"""Hermes's own terminal environments behind lines of JSON, so that the conformance cases, which are Go, can be run on them.

Every line in is {"id", "op", ...}, every line out {"id", "result"} or {"id", "error": {"kind", "reason", "hint"}}; answers come in any
order. Environments come out of Hermes's factory and are used through the methods that Hermes's tools use. Nothing here knows what is right.
"""

import base64
import json
import os
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hermes"))

ANSWERS, sys.stdout = sys.stdout, sys.stderr  # what Hermes prints is not an answer

from hermes_fixture import PROVIDER, base, make  # noqa: E402
from tools.interrupt import set_interrupt  # noqa: E402

# A command without a limit of its own ends long after every case, in seconds.
NO_LIMIT = 600


class Bridge:
    """The environments made so far, and the commands that run."""

    def __init__(self):
        self.environments = []
        self.threads = {}
        self.writing = threading.Lock()

    def serve(self):
        """Answer until the input ends."""
        for line in sys.stdin:
            request = json.loads(line)
            threading.Thread(target=self.answer, args=(request,), daemon=True).start()

    def answer(self, request):
        number = request.pop("id")
        self.threads[number] = threading.get_ident()
        try:
            reply = {"result": getattr(self, "do_" + request.pop("op"))(**request)}
        except base.EnvironmentConnectionError as error:
            reply = {"error": {"kind": "backend", "reason": str(error), "hint": getattr(error, "retry_hint", None) or ""}}
        except base.FileFetchError as error:
            reply = {"error": {"kind": "file", "reason": str(error), "hint": ""}}
        except Exception as error:
            reply = {"error": {"kind": "bug", "reason": f"{type(error).__name__}: {error}", "hint": ""}}
        finally:
            set_interrupt(False, self.threads.pop(number))
        with self.writing:
            print(json.dumps({"id": number, **reply}), file=ANSWERS, flush=True)

    # Before there is a sandbox.

    def do_attributes(self):
        return {"name": PROVIDER.name, "default_cwd": PROVIDER.default_cwd, "streams": PROVIDER.supports_streams}

    def do_read_default_cwd(self, times):
        """How long it takes, in seconds; the best of five rows, for the machine may be busy."""
        rows = []
        for _ in range(5):
            began = time.perf_counter()
            for _ in range(times):
                _ = PROVIDER.default_cwd
            rows.append(time.perf_counter() - began)
        return min(rows)

    def do_probe(self):
        status, detail = PROVIDER.probe()
        return {"status": status, "detail": detail}

    # Environments.

    def do_create(self, task, cwd, persistent):
        env = make(task, cwd=cwd, timeout=NO_LIMIT, container_persistent=persistent)
        self.environments.append(env)
        info = env._attachment.info
        kept = ("name", "image", "user", "home", "created")
        return {"env": len(self.environments) - 1, "cwd": env.cwd, "temp_dir": env.get_temp_dir(), "container_id": env._container_id} | {
            key: info.get(key) for key in kept
        }

    def do_execute(self, env, command, cwd, timeout, stdin):
        environment = self.environments[env]
        data = None if stdin is None else base64.b64decode(stdin)
        result = environment.execute(command, cwd, timeout=timeout or None, stdin_data=data)
        return result | {"container_id": environment._container_id}

    def do_interrupt(self, call):
        if (ident := self.threads.get(call)) is not None:
            set_interrupt(True, ident)

    def do_exec_prefix(self, env, user, interactive):
        return self.environments[env].exec_prefix(user=user or None, interactive=interactive)

    def do_fetch_file(self, env, path, max_bytes):
        with tempfile.TemporaryDirectory() as there:
            copy = os.path.join(there, "copy")
            self.environments[env].fetch_file(path, copy, max_bytes=max_bytes)
            with open(copy, "rb") as file:
                return base64.b64encode(file.read()).decode("ascii")

    def do_realpath(self, env, path):
        return self.environments[env].fetch_realpath(path)

    def do_cleanup(self, env, remove):
        self.environments[env].cleanup(force_remove=remove)


if __name__ == "__main__":
    Bridge().serve()
