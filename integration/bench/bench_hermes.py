#!/usr/bin/env python3
"""Time execute("true") through real Hermes: dockerbox against the built-in docker and local backends, in turns.

Run by the Python of the venv with Hermes. Prints one JSON object: medians, 95th percentiles and ratios, times in milliseconds.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

IMAGE = "dockerbox/desktop:latest"
SANDBOX = "t-bench"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dockerbox", required=True, help="the executable")
    parser.add_argument("--runs", type=int, default=60, help="commands per backend")
    parser.add_argument("--gap-ms", type=float, default=30, help="pause before each command: nobody sends them back to back")
    return parser.parse_args()


def prepare_home(executable):
    """A Hermes home of its own, with the plugin; in force for this process from here on."""
    home = Path(tempfile.mkdtemp(prefix="bench-hermes-"))
    hermes = home / ".hermes"
    hermes.mkdir()
    (hermes / "config.yaml").write_text(
        f"terminal:\n  backend: dockerbox\n  backends:\n    dockerbox:\n      sandbox: {SANDBOX}\nplugins:\n  enabled: [dockerbox]\n",
        encoding="utf-8",
    )
    subprocess.run([executable, "plugin", "install", "--home", str(hermes)], check=True, stdout=subprocess.DEVNULL)
    os.environ.update(HOME=str(home), HERMES_HOME=str(hermes))
    return home


def environments():
    """The three backends out of Hermes's own factory."""
    from hermes_cli.plugins import discover_plugins

    discover_plugins()
    from tools import terminal_tool
    from tools.terminal_tool_backends import _container_config_from_config, _create_environment

    config = _container_config_from_config(terminal_tool._get_env_config())
    ours = {"timeout": 60, "container_config": config, "task_id": "default"}
    # Nothing of this container is to be found by a later run, so that each measures the same thing.
    theirs = {**ours, "container_config": {**config, "container_persistent": False, "docker_persist_across_processes": False}}
    return {
        "dockerbox": _create_environment("dockerbox", "", "/root", **ours),
        "docker": _create_environment("docker", IMAGE, "/tmp", **theirs),
        "local": _create_environment("local", "", os.environ["HOME"], timeout=60),
    }


# Commands in a row on one backend. A block is short enough that a busy moment of the machine meets all backends, and long enough that
# each runs with its own programs in the caches, as it does where it is the only one; some virtual machines take milliseconds to bring
# back memory that was left alone for a tenth of a second.
BLOCK = 10


def measure(envs, runs, gap):
    """Seconds per command of each backend, in turns of BLOCK commands."""
    taken = {name: [] for name in envs}
    pause = threading.Event()
    for done in range(0, runs, BLOCK):
        for name, env in envs.items():
            for _ in range(min(BLOCK, runs - done)):
                pause.wait(gap)
                began = time.perf_counter()
                result = env.execute("true")
                taken[name].append(time.perf_counter() - began)
                if result["returncode"] != 0:
                    sys.exit(f"{name}: `true` ended with {result}")
    return taken


def report(taken):
    """The figures of all backends, in milliseconds, and how many times faster dockerbox is."""
    figures = {}
    for name, seconds in taken.items():
        ordered = sorted(seconds)
        figures[name] = {
            "median_ms": round(statistics.median(ordered) * 1000, 2),
            "p95_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))] * 1000, 2),
        }
    ratios = {
        f"{name}/dockerbox": round(statistics.median(taken[name]) / statistics.median(taken["dockerbox"]), 1)
        for name in ("docker", "local")
    }
    return {"schema": 1, "command": "true", "runs": len(taken["dockerbox"]), "backends": figures, "ratios": ratios}


def main():
    args = arguments()
    executable = os.path.abspath(args.dockerbox)
    home = prepare_home(executable)
    envs = {}
    try:
        envs = environments()
        measure(envs, 3, args.gap_ms / 1000)  # not counted: first use of everything
        print(json.dumps(report(measure(envs, args.runs, args.gap_ms / 1000)), indent=2))
    finally:
        for env in envs.values():
            env.cleanup()
        subprocess.run([executable, "rm", "-f", SANDBOX], check=False, stdout=subprocess.DEVNULL)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
