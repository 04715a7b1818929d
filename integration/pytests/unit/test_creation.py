"""Asking for a sandbox: whose directory is mounted in it, what happens to a shared one, and what is wrong with the settings."""

import os
import unittest
from unittest import mock

import plugin_modules
from plugin_modules import fake_argv

Creation = plugin_modules.load("creation").Creation
Client = plugin_modules.load("client").Client
Fault = plugin_modules.load("faults").Fault
workspace = plugin_modules.load("workspace")
creation_log = "dockerbox_plugin.creation"


class CreationCase(unittest.TestCase):
    def setUp(self):
        self.asked = []
        self.child = self.serve()

    def serve(self, mode="", **environ):
        with mock.patch.dict(os.environ, environ):
            client = Client(fake_argv(mode))
            self.addCleanup(client.retire)
            child = client.child()
        ask = child.request
        child.request = lambda method, params, patience: self.asked.append(method) or ask(method, params, patience)
        return child

    def creation(self, path="", *, volumes=(), cwd="~", persistent=True, mounts_cwd=True, **config):
        place = workspace.place(path, list(volumes)) if path else None
        mounts = [*volumes, place.entry] if place and place.entry else list(volumes)
        asked = {"name": "default", "mounts": mounts, "given": ["env", "mounts"], "persistent": persistent, **config}
        return Creation(asked, cwd=cwd, keys={"memory_mb": "terminal.container_memory"}, workspace=place, mounts_cwd=mounts_cwd)


class WorkspaceTest(CreationCase):
    def test_the_directory_is_mounted_and_told(self):
        made = self.creation("/srv/a", cwd="/srv/a/sub")
        info = made.create(self.child)
        self.assertEqual((info["mounts"], info["cwd"]), (["/srv/a:/workspace"], "/workspace/sub"))
        self.assertEqual((made.host_cwd, made.host_cwd_mount, made.exposes_host), ("/srv/a", "/workspace", True))
        self.assertEqual(self.asked, ["create"])

    def test_the_hosts_name_for_it_works_inside_as_long_as_it_is_mounted(self):
        made = self.creation("/srv/a")
        self.assertEqual(made.inside("/srv/a/x"), "/srv/a/x")
        made.create(self.child)
        self.assertEqual([made.inside(p) for p in ("/srv/a/x", "/usr", "~", "")], ["/workspace/x", "/usr", "~", ""])

    def test_the_home_stays_the_start_where_the_host_asks_for_it(self):
        self.assertEqual(self.creation("/srv/a", cwd="~").create(self.child)["cwd"], "/home/pn")

    def test_another_sessions_directory_stays_and_is_said(self):
        self.creation("/srv/a").create(self.child)
        second = self.creation("/srv/b", cwd="/srv/b")
        with self.assertLogs(creation_log, "WARNING") as logs:
            info = second.create(self.child)
        self.assertEqual((info["mounts"], info["created"], info["cwd"]), (["/srv/a:/workspace"], False, "/home/pn"))
        self.assertEqual((second.host_cwd, second.host_cwd_mount), (None, None))
        for part in ("/srv/a:/workspace", "/srv/b is not mounted", "container_persistent", "dockerbox rm -f --keep-home default"):
            self.assertIn(part, logs.output[0])
        self.assertEqual(self.asked.count("cleanup"), 1, "the handle of the first look is given back")

    def test_a_session_without_a_directory_takes_nobodys_away(self):
        self.creation("/srv/a").create(self.child)
        with self.assertNoLogs(creation_log):
            info = self.creation().create(self.child)
        self.assertEqual((info["mounts"], info["created"]), (["/srv/a:/workspace"], False))

    def test_the_same_directory_is_shared(self):
        self.creation("/srv/a").create(self.child)
        second = self.creation("/srv/a")
        with self.assertNoLogs(creation_log):
            self.assertFalse(second.create(self.child)["created"])
        self.assertEqual((second.host_cwd, second.host_cwd_mount), ("/srv/a", "/workspace"))

    def test_a_sandbox_without_one_gets_it(self):
        # The prompt builder makes the sandbox before the agent does, and has no directory.
        self.creation().create(self.child)
        second = self.creation("/srv/a")
        with self.assertNoLogs(creation_log):
            self.assertEqual(second.create(self.child)["mounts"], ["/srv/a:/workspace"])
        self.assertEqual(second.host_cwd_mount, "/workspace")

    def test_a_living_job_keeps_the_sandbox_as_it_is(self):
        child = self.serve(FAKE_JOB="1")
        self.creation().create(child)
        second = self.creation("/srv/a", cwd="/srv/a")
        info = second.create(child)
        self.assertEqual((info["mounts"], info["cwd"], second.host_cwd), ([], "/home/pn", None))

    def test_volumes_change_beside_another_sessions_directory(self):
        self.creation("/srv/a", volumes=["/v:/v:ro"]).create(self.child)
        with self.assertLogs(creation_log, "WARNING"):
            info = self.creation("/srv/b", volumes=["/w:/w"]).create(self.child)
        self.assertEqual(info["mounts"], ["/w:/w", "/srv/a:/workspace"])

    def test_a_sandbox_of_its_own_has_its_own(self):
        one = self.creation("/srv/a", persistent=False, name="one")
        two = self.creation("/srv/b", persistent=False, name="two")
        self.assertEqual([c.create(self.child)["mounts"] for c in (one, two)], [["/srv/a:/workspace"], ["/srv/b:/workspace"]])

    def test_off_means_gone(self):
        self.creation("/srv/a").create(self.child)
        info = self.creation(mounts_cwd=False).create(self.child)
        self.assertEqual((info["mounts"], info["created"]), ([], True))


class AgainTest(CreationCase):
    def test_an_environment_that_lost_its_handle_changes_nothing(self):
        old = self.creation(volumes=["/old:/v"], mounts_cwd=False)
        old.create(self.child)
        self.creation(volumes=["/new:/v:ro"], mounts_cwd=False).create(self.child)
        info = old.create(self.child, again=True)
        self.assertEqual((info["mounts"], info["created"]), (["/new:/v:ro"], False))
        self.assertFalse(old.exposes_host)

    def test_the_sandbox_is_made_again_when_it_is_gone(self):
        made = self.creation("/srv/a")
        made.create(self.child)
        info = made.create(self.serve(), again=True)
        self.assertEqual((info["mounts"], info["created"], made.host_cwd_mount), (["/srv/a:/workspace"], True, "/workspace"))


class FaultsTest(CreationCase):
    def test_faults_are_named_as_the_user_wrote_them(self):
        wrong = self.creation(memory_mb="wrong", image="wrong")
        with self.assertRaises(Fault) as caught:
            wrong.create(self.child)
        fault = caught.exception
        self.assertEqual(fault.reason, 'terminal.container_memory: "wrong" must be right; image: "wrong" must be right')
        self.assertEqual(fault.kind, "config")
        self.assertEqual(fault.hint, "correct it: `hermes config set terminal.container_memory VALUE`, or `hermes config edit`")
        self.assertEqual(wrong.check(self.child), fault.faults)
        self.assertEqual(self.creation().check(self.child), [])

    def test_an_executable_too_old_to_check_finds_nothing(self):
        self.assertEqual(self.creation(memory_mb="wrong").check(self.serve("old")), [])

    def test_a_check_that_fails_is_no_clean_bill(self):
        child = self.serve()
        child.end(Fault("gone", lost=True))
        with self.assertRaises(Fault):
            self.creation().check(child)


if __name__ == "__main__":
    unittest.main()
