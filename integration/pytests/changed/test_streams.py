"""Streams and the screen, on both hosts: what is offered, and in which words it is refused."""

import os
import subprocess

from both_hosts import ACME, CHANGED, PROVIDER, declaring, placed
from hermes_fixture import HermesCase, make
from tools.environments import streams

# Words that a shell on the way would change.
AWKWARD = ["two words", "$HOME", "a'b\"c", "*", "", "ä€", "-n", "line\nbreak"]


class PlacementTest(HermesCase):
    def refused(self, where, *words):
        self.assertEqual(where.where, "refused", where)
        for word in words:
            self.assertIn(word, where.reason)

    def test_dockerbox(self):
        for setting in ("auto", "terminal"):
            with self.subTest(setting):
                where = placed("dockerbox", setting)
                if CHANGED:
                    self.assertEqual(where.where, "terminal", where)
                else:
                    self.refused(where, "dockerbox", "bot_desktop.placement: gateway")
        self.assertEqual(placed("dockerbox", "gateway").where, "gateway")

    def test_local(self):
        for setting in ("auto", "terminal", "gateway"):
            with self.subTest(setting):
                self.assertEqual(placed("local", setting).where, "gateway")

    def test_another_plugin_without_streams(self):
        for setting in ("auto", "terminal"):
            with self.subTest(setting):
                self.refused(placed("acme", setting), "acme", "bot_desktop.placement: gateway")
        self.assertEqual(placed("acme", "gateway").where, "gateway")

    def test_an_attribute_that_raises_counts_as_no_streams(self):
        for provider in (PROVIDER, ACME):
            with self.subTest(provider.name), declaring(provider, supports_streams=RuntimeError("not today")):
                self.refused(placed(provider.name, "auto"), provider.name, "bot_desktop.placement: gateway")


class PrefixTest(HermesCase):
    def test_what_the_host_makes_of_the_environments_own(self):
        env = make()
        self.addCleanup(env.cleanup)
        prefix = streams.exec_prefix(env, user="pn")
        if not CHANGED:
            self.assertIsNone(prefix)
            return
        # No more of the environment than the host passes on to such words.
        kept = {k: os.environ[k] for k in ("PATH", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG") if k in os.environ}
        words = [*prefix, "bash", "-c", 'printf "%s\\0" "$(id -un)" "$@"', "bash", *AWKWARD]
        ran = subprocess.run(words, env=kept, check=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(ran.stdout.decode().split("\0")[:-1], ["pn", *AWKWARD])

    def test_a_stream_has_both_directions(self):
        if not CHANGED:
            with self.assertRaises(RuntimeError):
                streams.open_stream(self.env, ["cat"])
            return
        stream = streams.open_stream(self.env, ["tr", "a-z", "A-Z"], user="pn")
        output, _ = stream.communicate(b"both ways\n", timeout=60)
        self.assertEqual((output, stream.returncode), (b"BOTH WAYS\n", 0))
