"""Finding the executable: the setting, the record of `dockerbox plugin install`, PATH, and what is said when there is none."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import plugin_modules

locate = plugin_modules.load("locate")
Fault = plugin_modules.load("faults").Fault


class LocateTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.plugin = Path(directory.name) / "plugin"
        self.path = Path(directory.name) / "path"
        self.other = Path(directory.name) / "other"
        for made in (self.plugin, self.path, self.other):
            made.mkdir()
        patcher = mock.patch.dict(os.environ, {"PATH": str(self.path)})
        patcher.start()
        self.addCleanup(patcher.stop)

    def executable(self, directory):
        path = directory / "dockerbox"
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return str(path)

    def record(self, text):
        (self.plugin / locate.RECORD).write_text(text)

    def test_the_setting_comes_first(self):
        self.executable(self.path)
        chosen = self.executable(self.other)
        self.record(chosen + "\n")
        self.assertEqual(locate.find(chosen, self.plugin), (chosen, "terminal.backends.dockerbox.binary"))

    def test_a_wrong_setting_is_an_error_and_not_a_reason_to_look_elsewhere(self):
        self.executable(self.path)
        with self.assertRaises(Fault) as caught:
            locate.find("/nonexistent/dockerbox", self.plugin)
        self.assertIn("/nonexistent/dockerbox", caught.exception.reason)
        (self.other / "dockerbox").write_text("not executable")
        with self.assertRaises(Fault):
            locate.find(str(self.other / "dockerbox"), self.plugin)

    def test_the_record_comes_before_path(self):
        self.executable(self.path)
        recorded = self.executable(self.other)
        self.record(recorded + "\n")
        self.assertEqual(locate.find("", self.plugin), (recorded, "dockerbox plugin install"))

    def test_a_record_that_leads_nowhere_is_passed_over(self):
        found = self.executable(self.path)
        for text in ("/gone/dockerbox\n", "relative/dockerbox\n", "", "\n"):
            with self.subTest(record=text):
                self.record(text)
                self.assertEqual(locate.find("", self.plugin), (found, "PATH"))
        (self.plugin / locate.RECORD).write_bytes(b"\xff\xfe")
        self.assertEqual(locate.find("", self.plugin).source, "PATH")

    def test_none_says_how_to_get_it(self):
        with self.assertRaises(Fault) as caught:
            locate.find("", self.plugin)
        for word in ("make up", "plugin install", "PATH", "terminal.backends.dockerbox.binary"):
            self.assertIn(word, caught.exception.hint)
        self.record("/gone/dockerbox\n")
        with self.assertRaises(Fault) as caught:
            locate.find("", self.plugin)
        self.assertIn("/gone/dockerbox", caught.exception.reason)


if __name__ == "__main__":
    unittest.main()
