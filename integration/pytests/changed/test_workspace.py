"""The host's working directory in the sandbox, as the changed host tells a backend of it."""

import dataclasses
import os
import unittest
from pathlib import Path
from tempfile import mkdtemp

from both_hosts import HOME, PROVIDER, forget_environments
from changedhost.backends import WorkspaceBinding
from hermes_fixture import LOGGER, SANDBOX, configured, docker, dockerbox, terminal, tool
from tools.terminal_tool_backends import _container_config_from_config, _create_environment

OTHER = f"{SANDBOX}-cwd"


def mounts(env):
    bound = '{{range .Mounts}}{{if eq .Type "bind"}}{{.Source}}:{{.Destination}} {{end}}{{end}}'
    return docker("inspect", "-f", bound, env._container_id).split()


def on(**settings):
    return configured(own={"sandbox": OTHER}, docker_mount_cwd_to_workspace=True, **settings)


class WorkspaceCase(unittest.TestCase):
    def setUp(self):
        self.addCleanup(dockerbox, "rm", "-f", OTHER)
        self.addCleanup(forget_environments)

    def directory(self):
        """A directory of the host that the sandbox's account may write to."""
        path = mkdtemp()
        os.chmod(path, 0o777)
        self.addCleanup(lambda: [*map(os.unlink, Path(path).iterdir()), os.rmdir(path)])
        return path

    def make(self, host_cwd=None, task_id="default", cwd="~"):
        """Out of the changed host's factory."""
        container = _container_config_from_config(terminal._get_env_config())
        env = _create_environment("dockerbox", "", cwd, 60, container_config=container, task_id=task_id, host_cwd=host_cwd)
        self.addCleanup(env.cleanup)
        return env


class MountTest(WorkspaceCase):
    def test_told_is_not_allowed(self):
        with configured(own={"sandbox": OTHER}):
            env = self.make(self.directory())
            self.assertEqual(mounts(env), [])
            self.assertFalse(hasattr(env, "host_cwd") or hasattr(env, "host_cwd_mount"))
            self.assertTrue(type(PROVIDER)().skip_container_guards)

    def test_read_and_written_at_workspace(self):
        here = self.directory()
        Path(here, "a").write_text("from the host\n")
        with on():
            env = self.make(here)
            self.assertEqual((env.host_cwd, env.host_cwd_mount, mounts(env)), (here, "/workspace", [f"{here}:/workspace"]))
            self.assertFalse(PROVIDER.skip_container_guards)
            self.assertEqual(env.execute("cat /workspace/a; echo back > /workspace/b")["output"], "from the host\n")
            self.assertEqual(Path(here, "b").read_text(), "back\n")
            self.assertEqual((env.cwd, env._hermes_resolved_home), (HOME, HOME), "the home is still the home")

    def test_the_start_when_the_host_asks_for_it(self):
        here = self.directory()
        with on():
            env = self.make(here, cwd=here)
            self.assertEqual((env.cwd, env.execute("pwd")["output"]), ("/workspace", "/workspace\n"))

    def test_beside_a_volume_that_claims_the_place(self):
        here, volume = self.directory(), self.directory()
        with on(docker_volumes=[f"{volume}:/workspace"]):
            env = self.make(here, cwd=here)
            self.assertEqual((env.host_cwd_mount, env.cwd), ("/host-cwd", "/host-cwd"))
            self.assertEqual(sorted(mounts(env)), sorted([f"{here}:/host-cwd", f"{volume}:/workspace"]))

    def test_a_volume_that_brings_it(self):
        here = self.directory()
        with on(docker_volumes=[f"{here}:/src"]):
            env = self.make(here, cwd=here)
            self.assertEqual((env.host_cwd_mount, env.cwd, mounts(env)), ("/src", "/src", [f"{here}:/src"]))

    def test_the_host_knows_the_place_by_both_names(self):
        here = self.directory()
        with on():
            os.environ["TERMINAL_CWD"] = here
            self.addCleanup(os.environ.pop, "TERMINAL_CWD")
            session = self.id()
            self.assertEqual(tool("pwd", task_id=session, workdir=here)["output"], "/workspace")
            self.assertEqual(tool("cd /workspace && touch here && pwd", task_id=session)["output"], "/workspace")
            self.assertEqual(tool("pwd; ls", task_id=session)["output"].splitlines(), ["/workspace", "here"])


class OtherSessionsTest(WorkspaceCase):
    def test_two_directories_and_one_sandbox(self):
        a, b = self.directory(), self.directory()
        with on():
            first = self.make(a)
            first.execute("export MINE=1")
            with self.assertLogs(LOGGER, "WARNING") as logs:
                second = self.make(b, cwd=b)
            said = [line for line in logs.output if f"{b} is not mounted" in line]
            self.assertEqual((len(said), f"{a}:/workspace" in said[0]), (1, True))
            self.assertEqual((second._container_id, second.cwd), (first._container_id, HOME))
            self.assertFalse(hasattr(second, "host_cwd"))
            self.assertEqual(first.execute("echo $MINE; touch /workspace/x")["output"], "1\n")
            self.assertEqual((os.listdir(a), os.listdir(b)), (["x"], []))

    def test_a_directory_of_a_session_does_not_get_into_the_shared_sandbox(self):
        path = self.directory()
        binding = WorkspaceBinding(path, "session", "session:b")
        with on(), self.assertLogs(LOGGER, "WARNING") as logs:
            env = type(PROVIDER)().create_environment(cwd="~", timeout=60, container_config={}, workspace_binding=binding)
            self.addCleanup(env.cleanup)
        self.assertEqual(mounts(env), [])
        self.assertIn("session:b", "\n".join(logs.output))

    def test_sessions_of_their_own_have_their_own(self):
        a, b = self.directory(), self.directory()
        with on(container_persistent=False):
            for session, path in (("one", a), ("two", b)):
                terminal.register_task_env_overrides(session, {"cwd": path, "cwd_source": "session"})
                self.addCleanup(terminal.clear_task_env_overrides, session)
            one, two = self.make(task_id="one"), self.make(task_id="two")
            self.assertEqual((mounts(one), mounts(two)), ([f"{a}:/workspace"], [f"{b}:/workspace"]))

    def test_a_binding_cannot_be_changed(self):
        with self.assertRaises(dataclasses.FrozenInstanceError):
            WorkspaceBinding("/a", "session", "t").host_path = "/b"


if __name__ == "__main__":
    unittest.main()
