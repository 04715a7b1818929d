"""The child process: start, agreement on the protocol, faults, its end, forks."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import plugin_modules
from plugin_modules import alive, fake_argv

child_module = plugin_modules.load("child")
client_module = plugin_modules.load("client")
faults = plugin_modules.load("faults")

Client = client_module.Client
Fault = faults.Fault


class Log:
    """What a fake serve wrote down about itself."""

    def __init__(self, case):
        directory = tempfile.TemporaryDirectory()
        case.addCleanup(directory.cleanup)
        self.path = Path(directory.name) / "log"
        self.path.touch()
        patcher = mock.patch.dict(os.environ, {"FAKE_LOG": str(self.path)})
        patcher.start()
        case.addCleanup(patcher.stop)

    def entries(self, method):
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [line["params"] for line in lines if line["method"] == method]


def until(condition, patience=10):
    """Wait for what another process does."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.01)
    return True


class StartTest(unittest.TestCase):
    def start(self, mode="", patience=10):
        client = Client(fake_argv(mode))
        self.addCleanup(client.retire)
        return client.child(patience)

    def fault(self, mode, patience=10):
        with self.assertRaises(Fault) as caught:
            self.start(mode, patience)
        return caught.exception

    def test_one_child_serves_many_requests(self):
        client = Client(fake_argv())
        self.addCleanup(client.retire)
        self.assertIs(client.child(), client.child())
        self.assertEqual(client.child().request("probe", {}, 5)["status"], "needs_setup")

    def test_greeting_that_never_comes_is_bounded(self):
        fault = self.fault("silent", patience=0.3)
        self.assertIn("did not greet within 0.3 s", fault.reason)
        self.assertIn(" version`", fault.hint)

    def test_other_protocol_names_both_and_what_to_run(self):
        fault = self.fault("protocol-7")
        self.assertIn("speaks protocol 1", fault.reason)
        self.assertIn("speaks protocol 7", fault.reason)
        self.assertIn("9.9", fault.reason)
        self.assertTrue(fault.hint.startswith("the plugin is the older one: run `"), fault.hint)
        self.assertIn("plugin install` and restart Hermes", fault.hint)
        fault = self.fault("protocol-0")
        self.assertTrue(fault.hint.startswith("the executable is the older one: update it, or run `"), fault.hint)

    def test_refused_child_is_not_left_running(self):
        log = Log(self)
        for mode in ("refuse", "protocol-7"):
            self.assertIn("7", self.fault(mode).reason)
        pids = [entry["pid"] for entry in log.entries("started")]
        self.assertEqual(len(pids), 2)
        for pid in pids:
            self.assertTrue(until(lambda pid=pid: not alive(pid)))

    def test_child_that_ends_at_once_is_quoted(self):
        fault = self.fault("exit")
        self.assertIn("status 7", fault.reason)
        self.assertIn("cannot even begin", fault.reason)
        self.assertTrue(fault.lost)

    def test_child_that_says_why_it_cannot_begin_is_believed(self):
        fault = self.fault("complain")
        self.assertEqual((fault.reason, fault.hint), ("there is no such context", "choose another"))
        self.assertTrue(fault.lost)

    def test_missing_executable_is_named(self):
        with self.assertRaises(Fault) as caught:
            Client(["/nonexistent/dockerbox", "serve"]).child()
        self.assertIn("/nonexistent/dockerbox", caught.exception.reason)

    def test_lines_that_are_no_answer_are_logged_and_passed_over(self):
        with self.assertLogs(child_module.logger, "WARNING") as logs:
            child = self.start("chatty")
            self.assertEqual(child.request("probe", {}, 5)["status"], "needs_setup")
        self.assertIn("Welcome to the fake!", "\n".join(logs.output))
        self.assertLess(max(map(len, logs.output)), 1000)

    def test_answer_that_never_comes_is_bounded(self):
        child = self.start("deaf-probe")
        with self.assertRaises(Fault) as caught:
            child.request("probe", {}, 0.2)
        self.assertIn("no answer to probe", caught.exception.reason)
        self.assertFalse(caught.exception.lost)
        self.assertEqual(child._calls, {})

    def test_child_that_reads_no_more_ends_the_connection(self):
        child = self.start("deaf-input")
        with mock.patch.object(child_module, "WRITE_PATIENCE", 0.3), self.assertRaises(Fault) as caught:
            child.notify("stdin", {"call": 1, "data": "A" * (4 << 20)})
        self.assertIn("took no input", caught.exception.reason)
        self.assertTrue(until(lambda: not alive(child.pid)))

    def test_error_answers_carry_reason_and_hint(self):
        child = self.start("no-image")
        with self.assertRaises(Fault) as caught:
            child.request("create", {"config": {"name": "x"}}, 5)
        self.assertEqual((caught.exception.reason, caught.exception.hint), ("the image is missing", "make image"))
        with self.assertRaises(Fault) as caught:
            child.request("nosuch", {}, 5)
        self.assertIn("nosuch", caught.exception.reason)


class EndTest(unittest.TestCase):
    def test_killed_child_is_replaced(self):
        client = Client(fake_argv())
        self.addCleanup(client.retire)
        first = client.child()
        os.kill(first.pid, signal.SIGKILL)
        self.assertTrue(until(lambda: first.lost))
        self.assertIn("status -9", first.lost.reason)
        second = client.child()
        self.assertNotEqual(second.pid, first.pid)
        self.assertEqual(second.request("probe", {}, 5)["status"], "needs_setup")
        self.assertFalse(alive(first.pid), "the first child must not stay as a zombie")

    def test_retired_child_ends_when_idle(self):
        client = Client(fake_argv())
        child = client.child()
        answer = child_module._Answer()
        child.begin("execute", {"command": "hang", "window": 65536}, answer)
        client.retire()
        self.assertEqual(child.request("probe", {}, 5)["status"], "needs_setup", "it must serve what is under way")
        self.assertIsNone(child.lost)
        child.notify("cancel", {"call": answer.number, "cause": "interrupt"})
        self.assertTrue(answer.done.wait(5))
        self.assertTrue(until(lambda: not alive(child.pid)))
        self.assertTrue(until(lambda: child.lost))
        other = client.child()
        self.assertNotEqual(other.pid, child.pid, "a client is usable after retire()")
        client.retire()
        self.assertTrue(until(lambda: not alive(other.pid)))

    def parent(self, ending):
        """Run a process that starts a child and then ends; the child's pid."""
        program = f"""
import os, signal, sys
sys.path.insert(0, {str(plugin_modules.HERE)!r})
import plugin_modules
client = plugin_modules.load("client").Client(plugin_modules.fake_argv())
print(client.child().pid, flush=True)
{ending}
"""
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=30, check=False)
        return int(done.stdout)

    def test_child_ends_with_its_parent(self):
        for ending in ("", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "sys.exit(1)"):
            with self.subTest(ending=ending):
                pid = self.parent(ending)
                self.assertTrue(until(lambda pid=pid: not alive(pid)), "the child outlived its parent")

    def test_forked_copy_neither_uses_nor_holds_the_child(self):
        # The copy outlives its parent: if it kept the pipe, the child would live on with it.
        ending = """
read, write = os.pipe()
if (copy := os.fork()) == 0:
    os.close(write)
    os.read(read, 1)  # until the parent is gone
    os._exit(0)
"""
        pid = self.parent(ending)
        self.assertTrue(until(lambda: not alive(pid)), "the child outlived its parent in a forked copy's hands")

    def test_forked_copy_starts_a_child_of_its_own(self):
        ending = """
mine = client.child()
if (copy := os.fork()) == 0:
    other = client.child()
    ok = other.pid != mine.pid and other.request("probe", {}, 5)["status"] == "needs_setup" and mine.lost
    os._exit(0 if ok else 1)
_, status = os.waitpid(copy, 0)
assert status == 0, status
assert mine.request("probe", {}, 5)["status"] == "needs_setup"
print("fine", flush=True)
"""
        program = f"""
import os, sys
sys.path.insert(0, {str(plugin_modules.HERE)!r})
import plugin_modules
client = plugin_modules.load("client").Client(plugin_modules.fake_argv())
{ending}
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual((done.stdout, done.returncode), ("fine\n", 0), done.stderr)

    def test_interrupt_from_the_terminal_does_not_reach_the_child(self):
        log = Log(self)
        client = Client(fake_argv())
        self.addCleanup(client.retire)
        child = client.child()
        self.assertNotEqual(os.getpgid(child.pid), os.getpgid(0))
        self.assertEqual([entry["pid"] for entry in log.entries("started")], [child.pid])


class ConcurrencyTest(unittest.TestCase):
    def test_many_threads_start_one_child(self):
        log = Log(self)
        client = Client(fake_argv())
        self.addCleanup(client.retire)
        pids = []
        threads = [threading.Thread(target=lambda: pids.append(client.child().pid)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        self.assertEqual((len(pids), len(set(pids)), len(log.entries("started"))), (8, 1, 1))


if __name__ == "__main__":
    unittest.main()
