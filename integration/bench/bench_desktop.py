#!/usr/bin/env python3
"""Time and weigh the screen of a sandbox: from the container's start until panel and desktop are there, idle, and a picture of it.

Prints one JSON object with the limits that the sandboxes had. Each start is that of a new container.
"""

import argparse
import datetime
import json
import secrets
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

# What is wanted; see the figure's own name for its unit.
TARGETS = {"start_s": 1.5, "idle_cpu_percent": 1, "idle_memory_mb": 120, "screenshot_s": 0.5}

# How long the screen is left alone, in seconds: first until what its programs do after their start is done, then to be watched.
SETTLE = 8
WATCH = 10

# Prints the processor time in nanoseconds and the memory in bytes that the container uses, as docker stats counts them, then the
# processor time again after a while. It is one shell without a process of its own to run, because each would be counted.
GAUGE = r"""
cpu() {
  if [[ -r /sys/fs/cgroup/cpu.stat ]]; then
    while read -r name value; do [[ $name == usage_usec ]] && echo "${value}000"; done </sys/fs/cgroup/cpu.stat
  else
    echo "$(</sys/fs/cgroup/cpuacct/cpuacct.usage)"
  fi
}
memory() {
  dir=/sys/fs/cgroup used=memory.current cache=inactive_file
  [[ -r $dir/$used ]] || dir=$dir/memory used=memory.usage_in_bytes cache=total_inactive_file
  while read -r name value; do [[ $name == "$cache" ]] && echo "$(($(<"$dir/$used") - value))"; done <"$dir/memory.stat"
}
memory
cpu
read -rt "$1" <> <(:) || cpu
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dockerbox", required=True, help="the executable")
    parser.add_argument("--runs", type=int, default=5, help="starts and pictures")
    return parser.parse_args()


class Bench:
    """Sandboxes that are made one after another."""

    def __init__(self, executable):
        self.executable = executable
        self.name = f"t-bench-{secrets.token_hex(4)}"

    def dockerbox(self, *words):
        return subprocess.run([self.executable, *words], check=True, capture_output=True, text=True).stdout

    def remove(self):
        self.dockerbox("rm", "-f", self.name)

    def start(self, cpus):
        """Seconds from the start of a new container, as the daemon dates it, and from that of the first command. 0 cores is no limit."""
        self.remove()
        began = time.time()
        self.dockerbox("up", "--ephemeral", "--cpus", str(cpus), self.name)
        self.dockerbox("desktop", "start", self.name)
        ended = time.time()
        started = self.inspect("{{.State.StartedAt}}")
        micro = len("2026-01-01T00:00:00.000000")
        return ended - datetime.datetime.fromisoformat(started[:micro] + "+00:00").timestamp(), ended - began

    def inspect(self, template):
        container = json.loads(self.dockerbox("inspect", "--json", self.name))["id"]
        return subprocess.run(["docker", "inspect", "-f", template, container], check=True, capture_output=True, text=True).stdout.strip()

    def gauge(self, seconds):
        """Bytes of memory, and the percentage of a core that was used during that time."""
        memory, before, after = self.dockerbox("exec", self.name, "bash", "-c", GAUGE, "bash", str(seconds)).split()
        return int(memory), (int(after) - int(before)) / (seconds * 1e9) * 100

    def screenshot(self, directory):
        began = time.perf_counter()
        self.dockerbox("desktop", "screenshot", "-o", str(directory / "screen.png"), self.name)
        return time.perf_counter() - began


def median(seconds):
    return round(statistics.median(seconds), 2)


def rest(seconds):
    threading.Event().wait(seconds)


def limits(bench):
    """Those of the sandboxes, as the daemon has them; 0 is none."""
    cpus, memory, pids = bench.inspect("{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}").split()
    return {"cpus": int(cpus) / 1e9, "memory_mb": int(memory) >> 20, "pids": int(pids)}


def main():
    args = arguments()
    bench = Bench(args.dockerbox)
    try:
        bench.start(0)  # not counted: first use of everything
        one_core = [bench.start(1) for _ in range(args.runs)]
        free = [bench.start(0) for _ in range(args.runs)]
        rest(SETTLE)
        memory, cpu = bench.gauge(WATCH)
        with tempfile.TemporaryDirectory() as directory:
            pictures = [bench.screenshot(Path(directory)) for _ in range(args.runs)]
        used = limits(bench)
        bench.dockerbox("desktop", "stop", bench.name)
        without, _ = bench.gauge(0.1)
    finally:
        bench.remove()
    figures = {
        "start_s": median(took for took, _ in free),
        "idle_cpu_percent": round(cpu, 2),
        "idle_memory_mb": round(memory / (1 << 20)),
        "screenshot_s": median(pictures),
    }
    report = {
        "schema": 1, "runs": args.runs, "limits": used, **figures,
        "all_starts_s": [round(took, 2) for took, _ in free],
        "start_with_dockerbox_up_s": median(whole for _, whole in free),
        "start_with_one_core_s": median(took for took, _ in one_core),
        "idle_memory_without_screen_mb": round(without / (1 << 20)),
        "targets": TARGETS, "missed": [name for name, most in TARGETS.items() if figures[name] > most],
    }  # fmt: skip
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
