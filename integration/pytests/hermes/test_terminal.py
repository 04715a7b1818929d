"""The tools the model calls, on the dockerbox backend: endings, background processes, concurrency, capture, files."""

import hashlib
import json
import threading
import time

from hermes_fixture import HOME, HermesCase, in_thread, make, running, terminal, tool, until
from tools import file_tools
from tools.interrupt import request_yield, set_interrupt
from tools.process_registry import process_registry
from tools.tool_output_limits import get_max_bytes


class EndingTest(HermesCase):
    def script(self, text):
        """Put into /tmp/tree.sh what the terminal tool does not let a command say itself: it refuses a "&" in the foreground."""
        self.run_in("cat > /tmp/tree.sh", stdin_data=text)

    def test_first_command_starts_at_home(self):
        result = tool("pwd", task_id="first")
        self.assertEqual((result["output"], result["exit_code"], result["error"]), (HOME, 0, None))

    def test_status_is_the_commands_own(self):
        self.assertEqual(tool("exit 7")["exit_code"], 7)
        self.assertEqual(tool("nosuchcommand")["exit_code"], 127)

    def test_time_out_ends_the_whole_tree_with_124_and_keeps_what_was_said(self):
        self.run_in("nohup sleep 987 >/dev/null 2>&1 &")
        self.script("echo before; trap '' TERM INT; setsid sleep 978 & sleep 979")
        began = time.monotonic()
        result = tool("bash /tmp/tree.sh", timeout=2)
        took = time.monotonic() - began
        self.assertEqual(result["exit_code"], 124)
        self.assertIn("before", result["output"])
        self.assertIn("timed out after 2s", result["output"])
        self.assertEqual(result["output"].count("timed out"), 1)
        self.assertLess(took, 4)
        self.assertEqual(running(self.env, "[s]leep 97[89]"), 0)
        self.assertEqual(running(self.env, "[s]leep 987"), 1, "an earlier command's job has to live")
        self.run_in("pkill -f '[s]leep 987'")

    def test_interrupt_ends_the_whole_tree_with_130(self):
        self.run_in("rm -f /tmp/started")
        self.script("echo before; touch /tmp/started; sleep 968 & sleep 969")
        thread, results = in_thread(lambda: tool("bash /tmp/tree.sh", timeout=120))
        self.assertTrue(until(lambda: self.env.execute("test -e /tmp/started")["returncode"] == 0))
        set_interrupt(True, thread.ident)
        try:
            thread.join(10)
        finally:
            set_interrupt(False, thread.ident)
        self.assertTrue(results, "the interrupted command did not return")
        self.assertEqual(results[0]["exit_code"], 130)
        self.assertIn("before", results[0]["output"])
        self.assertEqual(results[0]["output"].count("interrupted"), 1)
        self.assertEqual(running(self.env, "[s]leep 96[89]"), 0)

    def test_inherited_output_does_not_delay_the_end(self):
        began = time.monotonic()
        self.assertEqual(self.run_in("setsid sleep 958 & disown; echo done"), "done\n")
        self.assertLess(time.monotonic() - began, 2)
        self.assertEqual(running(self.env, "[s]leep 958"), 1)
        self.run_in("pkill -f '[s]leep 958'")

    def test_state_lasts(self):
        tool("cd /usr && export LASTS=yes; f() { echo called; }; alias al='echo aliased'", task_id="default")
        self.assertEqual(tool("pwd; echo $LASTS; f; al")["output"], "/usr\nyes\ncalled\naliased")
        tool("cd; unset LASTS; unset -f f; unalias al")


class BackgroundTest(HermesCase):
    def test_a_background_process_and_its_poll(self):
        started = tool("echo one; sleep 1; echo two; exit 3", background=True)
        self.assertIsNone(started["error"], started)
        session = started["session_id"]
        self.assertTrue(until(lambda: process_registry.poll(session)["status"] == "exited", 30))
        polled = process_registry.poll(session)
        self.assertEqual(polled["exit_code"], 3, polled)
        self.assertEqual(process_registry.read_log(session)["output"].split(), ["one", "two"])

    def test_killing_a_background_process(self):
        started = tool("sleep 948", background=True)
        self.assertTrue(until(lambda: running(self.env, "[s]leep 948") > 0))
        # Hermes kills the process that it started, not what that one started.
        alive = f"kill -0 {started['pid']}"
        self.assertEqual(self.env.execute(alive)["returncode"], 0)
        self.assertEqual(process_registry.kill_process(started["session_id"])["status"], "killed")
        self.assertTrue(until(lambda: self.env.execute(alive)["returncode"] != 0))
        self.run_in("pkill -f '[s]leep 948'")


class HandOverTest(HermesCase):
    """A foreground command whose tool thread is asked to yield: nothing of its output may be lost or split."""

    TEXT = """for i in $(seq 1 40); do
        printf '%s-ä€\\n' $i
        if [ $i = 20 ]; then touch /tmp/half; until test -e /tmp/go; do sleep 0.05; done; fi
    done"""
    WHOLE = "".join(f"{i}-ä€\n" for i in range(1, 41))

    def start(self, handler):
        self.run_in("rm -f /tmp/half /tmp/go")
        thread, results = in_thread(lambda: self.env.execute(self.TEXT, timeout=60, yield_handler=handler))
        self.assertTrue(until(lambda: self.env.execute("test -e /tmp/half")["returncode"] == 0))
        request_yield(thread.ident)
        return thread, results

    def test_the_next_reader_goes_on_where_the_first_one_stopped(self):
        handed = []
        thread, results = self.start(lambda process, so_far: handed.append((process, so_far)) or {"output": so_far, "returncode": None})
        thread.join(20)
        self.assertTrue(handed and results)
        process, so_far = handed[0]
        self.run_in("touch /tmp/go")
        self.assertEqual(so_far + process.stdout.read(), self.WHOLE)
        self.assertEqual(process.wait(10), 0)

    def test_a_handler_that_declines_leaves_the_command_as_it_was(self):
        thread, results = self.start(lambda process, so_far: None)
        self.run_in("touch /tmp/go")
        thread.join(30)
        self.assertEqual((results[0]["output"], results[0]["returncode"]), (self.WHOLE, 0))


class CaptureTest(HermesCase):
    def test_bounded_capture_keeps_head_and_tail(self):
        result = self.env.execute("echo first; seq 1 2000000; echo last", bounded_capture=True, timeout=60)
        self.assertEqual(result["returncode"], 0)
        self.assertLessEqual(len(result["output"]), get_max_bytes())
        self.assertTrue(result["output"].startswith("first\n1\n"))
        self.assertTrue(result["output"].endswith("2000000\nlast\n"))
        self.assertGreater(result["output_total_chars"], 10_000_000)

    def test_unbounded_capture_keeps_everything(self):
        digest = hashlib.sha256("".join(f"{i}\n" for i in range(1, 1000001)).encode()).hexdigest()
        self.assertEqual(hashlib.sha256(self.run_in("seq 1 1000000", timeout=60).encode()).hexdigest(), digest)

    def test_order_of_both_streams_is_exact(self):
        text = self.run_in("for i in $(seq 1 500); do echo o$i; echo e$i >&2; done")
        self.assertEqual(text, "".join(f"o{i}\ne{i}\n" for i in range(1, 501)))


class InputTest(HermesCase):
    def test_64_mib_of_input(self):
        data = "".join(f"{i:015d}\n" for i in range(4 << 20))
        result = self.env.execute("sha256sum", stdin_data=data, timeout=120)
        self.assertEqual(result["output"].split()[0], hashlib.sha256(data.encode()).hexdigest())

    def test_input_that_is_not_read_is_no_error(self):
        self.assertEqual(self.env.execute("head -c1 | wc -c", stdin_data="x" * 20_000_000, timeout=60)["output"].strip(), "1")

    def test_empty_and_missing_input_end_at_once(self):
        for data in ("", None):
            self.assertEqual(self.run_in("cat | wc -c", stdin_data=data, timeout=10).strip(), "0")

    def test_bytes_that_came_out_of_a_file_go_back_in(self):
        self.assertEqual(self.run_in("od -An -tx1", stdin_data="a\udcffb").split(), ["61", "ff", "62"])

    def test_input_that_cannot_be_encoded_is_named(self):
        result = self.env.execute("wc -c", stdin_data="\ud800")
        self.assertIn("surrogates not allowed", result["stdin_error"])
        self.assertTrue(result["output"].startswith("0\n"))


class ConcurrencyTest(HermesCase):
    def test_commands_run_at_the_same_time_and_their_changes_merge(self):
        self.run_in("rm -f /tmp/meet-*")
        results = {}

        def one(number):
            # Each waits for all others, so one after another would never end.
            meet = f"touch /tmp/meet-{number}; until [ $(ls /tmp/meet-* | wc -l) = 6 ]; do sleep 0.05; done"
            results[number] = self.env.execute(
                f"{meet}; export C{number}=v{number}; mkdir -p /tmp/c{number}; cd /tmp/c{number}; echo {number}", timeout=30
            )

        threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        for number in range(6):
            self.assertEqual((results[number]["output"], results[number]["returncode"]), (f"{number}\n", 0))
            self.assertEqual(results[number]["cwd"], f"/tmp/c{number}", "each result has the directory of its own command")
        self.assertEqual(self.run_in("echo $C0$C1$C2$C3$C4$C5", cwd="/"), "v0v1v2v3v4v5\n")

    def test_a_flood_does_not_hold_up_another_command(self):
        thread, results = in_thread(
            lambda: self.env.execute("timeout 20 cat /dev/zero | head -c 200000000", timeout=60, bounded_capture=True)
        )
        for _ in range(20):
            began = time.monotonic()
            self.assertEqual(self.run_in("echo on"), "on\n")
            self.assertLess(time.monotonic() - began, 5)
        thread.join(60)
        self.assertEqual(results[0]["returncode"], 0)


class FilesTest(HermesCase):
    """write_file, read_file and search through Hermes's own tools."""

    def test_written_text_is_read_back(self):
        text = "line one\n  \"quotes\" 'and' $dollars `ticks` \\n\nä€\ttab\n"
        written = json.loads(file_tools.write_file_tool(f"{HOME}/notes/a file.txt", text))
        self.assertNotIn("error", {k for k, v in written.items() if v}, written)
        read = json.loads(file_tools.read_file_tool(f"{HOME}/notes/a file.txt"))
        for line in text.splitlines():
            self.assertIn(line, read["content"])
        self.assertEqual(self.run_in("cat ~/notes/'a file.txt'; stat -c %U ~/notes/'a file.txt'"), text + "pn\n")

    def test_a_large_file(self):
        text = "".join(f"{i} " + "x" * 90 + "\n" for i in range(20000))
        written = json.loads(file_tools.write_file_tool("/tmp/large.txt", text))
        self.assertFalse(written.get("error"), written)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.assertEqual(self.run_in("sha256sum < /tmp/large.txt").split()[0], digest)

    def test_a_relative_path_means_the_same_to_commands_and_to_files(self):
        tool("mkdir -p /tmp/rel && cd /tmp/rel", task_id="default")
        json.loads(file_tools.write_file_tool("here.txt", "x\n", task_id="default"))
        self.assertEqual(tool("cat /tmp/rel/here.txt", task_id="default")["output"], "x")
        tool("cd", task_id="default")

    def test_patch_and_search(self):
        json.loads(file_tools.write_file_tool("/tmp/p/a.py", "def old():\n    return 1\n"))
        patched = json.loads(file_tools.patch_tool(mode="replace", path="/tmp/p/a.py", old_string="old", new_string="new"))
        self.assertFalse(patched.get("error"), patched)
        self.assertEqual(self.run_in("cat /tmp/p/a.py"), "def new():\n    return 1\n")
        self.assertIn("a.py", file_tools.search_tool("def new", path="/tmp/p"))


class CacheTest(HermesCase):
    def test_the_tool_uses_one_environment_and_the_sandbox_of_the_tests(self):
        tool("true")
        made = terminal._active_environments["default"]
        self.assertEqual(made._container_id, self.env._container_id)
        self.assertIs(type(made), type(make()))
