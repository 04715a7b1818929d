"""What happens to Hermes when a part of the road to the sandbox goes away: the child, the container."""

import os
import signal

from hermes_fixture import HermesCase, base, docker, in_thread, make, tool, until


def child(env):
    return env._attachment.child


def kill_child(env):
    gone = child(env)
    os.kill(gone.pid, signal.SIGKILL)
    return gone


class ChildTest(HermesCase):
    def test_killed_between_calls_the_next_one_finds_the_same_shell(self):
        self.run_in("cd /usr; export KEPT=yes")
        gone = kill_child(self.env)
        self.assertTrue(until(lambda: gone.lost))
        result = self.env.execute("pwd; echo $KEPT")
        self.assertEqual(result["output"], "/usr\nyes\n")
        self.assertNotIn("environment_recreated", result)
        self.run_in("cd; unset KEPT")

    def test_killed_during_a_call_it_is_a_backend_failure_and_the_next_one_works(self):
        self.run_in("rm -f /tmp/begun")
        errors = []

        def run():
            try:
                errors.append(self.env.execute("touch /tmp/begun; sleep 938", timeout=60))
            except base.EnvironmentConnectionError as error:
                errors.append(error)

        thread, _ = in_thread(run)
        self.assertTrue(until(lambda: self.env.execute("test -e /tmp/begun")["returncode"] == 0))
        kill_child(self.env)
        thread.join(10)
        self.assertIsInstance(errors[0], base.EnvironmentConnectionError)
        self.assertIn("status -9", errors[0].reason)
        self.assertTrue(errors[0].retry_hint)
        self.assertEqual(self.run_in("echo on"), "on\n")
        # The agent ends what ran for a connection that is gone.
        self.assertTrue(until(lambda: self.env.execute("pgrep -fc '[s]leep 938'")["output"].strip() == "0"))

    def test_killed_between_calls_the_other_requests_work_too(self):
        for ask in (
            lambda: self.assertEqual(self.env.fetch_realpath("/usr/../tmp"), "/tmp"),
            lambda: self.assertIsNotNone(self.env.exec_prefix()),
            lambda: self.env.cleanup(),
        ):
            self.run_in("true")
            gone = kill_child(self.env)
            self.assertTrue(until(lambda gone=gone: gone.lost))
            ask()

    def test_one_child_serves_all_environments(self):
        other = make("prompt-backend-probe")
        self.run_in("true")
        self.assertIs(child(other), child(self.env))
        other.cleanup()


class ContainerTest(HermesCase):
    def test_removed_between_calls_it_is_made_anew_and_the_result_says_so(self):
        self.run_in("echo kept > ~/kept; echo lost > /tmp/lost")
        before = self.env._container_id
        docker("rm", "-f", before)
        result = self.env.execute("cat ~/kept; cat /tmp/lost 2>&1 | wc -l")
        self.assertEqual(result["returncode"], 0, result)
        self.assertIs(result["environment_recreated"], True)
        self.assertEqual(result["output"].splitlines()[0], "kept", "the home outlives the container")
        self.assertNotIn("environment_recreated", self.env.execute("true"))
        self.assertNotEqual(self.env._container_id, before)
        self.assertEqual(docker("inspect", "-f", "{{.State.Running}}", self.env._container_id), "true")

    def test_removed_with_the_child_killed_too(self):
        before = self.env._container_id
        kill_child(self.env)
        docker("rm", "-f", before)
        result = self.env.execute("pwd")
        self.assertIs(result["environment_recreated"], True)
        self.assertEqual(result["output"], "/home/pn\n")
        self.assertNotEqual(self.env._container_id, before)

    def test_the_model_is_told(self):
        tool("true")
        docker("rm", "-f", self.env.execute("true") and make()._container_id)
        result = tool("pwd")
        self.assertEqual((result["exit_code"], result["output"].splitlines()[-1]), (0, "/home/pn"), result)
        self.assertIn("recreated", str(result))

    def test_stopped_it_is_started_again(self):
        docker("stop", "-t", "0", self.env.execute("true") and self.env._container_id)
        result = self.env.execute("echo up")
        self.assertEqual((result["output"], result["returncode"]), ("up\n", 0))

    def test_paused_it_is_a_backend_failure_with_a_hint(self):
        self.run_in("true")
        docker("pause", self.env._container_id)
        try:
            with self.assertRaises(base.EnvironmentConnectionError) as caught:
                self.env.execute("echo hi", timeout=120)  # it is not the deadline that ends it
            self.assertIn("pause", caught.exception.reason + caught.exception.retry_hint)
        finally:
            docker("unpause", self.env._container_id)
        self.assertEqual(self.run_in("echo on"), "on\n")
