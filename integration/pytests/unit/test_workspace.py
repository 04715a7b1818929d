"""The place of the host's working directory in a sandbox."""

import os
import tempfile
import types
import unittest
from pathlib import Path

import plugin_modules

workspace = plugin_modules.load("workspace")
place, start = workspace.place, workspace.start


def binding(path, task_id="default"):
    return types.SimpleNamespace(host_path=path, source="session", task_id=task_id)


class BindingTest(unittest.TestCase):
    def test_a_directory_for_this_task(self):
        for path in ("/home/me/p", "C:\\Users\\me\\p"):
            self.assertEqual(workspace.bound_directory(binding(path), "default"), (path, ""))
        self.assertEqual(workspace.bound_directory(binding(Path("/a")), "default")[0], "/a")

    def test_none(self):
        for nothing in (None, binding(None), binding(""), object()):
            self.assertEqual(workspace.bound_directory(nothing, "default"), ("", ""))

    def test_never_that_of_another_task(self):
        path, why = workspace.bound_directory(binding("/home/me/p", "session:b"), "session:a")
        self.assertEqual(path, "")
        self.assertIn("session:b", why)

    def test_what_cannot_be_mounted_is_said(self):
        for path in ("relative", "~/x", "/a:b", 5):
            with self.subTest(path=path):
                found, why = workspace.bound_directory(binding(path), "default")
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


if __name__ == "__main__":
    unittest.main()
