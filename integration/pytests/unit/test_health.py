"""Probe, doctor rows and set-up lines: what is said of each thing that can be missing, and that nothing takes longer than it may."""

import os
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest import mock

import plugin_modules

# The one thing of Hermes's that these modules look at is whether its base class is that of a release after 0.22.2.
_agent, _base = types.ModuleType("agent"), types.ModuleType("agent.terminal_env_provider")
_base.TerminalEnvironmentProvider = type("TerminalEnvironmentProvider", (), {})
sys.modules.setdefault("agent", _agent)
sys.modules.setdefault("agent.terminal_env_provider", _base)

health = plugin_modules.load("health")
limits = plugin_modules.load("limits")
settings = plugin_modules.load("settings")
version = plugin_modules.load("version")
Client = plugin_modules.load("client").Client

CHILD = "dockerbox_plugin.child"


class HealthCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.executable = os.path.join(directory.name, "my dockerbox")
        Path(self.executable).write_text("#!/bin/sh\n")
        os.chmod(self.executable, 0o755)
        for patcher in (
            mock.patch.dict(os.environ, {"PATH": directory.name, "FAKE_VERSION": "4a75e5e"}),
            mock.patch.object(limits, "_newer", lambda: True),
        ):
            patcher.start()
            self.addCleanup(patcher.stop)

    def chosen(self, **values):
        return settings.Settings(**{"binary": self.executable, **values})

    def connect(self, mode):
        client = Client(plugin_modules.fake_argv(mode))
        self.addCleanup(client.retire)
        return lambda: client

    def rows(self, mode="", remarks=(), **values):
        rows = health.doctor_rows(self.chosen(**values), self.connect(mode), list(remarks))
        for row in rows:
            ok, label, detail = row
            self.assertIs(type(ok), bool)
            self.assertTrue(label.startswith("dockerbox "), row)
            self.assertTrue(detail.startswith("(") and detail.endswith(")"), row)
        return rows


class ProbeTest(HealthCase):
    def test_what_dockerbox_says(self):
        self.assertEqual(health.probe(self.chosen(), self.connect("ready-probe")), ("ready", "Docker API 1.41", ""))
        found = health.probe(self.chosen(), self.connect(""))
        self.assertEqual((found.status, found.sentence), ("needs_setup", "no daemon answers: start it"))
        self.assertEqual(health.probe(self.chosen(), self.connect("odd-probe")), ("unavailable", "all is well", ""))

    def test_another_image_needs_none_of_dockerbox(self):
        found = health.probe(self.chosen(image="debian:13"), self.connect(""))
        self.assertEqual((found.status, found.hint), ("ready", ""))
        self.assertIn("debian:13", found.detail)

    def test_no_executable(self):
        found = health.probe(self.chosen(binary="/nonexistent/dockerbox"), self.connect(""))
        self.assertEqual(found.status, "needs_setup")
        self.assertIn("/nonexistent/dockerbox", found.detail)
        self.assertIn("plugin install", found.hint)

    def test_a_child_that_is_of_no_use(self):
        for mode, said in (
            ("complain", "there is no such context"),
            ("exit", "cannot even begin"),
            ("refuse", "protocol 1 is not spoken here"),
            ("protocol-7", "speaks protocol 7"),
        ):
            with self.subTest(mode=mode):
                found = health.probe(self.chosen(), self.connect(mode))
                self.assertEqual(found.status, "unavailable")
                self.assertIn(said, found.detail)

    def test_it_is_bounded(self):
        for mode in ("deaf-probe", "silent"):
            with self.subTest(mode=mode):
                began = time.monotonic()
                found = health.probe(self.chosen(), self.connect(mode))
                self.assertLess(time.monotonic() - began, 2.0)
                self.assertEqual(found.status, "unavailable")
                self.assertTrue(found.detail and found.hint, found)


class RowsTest(HealthCase):
    def test_every_check_is_a_row(self):
        self.assertEqual(
            self.rows("doctor"),
            [
                (True, "dockerbox executable", f"({self.executable}, by terminal.backends.dockerbox.binary)"),
                (True, "dockerbox versions", f"(plugin {version.VERSION}, executable 4a75e5e, protocol {version.PROTOCOL})"),
                (True, "dockerbox daemon", "(it answers)"),
                (True, "dockerbox disk limit", "(warning: it is not enforced; remedy: use xfs)"),
                (False, "dockerbox image", "(there is none; remedy: make image)"),
            ],
        )

    def test_another_image_is_no_failure(self):
        self.assertEqual(
            self.rows("doctor", image="debian:13")[-1], (True, "dockerbox image", "(debian:13, by terminal.backends.dockerbox.image)")
        )

    def test_an_executable_that_is_too_old_to_check(self):
        rows = self.rows("")
        self.assertEqual(rows[2], (False, "dockerbox daemon", "(no daemon answers: start it)"))
        ok, label, detail = rows[3]
        self.assertEqual((ok, label), (True, "dockerbox checks"))
        self.assertTrue(detail.startswith("(warning: this executable (4a75e5e) is older than the plugin"), detail)
        self.assertEqual(self.rows("ready-probe")[2], (True, "dockerbox daemon", "(Docker API 1.41)"))

    def test_it_is_bounded(self):
        with mock.patch.object(health, "DOCTOR_PATIENCE", 0.2):
            ok, label, detail = self.rows("doctor-slow")[-1]
        self.assertEqual((ok, label), (False, "dockerbox checks"))
        self.assertIn("no answer to doctor within 0.2 s", detail)

    def test_an_answer_that_is_none(self):
        ok, label, detail = self.rows("doctor-broken")[-1]
        self.assertEqual((ok, label), (False, "dockerbox checks"))
        self.assertIn("no checks", detail)

    def test_without_an_executable_there_is_one_row(self):
        ((ok, label, detail),) = self.rows("doctor", binary="/nonexistent/dockerbox")
        self.assertEqual((ok, label), (False, "dockerbox executable"))
        self.assertIn("/nonexistent/dockerbox", detail)

    def test_a_child_that_does_not_start(self):
        rows = self.rows("complain")
        self.assertEqual(rows[1:], [(False, "dockerbox versions", "(there is no such context: choose another)")])

    def test_what_this_host_and_the_settings_cost(self):
        with mock.patch.object(limits, "_newer", lambda: False):
            rows = self.rows("doctor", remarks=["terminal.docker_x: nothing comes of it"])
        self.assertEqual(rows[5], (True, "dockerbox setting not in effect", "(warning: terminal.docker_x: nothing comes of it)"))
        self.assertEqual([label for _, label, _ in rows[6:]], ["dockerbox on this Hermes"] * 2)
        self.assertTrue(all(ok and "after 0.22.2" in detail for ok, _, detail in rows[6:]), rows)

    def test_isolation_is_a_failure(self):
        with mock.patch.dict(os.environ, {"HERMES_PLUGIN_HOST_PROCESS": "1"}):
            ok, label, detail = self.rows("doctor")[-1]
        self.assertEqual((ok, label), (False, "dockerbox out of process"))
        self.assertIn("plugins.isolation", detail)


class VersionTest(HealthCase):
    def test_one_warning_for_another_release(self):
        for fake, other in (
            ("0.9.0", True),
            ("v0.9.0-3-g4a75e5e", True),
            (version.VERSION, False),
            (f"v{version.VERSION}-3-g1-dirty", False),
            ("4a75e5e", False),
        ):
            with self.subTest(executable=fake), mock.patch.dict(os.environ, {"FAKE_VERSION": fake}):
                connect = self.connect("doctor")
                if other:
                    with self.assertLogs(CHILD, "WARNING") as logged:
                        rows = health.doctor_rows(self.chosen(), connect, [])
                        health.probe(self.chosen(), connect)
                    self.assertEqual(len(logged.records), 1)
                else:
                    with self.assertNoLogs(CHILD, "WARNING"):
                        rows = health.doctor_rows(self.chosen(), connect, [])
                ok, label, detail = rows[1]
                self.assertEqual((ok, label, detail.startswith("(warning: ")), (True, "dockerbox versions", other))
                for part in (version.VERSION, fake):
                    self.assertIn(part, detail)
                self.assertEqual("plugin install" in detail, other)


class SetupTest(HealthCase):
    def lines(self, mode, **values):
        lines = health.setup_lines(self.chosen(**values), self.connect(mode))
        self.assertTrue(3 <= len(lines) <= 6, lines)
        return lines

    def test_nothing_is_missing(self):
        lines = self.lines("ready-probe", sandbox="work", context="far away")
        self.assertEqual(lines[0], "dockerbox can run: Docker API 1.41.")
        command = f"'{self.executable}' --context 'far away'"
        self.assertIn(f"`{command} up work`", lines[1])
        self.assertIn(f"`{command} run work pwd`", lines[2])

    def test_something_is_missing(self):
        lines = self.lines("")
        self.assertEqual(lines[:2], ["dockerbox cannot run yet: no daemon answers.", "1. Next step: start it."])
        self.assertIn(f"`'{self.executable}' doctor`", lines[2])
        self.assertIn("up default`", lines[3])

    def test_the_executable_is_missing(self):
        lines = self.lines("", binary="/nonexistent/dockerbox")
        self.assertIn("/nonexistent/dockerbox", lines[0])
        self.assertIn("make up", lines[1])
        self.assertIn("hermes doctor", lines[2])

    def test_isolation(self):
        with mock.patch.dict(os.environ, {"HERMES_PLUGIN_HOST_PROCESS": "1"}):
            self.assertIn("plugins.isolation: in_process", self.lines("ready-probe")[-1])


if __name__ == "__main__":
    unittest.main()
