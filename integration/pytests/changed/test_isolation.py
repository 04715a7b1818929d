"""plugins.isolation: host, on both hosts. Nothing crashes, and what is refused names the setting."""

import json
import unittest
from unittest import mock

from both_hosts import ACME, CHANGED, PROVIDER, forget_environments, placed
from hermes_cli.doctor_tools import _check_plugin_backend
from hermes_fixture import SANDBOX, docker, terminal, tool
from tools.file_tools import read_file_tool

SETTING = "plugins.isolation"


class IsolationTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(forget_environments)

    def test_the_plugin_is_out_of_process(self):
        for provider in (PROVIDER, ACME):
            self.assertTrue(hasattr(type(provider), "__hermes_plugin_host_ref__"), provider)
        self.assertEqual((PROVIDER.name, PROVIDER.is_container, PROVIDER.is_available()), ("dockerbox", True, True))

    def test_doctor_warns_beforehand(self):
        (row,) = [row for row in PROVIDER.doctor_checks() if SETTING in row[2]]
        self.assertIs(row[0], False)
        self.assertIn(f"{SETTING}: in_process", row[2])

    def test_the_probe_says_it(self):
        status, detail = PROVIDER.probe()
        if CHANGED:  # which may find a way to its environments
            self.assertEqual(status, "ready", detail)
        else:
            self.assertEqual(status, "unavailable")
            self.assertIn(f"{SETTING}: in_process", detail)

    def test_hermes_doctor_counts_it_as_an_issue(self):
        issues = []
        _check_plugin_backend("dockerbox", issues)
        self.assertEqual([SETTING in issue for issue in issues], [True], issues)

    @mock.patch.object(terminal.time, "sleep")  # a failing command is tried again after 2, 4 and 8 s
    def test_the_tools_fail_in_words(self, _sleep):
        for result in (tool("pwd"), json.loads(read_file_tool("/etc/hostname"))):
            with self.subTest(result=result):
                self.assertTrue(result.get("error"), "a placeholder cannot have answered")
                self.assertIn(f"{SETTING}: in_process", result["error"])
                if not CHANGED:
                    self.assertEqual(docker("ps", "-aq", "--filter", f"label=dev.dockerbox.name={SANDBOX}"), "")

    def test_the_tilde_stays_literal(self):
        self.assertEqual(terminal._get_env_config()["cwd"], "~" if CHANGED else "/root")

    def test_a_screen_is_refused(self):
        for setting in ("auto", "terminal"):
            with self.subTest(setting):
                where = placed("dockerbox", setting)
                self.assertEqual(where.where, "refused")
                for word in ("dockerbox", "bot_desktop.placement: gateway", *([SETTING] if CHANGED else [])):
                    self.assertIn(word, where.reason)
        self.assertEqual(placed("dockerbox", "gateway").where, "gateway")
        self.assertEqual(placed("local", "auto").where, "gateway")
        plain = placed("acme", "auto")
        self.assertEqual(plain.where, "refused")
        self.assertNotIn(SETTING, plain.reason)
