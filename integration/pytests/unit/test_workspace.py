"""The place of the host's working directory in a sandbox."""

import os
import tempfile
import types
import unittest
from pathlib import Path

import plugin_modules

workspace = plugin_modules.load("workspace")
place, start = workspace.place, workspace.start


def binding(path, task_id="default", source="session"):
    return types.SimpleNamespace(host_path=path, source=source, task_id=task_id)


def bound(given, task_id="default", shared=True):
    return workspace.bound_directory(given, task_id, shared=shared)


class BindingTest(unittest.TestCase):
    def test_a_directory_for_this_task(self):
        for path in ("/home/me/p", "C:\\Users\\me\\p"):
            for shared in (True, False):
                self.assertEqual(bound(binding(path), shared=shared), (path, ""))
        self.assertEqual(bound(binding(Path("/a")))[0], "/a")
        self.assertEqual(bound(binding("/a", "session:b"), "session:b", shared=False), ("/a", ""))
        self.assertEqual(bound(binding("/a", None), None), ("/a", ""))

    def test_none(self):
        for nothing in (None, binding(None), binding(""), object()):
            self.assertEqual(bound(nothing), ("", ""))

    def test_never_that_of_another_task(self):
        for source in ("session", "task", "factory", "something new", None):
            for shared in (True, False):
                with self.subTest(source=source, shared=shared):
                    path, why = bound(binding("/home/me/p", "session:b", source), "session:a", shared)
                    self.assertEqual((path, "session:b" in why, "container_persistent" in why), ("", True, shared))

    def test_what_the_process_was_started_in_is_for_what_its_sessions_share(self):
        self.assertEqual(bound(binding("/a", "session:b", "process"), "session:a", shared=True), ("/a", ""))
        self.assertEqual(bound(binding("/a", "default", "process"), "default", shared=False), ("/a", ""))
        path, why = bound(binding("/a", "session:a", "process"), "session:a", shared=False)
        self.assertEqual(path, "")
        self.assertIn("started in", why)

    def test_what_cannot_be_mounted_is_said(self):
        for path in ("relative", "~/x", "/a:b", 5):
            with self.subTest(path=path):
                found, why = bound(binding(path))
                self.assertEqual(found, "")
                self.assertIn("not mounted", why)


class PlaceTest(unittest.TestCase):
    def test_workspace_unless_a_volume_claims_it(self):
        for volumes, target in [
            ([], "/workspace"),
            (["/v:/v", "data:/data:ro"], "/workspace"),
            (["/v:/workspace"], "/host-cwd"),
            (["/v:/workspace/:ro"], "/host-cwd"),
            (["/v:/workspace/deep"], "/host-cwd"),
            (["/v:/workspaces"], "/workspace"),
            (["/v:/workspace", "/w:/host-cwd"], "/host-workspace"),
            (["C:\\v:/workspace"], "/host-cwd"),
            ([5, "nothing", ""], "/workspace"),
        ]:
            with self.subTest(volumes=volumes):
                self.assertEqual(place("/srv/p", volumes), ("/srv/p", target, f"/srv/p:{target}"))

    def test_a_volume_that_brings_the_directory(self):
        with tempfile.TemporaryDirectory() as real:
            link = Path(real) / "link"
            link.symlink_to(real)
            for volume in (f"{real}:/src", f"{link}:/src:ro", f"{real}/.:/src/"):
                self.assertEqual(place(real, ["/v:/workspace", volume]), (real, "/src", ""))
        self.assertEqual(place(os.path.expanduser("~/p"), ["~/p:/src"]).target, "/src")


class StartTest(unittest.TestCase):
    def test_inside_the_mount_when_the_hosts_directory_is_asked_for(self):
        here = place("/home/me/p", [])
        for cwd, want in [
            ("/home/me/p", "/workspace"),
            ("/home/me/p/", "/workspace"),
            ("/home/me/p/a/../b", "/workspace/b"),
            ("/home/me/project", "/home/me/project"),
            ("/home/me", "/home/me"),
            ("/usr", "/usr"),
            ("~", "~"),
            ("", ""),
        ]:
            with self.subTest(cwd=cwd):
                self.assertEqual(start(cwd, here), want)

    def test_a_windows_directory(self):
        here = place("C:\\Users\\me\\p", [])
        self.assertEqual(here.entry, "C:\\Users\\me\\p:/workspace")
        self.assertEqual(start("C:\\Users\\me\\p\\src\\x", here), "/workspace/src/x")


class OthersTest(unittest.TestCase):
    def test_what_no_volume_asks_for(self):
        mounts = ["/v:/v", "/a:/workspace", "/w:/host-cwd:ro"]
        self.assertEqual(workspace.others(mounts, ["/v:/v"]), ["/a:/workspace", "/w:/host-cwd:ro"])
        self.assertEqual(workspace.others(mounts, ["/v:/v", "/w:/host-cwd:ro"]), ["/a:/workspace"])
        self.assertEqual(workspace.others([], []), [])

    def test_mounted_means_the_directory_in_its_place(self):
        here = place("/srv/p", [])
        for mounts, there in [(["/srv/p:/workspace"], True), (["/srv/p:/other"], False), (["/srv/q:/workspace"], False), ([], False)]:
            self.assertIs(workspace.mounted(here, mounts), there)


if __name__ == "__main__":
    unittest.main()
