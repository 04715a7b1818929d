#!/usr/bin/env python3
"""One terminal backend of real Hermes, timed from within: reads a JSON object per line, answers each with one.

The first line it writes says that the environment is there. Everything it made is removed at the end of its input.

- {"op": "run", "command", "warm", "count", "gap_ms", "bounded", "stdin", "output", "threads"}: the command, `warm` times untimed and then
  `count` times, with a pause before each; `stdin` bytes go in, `output` bytes (-1: any) come out; with `threads` each does all of it.
  With `beside`, that command runs every `beside_ms` meanwhile.
  -> {"ns": [...], "whole_ns"}
- {"op": "flood", ..., "flood", "began", "stop"}: the same beside a command that floods from when `began` returns until `stop` was run.
- {"op": "fresh", "task"}: a new sandbox up to the first line of its output, removed afterwards -> {"ns": [one]}
- {"op": "attach"}: what a Hermes started anew does up to its first command in the sandbox that lives -> {"ns": [one]}

A failure is answered with {"error"}.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", required=True, choices=["dockerbox", "docker", "local"])
    parser.add_argument("--image", required=True, help="for docker; dockerbox has it by itself")
    parser.add_argument("--dockerbox", required=True, help="the executable")
    return parser.parse_args()


class Backend:
    """Environments out of Hermes's own factory."""

    def __init__(self, args):
        from hermes_cli.plugins import discover_plugins

        discover_plugins()
        from tools import terminal_tool
        from tools.terminal_tool_backends import _container_config_from_config, _create_environment

        self.args = args
        self.factory = _create_environment
        self.config = _container_config_from_config(terminal_tool._get_env_config())
        self.env = self.make("default")
        self.name = self.named(self.env)

    def make(self, task):
        if self.args.backend == "local":
            return self.factory("local", "", os.environ["HOME"], timeout=120)
        if self.args.backend == "dockerbox":
            return self.factory("dockerbox", "", "/root", timeout=120, container_config=self.config, task_id=task)
        # Nothing of this container is to be found by a later run, so that each measures the same thing.
        config = {**self.config, "container_persistent": False, "docker_persist_across_processes": False}
        return self.factory("docker", self.args.image, "/tmp", timeout=120, container_config=config, task_id=task)

    def named(self, env):
        """The sandbox of a new environment, as the command line addresses it; empty for the built-in backends."""
        return env._attachment.info["name"] if self.args.backend == "dockerbox" else ""

    def remove(self, env, name):
        env.cleanup()
        if name:  # the home too, which a cleanup leaves to its owner
            subprocess.run([self.args.dockerbox, "rm", "-f", name], check=True, stdout=subprocess.DEVNULL)
        if self.args.backend == "docker" and not env.wait_for_cleanup(60):
            raise RuntimeError("the container of the docker backend was not removed within 60 s")

    def facts(self):
        env = self.env
        facts = {"ready": True, "container": getattr(env, "_container_id", "") or ""}
        if self.args.backend == "dockerbox":
            facts["name"] = self.name
            facts["serve"] = env._attachment.child.pid
        return facts

    # What can be asked for.

    def run(self, job):
        if not job.get("beside"):
            return self._measure(job, self._payload(job))
        stop = threading.Event()

        def beside():
            while not stop.wait(job["beside_ms"] / 1000):
                self._expect(self.env.execute(job["beside"]), job["beside"])

        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(beside)
            try:
                measured = self._measure(job, self._payload(job))
            finally:
                stop.set()
            ended.result()
        return measured

    def flood(self, job):
        ended = []
        thread = threading.Thread(target=lambda: ended.append(self.env.execute(job["flood"], bounded_capture=True)))
        thread.start()
        try:
            self._expect(self.env.execute(job["began"]), job["began"])
            return self._measure(job, None)
        finally:
            self._expect(self.env.execute(job["stop"]), job["stop"])
            thread.join()
            self._expect(ended[0] if ended else {"returncode": None}, "the flood")

    def fresh(self, job):
        began = time.perf_counter_ns()
        env = self.make(job["task"])
        name = self.named(env)
        try:
            result = env.execute("echo ready")
            took = time.perf_counter_ns() - began
            self._expect(result, "echo ready")
        finally:
            self.remove(env, name)
        return {"ns": [took], "whole_ns": took}

    def attach(self, job):
        from agent.terminal_env_registry import get_provider

        if self.args.backend != "dockerbox":
            raise ValueError(f"{self.args.backend} is not attached to again")
        self.env.cleanup()
        get_provider("dockerbox").retire()
        began = time.perf_counter_ns()
        self.env = self.make("default")
        result = self.env.execute("true")
        took = time.perf_counter_ns() - began
        self._expect(result, "true")
        return {"ns": [took], "whole_ns": took, **self.facts()}

    # Inside.

    @staticmethod
    def _payload(job):
        """A log of as many bytes as go in, as bench.go has it."""
        if not job.get("stdin"):
            return None
        piece, x, size, i = [], 7, 0, 0
        while size < 1 << 20:
            x = (x * 1237 + 211) % 65521
            when, path = f"2026-11-30T12:{i // 60 % 60:02d}:{i % 60:02d}", f"/api/v{x % 3}/items/{x % 9973}"
            line = f"{when} INFO request {x * 7 + i:06d} GET {path} status={200 + x % 5} took {x % 997} ms\n"
            piece.append(line)
            size += len(line)
            i += 1
        return ("".join(piece)[: 1 << 20] * (1 + (job["stdin"] >> 20)))[: job["stdin"]]

    @staticmethod
    def _expect(result, command):
        if result["returncode"] != 0:
            raise RuntimeError(f"`{command[:60]}` ended with {result['returncode']}: {result.get('output', '')[-300:]}")

    def _measure(self, job, payload):
        """All of a job, on as many threads as it says."""
        threads = job.get("threads") or 1
        self._series(job, payload, job.get("warm") or 0)
        began = time.perf_counter_ns()
        if threads == 1:
            taken = self._series(job, payload, job["count"])
        else:
            with ThreadPoolExecutor(threads) as pool:
                taken = [ns for series in pool.map(lambda _: self._series(job, payload, job["count"]), range(threads)) for ns in series]
        return {"ns": taken, "whole_ns": time.perf_counter_ns() - began}

    def _series(self, job, payload, count):
        command, bounded, gap, wanted = job["command"], bool(job.get("bounded")), (job.get("gap_ms") or 0) / 1000, job["output"]
        taken = []
        for _ in range(count):
            if gap:
                time.sleep(gap)
            began = time.perf_counter_ns()
            result = self.env.execute(command, stdin_data=payload, bounded_capture=bounded)
            taken.append(time.perf_counter_ns() - began)
            self._expect(result, command)
            # Bounded capture keeps a part by design; Hermes may trim a line end.
            if wanted >= 0 and not bounded and abs(len(result["output"]) - wanted) > 1:
                raise RuntimeError(f"`{command[:60]}` gave {len(result['output'])} characters, not {wanted}")
        return taken


def main():
    args = arguments()
    # Hermes may print; the answers keep their own way out.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        backend = Backend(args)
    except Exception as error:
        traceback.print_exc()
        say({"error": f"{type(error).__name__}: {error}"})
        return 1
    try:
        say(backend.facts())
        for line in sys.stdin:
            job = json.loads(line)
            try:
                say({"run": backend.run, "flood": backend.flood, "fresh": backend.fresh, "attach": backend.attach}[job["op"]](job))
            except BrokenPipeError:
                raise
            except Exception as error:
                traceback.print_exc()
                say({"error": f"{type(error).__name__}: {error}"})
    except BrokenPipeError:
        pass  # nobody waits for the answer any more; what was made has to go nevertheless
    finally:
        backend.remove(backend.env, backend.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
