"""A running command: output, input, its end, its kill, and what its backend's failure looks like."""

import hashlib
import os
import select
import signal
import threading
import time
import unittest
from unittest import mock

import plugin_modules
from plugin_modules import fake_argv

command_module = plugin_modules.load("command")
streams = plugin_modules.load("streams")
child_module = plugin_modules.load("child")
Client = plugin_modules.load("client").Client
Command = command_module.Command
Fault = plugin_modules.load("faults").Fault


class Failure(Exception):
    """Stands for the host's exception."""


class CommandCase(unittest.TestCase):
    def setUp(self):
        self.client = Client(fake_argv())
        self.addCleanup(self.client.retire)
        self.child = self.client.child()

    def start(self, text, *, piped=False, data=None, **params):
        command = Command(self.child, piped=piped, to_error=lambda fault: Failure(fault.reason))
        if data is not None:
            params["stream_stdin"] = True
            command.feed(feed := streams.InputFeed(self.child, data))
        number = self.child.begin("execute", {"command": text, "window": streams.WINDOW, **params}, command)
        if data is not None:
            feed.start(number)
        return command

    def finish(self, command, patience=30):
        deadline = time.monotonic() + patience
        while command.poll() is None:
            self.assertLess(time.monotonic(), deadline, "the command did not end")
        return command.returncode

    def output(self, command):
        return b"".join(command.stdout)


class OutputTest(CommandCase):
    def test_status_and_output_arrive_with_the_result(self):
        command = self.start("echo hello")
        self.assertEqual(self.output(command), b"hello")
        self.assertEqual((self.finish(command), command.wait(), command.result["cwd"]), (0, 0, "/home/pn"))
        self.assertEqual(self.finish(self.start("status 3")), 3)

    def test_pieces_keep_their_order(self):
        self.assertEqual(self.output(self.start("pieces 0123456789")), b"0123456789")

    def test_flood_stays_within_the_window_and_arrives_whole(self):
        command = self.start(f"flood {8 << 20}")
        self.assertEqual(len(self.output(command)), 8 << 20)
        self.assertEqual(self.finish(command), 0)

    def test_output_nobody_reads_holds_up_no_other_command(self):
        flood = self.start(f"flood {4 << 20}")
        self.assertEqual(self.output(self.start("echo on")), b"on")
        self.assertIsNone(flood.returncode, "without a reader the flood must stop at its window")
        self.assertEqual(len(self.output(flood)), 4 << 20)
        self.assertEqual(self.finish(flood), 0)

    def test_closed_output_does_not_hold_up_its_command(self):
        command = self.start(f"flood {4 << 20}")
        pieces = iter(command.stdout)
        next(pieces)
        command.stdout.close()
        self.assertEqual(list(pieces), [])
        self.assertEqual(self.finish(command), 0)


class PipeTest(CommandCase):
    """What a reader that takes over from another one relies on."""

    def test_a_second_reader_goes_on_where_the_first_one_stopped(self):
        command = self.start(f"flood {3 << 20}", piped=True)
        descriptor = command.stdout.fileno()
        first = os.read(descriptor, 1000)
        rest = command.stdout.read()
        self.assertEqual(len(first) + len(rest), 3 << 20)
        self.assertEqual(self.finish(command), 0)
        command.stdout.close()

    def test_multibyte_text_is_not_split(self):
        command = self.start("pieces äöü€", piped=True)
        self.assertEqual(command.stdout.read(), "äöü€")
        command.stdout.close()

    def test_end_of_output_is_the_end_of_the_pipe(self):
        command = self.start("echo x", piped=True)
        self.finish(command)
        descriptor = command.stdout.fileno()
        ready, _, _ = select.select([descriptor], [], [], 5)
        self.assertEqual((ready, os.read(descriptor, 10)), ([descriptor], b"x"))
        self.assertEqual(os.read(descriptor, 10), b"")
        command.stdout.close()

    def test_closed_reader_does_not_hold_up_its_command(self):
        command = self.start(f"flood {4 << 20}", piped=True)
        command.stdout.close()
        self.assertEqual(self.finish(command), 0)


class InputTest(CommandCase):
    def test_64_mib_of_binary_input(self):
        data = os.urandom(1 << 20) * 64
        expected = f"{len(data)} {hashlib.sha256(data).hexdigest()}".encode()
        self.assertEqual(self.output(self.start("hash", data=data)), expected)

    def test_empty_input_ends_at_once(self):
        self.assertEqual(self.output(self.start("hash", data=b""))[:2], b"0 ")

    def test_input_nobody_reads_is_dropped_with_the_command(self):
        command = self.start("ignore-input", data=b"x" * (8 << 20))
        self.assertEqual(self.finish(command), 0)
        self.assertEqual(self.output(self.start("echo on")), b"on")
        self.assertFalse([t for t in threading.enumerate() if t.name == "dockerbox-input" and not t.join(5) and t.is_alive()])


class KillTest(CommandCase):
    def test_kill_ends_the_command(self):
        command = self.start("hang so far")
        self.assertIsNone(command.poll())
        command.kill()
        command.kill()
        self.assertEqual((self.finish(command), self.output(command)), (130, b"so far"))
        command.kill()

    def test_kill_that_is_never_confirmed_is_bounded(self):
        with mock.patch.object(command_module, "KILL_PATIENCE", 0.2):
            command = self.start("deaf")
            command.kill()
            self.assertEqual(self.output(command), b"")
            with self.assertRaisesRegex(Failure, "did not confirm"):
                command.wait(5)
        self.assertEqual(self.child._calls, {})
        self.assertEqual(self.output(self.start("echo on")), b"on", "the connection is not to blame")


class HandleTest(CommandCase):
    def test_there_is_no_pid(self):
        self.assertFalse(hasattr(self.start("echo x"), "pid"))

    def test_poll_waits_only_in_the_thread_that_runs_the_command(self):
        command = self.start("hang")
        began = time.monotonic()
        self.assertIsNone(command.poll())
        self.assertGreaterEqual(time.monotonic() - began, command_module.POLL_PATIENCE * 0.9)
        others = []
        waiting = mock.Mock(side_effect=AssertionError("waited"))

        class Lock:
            acquire = waiting

        thread = threading.Thread(target=lambda: others.append(command.poll()))
        with mock.patch.object(command, "_done", Lock()):
            thread.start()
            thread.join(5)
        self.assertEqual((others, waiting.called), ([None], False))
        command.kill()
        self.finish(command)

    def test_wait_gives_up_after_its_time(self):
        command = self.start("hang")
        self.assertIsNone(command.wait(0.05))
        command.kill()
        self.assertEqual(command.wait(5), 130)


class FaultTest(CommandCase):
    def test_child_that_dies_during_the_call(self):
        bystander = self.start("hang")
        command = self.start("die")
        with self.assertRaisesRegex(Failure, "status 3.*told to die"):
            self.finish(command)
        with self.assertRaisesRegex(Failure, "status 3"):
            bystander.wait(5)
        self.assertEqual(self.output(command), b"", "the drain thread must end too")
        self.assertIsNotNone(command.returncode, "threads that only look must see an end")

    def test_child_that_is_killed_during_the_call(self):
        command = self.start("hang", data=b"x" * (4 << 20))
        os.kill(self.child.pid, signal.SIGKILL)
        with self.assertRaisesRegex(Failure, "status -9"):
            self.finish(command)
        command.kill()

    def test_nonsense_as_a_result_is_a_failure(self):
        with self.assertRaisesRegex(Failure, "no result"):
            self.finish(self.start("nonsense"))

    def test_backend_error_is_a_failure_not_a_status(self):
        with self.assertRaisesRegex(Failure, "the daemon is gone"):
            self.finish(self.start("backend the daemon is gone"))

    def test_garbage_between_the_lines(self):
        with self.assertLogs(child_module.logger, "WARNING") as logs:
            command = self.start("garbage")
            self.assertEqual((self.output(command), self.finish(command)), (b"survived", 0))
        self.assertEqual(len(logs.output), 4)
        self.assertLess(max(map(len, logs.output)), 1000)


if __name__ == "__main__":
    unittest.main()
