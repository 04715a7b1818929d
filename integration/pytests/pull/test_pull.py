"""The first calls while an image is missing: answered soon, by how far the pull is, and never on the host.

The images are in a registry whose line is slow: IMAGE_SMALL comes while anybody would wait, IMAGE_SLOW in some 16 s, IMAGE_FAILING in 6 s
and is not what was asked for the first time. IMAGE_LEFT would take a minute.
"""

import json
import os
import re
import tempfile
import time
import unittest
from pathlib import Path

from hermes_fixture import PROVIDER, SANDBOX, base, configured, docker, dockerbox, make, terminal, tool
from tools import file_tools
from tools.terminal_tool_lifecycle import cleanup_vm

# What may pass before a call is answered: the patience of 5 s, and time for a machine that is busy.
SOON = 15

FIGURE = re.compile(r"^the image (\S+) is being (pulled|unpacked): (\d+) %(?: \([\d.]+ of (?:about )?[\d.]+ MB\))?$")
HINT = re.compile(
    r"^try again in (?:a moment|about \d+ (?:s|min)); the pull goes on meanwhile, and docker pull (\S+) shows each layer of it$"
)


class Case(unittest.TestCase):
    def use(self, image):
        """Have sandboxes made of an image that the daemon does not have, one of the test's own."""
        self.image = os.environ[f"IMAGE_{image}"]
        self.box = f"{SANDBOX}-{image.lower()}"
        self.enterContext(configured(own={"image": self.image, "sandbox": self.box}))
        self.addCleanup(dockerbox, "rm", "-f", self.box)
        self.addCleanup(PROVIDER.retire)

    def percent(self, reason):
        """How far a refusal says that the pull is, as one growing number."""
        found = FIGURE.match(reason)
        self.assertTrue(found, reason)
        self.assertEqual(found[1], self.image)
        return int(found[3]) + (100 if found[2] == "unpacked" else 0)

    def nothing_is_there(self):
        self.assertEqual(docker("ps", "-aq", "--filter", f"name={self.box}"), "")


class PullTest(Case):
    def test_a_small_image_just_works(self):
        self.use("SMALL")
        env = make()
        self.addCleanup(env.cleanup)
        self.assertEqual(env.execute("echo on")["output"], "on\n")

    def test_the_tool_says_how_far_it_is_until_it_works(self):
        self.use("SLOW")
        self.addCleanup(cleanup_vm, "default")
        percents = []
        for _ in range(20):
            began = time.monotonic()
            result = tool("echo on; test -e /.dockerbox/agent && echo inside")
            took = time.monotonic() - began
            if result.get("status") != "degraded":
                break
            self.assertLess(took, SOON)
            self.assertEqual((result["output"], result["exit_code"]), ("", -1))
            self.assertEqual(result["error"], f"Terminal backend degraded: {result['reason']}")
            self.assertEqual(HINT.match(result["retry_hint"])[1], self.image, result)
            percents.append(self.percent(result["reason"]))
            if len(percents) == 1:
                self.nothing_is_there()
                self.health()
                percents.append(self.files())
        self.assertEqual((result["output"], result["exit_code"]), ("on\ninside", 0), result)
        self.assertGreaterEqual(len(percents), 2)
        self.assertEqual(percents, sorted(percents))
        self.assertGreater(percents[-1], percents[0])

    def files(self):
        """What the file tools say meanwhile: how far it is, and nothing of the host's files."""
        secret = Path(self.enterContext(tempfile.TemporaryDirectory())) / "secret"
        secret.write_text("of the host", encoding="utf-8")
        answer = json.loads(file_tools.read_file_tool(str(secret)))
        self.assertNotIn("of the host", str(answer))
        return self.percent(answer["error"][answer["error"].index("the image ") :])

    def health(self):
        """What status displays say meanwhile; ready, or Hermes would take the tool from the agent."""
        self.assertTrue(terminal.check_terminal_requirements())
        status, detail = PROVIDER.probe()
        said = f"the image {self.image} is being pulled: "
        self.assertEqual(status, "ready", detail)
        self.assertIn(said, detail)
        rows = [row for row in PROVIDER.doctor_checks() if row[1] == "dockerbox pull"]
        self.assertEqual(len(rows), 1, rows)
        self.assertTrue(rows[0][0])
        self.assertTrue(rows[0][2].startswith(f"(warning: {said}"), rows)

    def test_a_failure_is_told_once_and_then_it_is_tried_again(self):
        self.use("FAILING")
        reasons = []
        for _ in range(20):
            try:
                env = make()
            except base.EnvironmentConnectionError as error:
                reasons.append(error.reason)
                continue
            self.addCleanup(env.cleanup)
            break
        self.assertEqual(env.execute("echo on")["output"], "on\n")
        why = f"the image {self.image} is not on this daemon and cannot be pulled: its registry sent something else than was asked for"
        self.assertEqual(reasons.count(why), 1, reasons)
        at = reasons.index(why)
        self.assertGreater(at, 0, reasons)
        self.assertGreater(len(reasons), at + 1, "it was not pulled anew")
        for reason in reasons[:at] + reasons[at + 1 :]:
            self.percent(reason)

    def test_a_pull_ends_with_the_child(self):
        """What runs these tests looks whether it did."""
        self.use("LEFT")
        with self.assertRaises(base.EnvironmentConnectionError) as caught:
            make()
        self.percent(caught.exception.reason)
        PROVIDER.retire()
        self.nothing_is_there()
