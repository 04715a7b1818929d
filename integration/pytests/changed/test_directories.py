"""Directories on the changed host: where commands start, that `cd` lasts, that file tools are in the same place."""

import json
import os
import unittest
from unittest import mock

from both_hosts import ACME, HOME, PROVIDER, backend, declaring, forget_environments
from hermes_fixture import SANDBOX, HermesCase, make, terminal, tool
from tools.file_tools import read_file_tool, write_file_tool
from tools.terminal_tool_backends import _create_environment

# What a provider may say of where commands start, and the host has to take for nothing.
UNUSABLE = {
    "of macOS": "/Users/you/project",
    "relative": "work",
    "a Windows drive": "D:\\x",
    "a Windows share": "\\\\server\\x",
    "below the tilde": "~/x",
    "raising": RuntimeError("not today"),
    "a number": 7,
    "none": None,
    "a list": ["/srv"],
    "empty": "",
}


class DirectoryCase(HermesCase):
    def setUp(self):
        self.addCleanup(forget_environments)
        self.session = self.id()

    def pwd(self, command="", session=None, **options):
        """Run a command and return the directory it ends in."""
        result = tool(f"{command}\npwd", task_id=session or self.session, **options)
        self.assertEqual((result["exit_code"], result["error"]), (0, None), result)
        return result["output"].splitlines()[-1]


class ChangeDirectoryTest(DirectoryCase):
    def test_starts_at_home(self):
        self.assertEqual(self.pwd(), HOME)

    def test_below_home_it_lasts(self):
        self.assertEqual(self.pwd("mkdir -p ~/acme/project && cd ~/acme/project"), f"{HOME}/acme/project")
        self.assertEqual(self.pwd(), f"{HOME}/acme/project")
        self.assertEqual(self.pwd("cd .."), f"{HOME}/acme")
        self.assertEqual(self.pwd(), f"{HOME}/acme")
        self.assertEqual(self.pwd("cd"), HOME)
        self.assertEqual(self.pwd(), HOME)

    def test_elsewhere_it_lasts(self):
        self.assertEqual(self.pwd("cd /usr/share"), "/usr/share")
        self.assertEqual(self.pwd(), "/usr/share")

    def test_a_directory_that_only_begins_like_home_does_not(self):
        self.assertEqual(self.pwd(f"sudo install -d -m 777 {HOME}2 && cd {HOME}2"), f"{HOME}2")
        self.assertEqual(self.pwd(), HOME)

    def test_an_explicit_workdir_wins_once(self):
        self.pwd("mkdir -p ~/acme/project && cd ~/acme/project")
        self.assertEqual(self.pwd(workdir="/usr"), "/usr")
        self.assertEqual(self.pwd(), f"{HOME}/acme/project")

    def test_sessions_keep_their_own(self):
        self.pwd("mkdir -p ~/acme/project && cd ~/acme/project")
        self.assertEqual(self.pwd(session="another"), HOME)
        self.assertEqual(self.pwd("cd /usr", session="another"), "/usr")
        self.assertEqual(self.pwd(), f"{HOME}/acme/project")

    def test_it_outlives_the_environment(self):
        self.pwd("mkdir -p ~/acme/project && cd ~/acme/project")
        forget_environments()
        self.assertEqual(self.pwd(), f"{HOME}/acme/project")


class FileToolTest(DirectoryCase):
    def read(self, path):
        result = json.loads(read_file_tool(path, task_id=self.session))
        self.assertNotIn("error", result)
        return result["content"]

    def write(self, path, text):
        result = json.loads(write_file_tool(path, text, task_id=self.session))
        self.assertFalse(result.get("error"), result)

    def test_reads_where_a_command_wrote(self):
        self.pwd("mkdir -p ~/acme/project && cd ~/acme/project && echo by the terminal > a.txt")
        self.assertIn("by the terminal", self.read("a.txt"))
        self.assertIn("by the terminal", self.read("~/acme/project/a.txt"))
        self.assertIn("by the terminal", self.read("../project/a.txt"))

    def test_writes_where_commands_run(self):
        self.pwd("mkdir -p ~/acme/project && cd ~/acme/project && rm -f b.txt")
        self.write("b.txt", "by the file tool\n")
        self.assertIn("by the file tool", tool(f"cat {HOME}/acme/project/b.txt", task_id=self.session)["output"])

    def test_before_the_first_command_it_is_at_home(self):
        forget_environments()
        self.write("first.txt", "before anything ran\n")
        self.assertIn("before anything ran", tool("pwd; cat first.txt", task_id=self.session)["output"])
        self.assertIn("before anything ran", self.read(f"{HOME}/first.txt"))

    def test_follows_a_rejected_directory_to_the_same_place(self):
        self.pwd(f"sudo install -d -m 777 {HOME}2 && cd {HOME}2 && echo wrong > c.txt; echo right > {HOME}/c.txt")
        self.assertEqual(self.pwd(), HOME)
        self.assertIn("right", self.read("c.txt"))


class TildeTest(DirectoryCase):
    """The host hands "~" on as it is, here as with a plugin out of its process, where nobody resolves it for the host."""

    def test_it_goes_out_literally_and_comes_back_resolved(self):
        self.assertEqual(terminal._get_env_config()["cwd"], "~")
        env = make(cwd="~")
        self.addCleanup(env.cleanup)
        self.assertEqual(env.cwd, HOME)

    def test_each_command_may_name_it(self):
        for directory in ("~", "~/"):
            with self.subTest(directory):
                self.assertEqual(self.run_in("pwd", cwd=directory), f"{HOME}\n")
        self.run_in("mkdir -p ~/acme/project")
        self.assertEqual(self.run_in("pwd", cwd="~/acme/project"), f"{HOME}/acme/project\n")

    def test_settings_of_the_users_own_machine_fall_back_to_it(self):
        for setting in ("/Users/me/x", "/home/me/x", "D:\\.hermes", "e:/x", "work", "~/x"):
            with self.subTest(setting), mock.patch.dict(os.environ, {"TERMINAL_CWD": setting}):
                self.assertEqual(terminal._get_env_config()["cwd"], "~")
                self.assertEqual(self.pwd(session=f"{self.session} {setting}"), HOME)

    def test_a_setting_inside_the_sandbox_is_used(self):
        with mock.patch.dict(os.environ, {"TERMINAL_CWD": "/usr/share"}):
            self.assertEqual(self.pwd(session="elsewhere"), "/usr/share")


class DeclaredDefaultTest(DirectoryCase):
    def test_dockerbox_with_an_unusable_one_still_starts_at_home(self):
        for name, said in UNUSABLE.items():
            with self.subTest(name), declaring(PROVIDER, default_cwd=said):
                self.assertEqual(terminal._get_env_config()["cwd"], "/root")
                self.assertEqual(self.pwd(session=f"{self.session} {name}"), HOME)
            forget_environments()

    def test_dockerbox_with_an_absolute_one_starts_there(self):
        with declaring(PROVIDER, default_cwd="/usr/share"):
            self.assertEqual(self.pwd(), "/usr/share")

    def test_another_plugin_with_an_unusable_one_gets_the_built_in_default(self):
        for name, said in UNUSABLE.items():
            with self.subTest(name), backend("acme"), declaring(ACME, default_cwd=said):
                self.assertEqual(self.asked_for(), "/root")

    def test_another_plugin_with_a_usable_one_gets_that(self):
        for said in ("/srv/app", "/home/acme", "~", "/root"):
            with self.subTest(said), backend("acme"), declaring(ACME, default_cwd=said):
                self.assertEqual(self.asked_for(), said)

    def test_a_plugin_that_declares_nothing_is_where_it_was(self):
        with backend("acme"):
            self.assertEqual(self.asked_for(), "/root")

    def asked_for(self):
        """What Hermes's factory asks acme for, through the terminal tool."""
        forget_environments()
        self.assertEqual(tool("true", task_id=self.session)["error"], None)
        (env,) = terminal._active_environments.values()
        return env.asked


class FactoryTest(unittest.TestCase):
    def test_a_provider_is_told_its_settings_and_the_workspace(self):
        env = _create_environment("acme", "", "~", 60, container_config={}, task_id="told", host_cwd="/srv/checkout")
        self.assertEqual(env.told["backend_config"], {})
        binding = env.told["workspace_binding"]
        self.assertEqual((binding.host_path, binding.source, binding.task_id), ("/srv/checkout", "factory", "told"))
        with self.assertRaises(AttributeError):
            binding.host_path = "/"
        self.assertEqual((env._hermes_backend_name, env.env_type), ("acme", "acme"))

    def test_dockerbox_takes_its_settings_from_there(self):
        altered = mock.patch.object(type(PROVIDER), "resolve_config", lambda _self, config: config | {"sandbox": "No Such Name!"})
        with altered, self.assertRaises(RuntimeError) as caught:
            make()
        self.assertIn("No Such Name!", str(caught.exception))
        env = make()
        self.addCleanup(env.cleanup)
        self.assertEqual(env._creation.config["name"], SANDBOX)
