"""Translation of Hermes's settings, and that nothing which cannot be honoured passes in silence."""

import os
import re
import unittest
from unittest import mock

import plugin_modules

settings = plugin_modules.load("settings")
sources = plugin_modules.load("sources")
version = plugin_modules.load("version")

# contract.Settings as `go test ./contract` writes it down, and holds it to be.
TABLE = plugin_modules.PLUGIN.parents[2] / "docs" / "operations.md"


def at(written=None, *, container=None, environ=None):
    """The sources of a host of 0.22.2 whose user wrote this."""
    written = written or {}
    return sources.Sources(sources.DEFAULTS | written, written, sources.DEFAULTS, sources.DEFAULTS | (container or {}), environ or {})


def wanted(written=None, passed=None, **others):
    return settings.wanted(at(written, **others), passed)


class ConfigTest(unittest.TestCase):
    def test_the_plain_case_asks_for_what_dockerbox_up_makes(self):
        got = wanted()
        self.assertEqual(
            got.config,
            {
                "cpus": 1,
                "memory_mb": 5120,
                "disk_mb": 51200,
                "shm_bytes": "1g",
                "network": "bridge",
                "env": {},
                "forward_env": [],
                "mounts": [],
                "extra_args": [],
                "persistent": True,
                "given": ["mounts"],
                "adapt": True,
            },
        )
        self.assertEqual((got.faults, got.forwarded, got.persistent, got.keep, got.reap), ([], (), True, True, True))
        self.assertEqual((got.mount_cwd, got.snap_compat, got.shared_key), (False, False, ""))

    def test_every_setting_of_the_container_is_carried_over_as_written(self):
        written = {
            "container_cpu": "2.5", "container_memory": "512", "container_disk": 0, "container_persistent": False,
            "docker_volumes": ["/a:/b"], "docker_forward_env": ["T"], "docker_env": {"A": 1},
            "docker_extra_args": ["--ulimit", "nofile=1"], "docker_shm_size": "64m",
            "docker_network": False,
        }  # fmt: skip
        got = wanted(written)
        self.assertEqual(
            got.config,
            {
                "cpus": "2.5",
                "memory_mb": "512",
                "disk_mb": 0,
                "persistent": False,
                "mounts": ["/a:/b"],
                "forward_env": ["T"],
                "env": {"A": 1},
                "extra_args": ["--ulimit", "nofile=1"],
                "shm_bytes": "64m",
                "network": "none",
                "given": ["cpus", "disk_mb", "env", "extra_args", "memory_mb", "mounts", "network", "persistent", "shm_bytes"],
                "adapt": True,
            },
        )
        self.assertEqual((got.forwarded, got.persistent, got.faults), (("T",), False, []))

    def test_what_the_plugin_carries_out_itself(self):
        got = wanted({
            "docker_persist_across_processes": False, "docker_orphan_reaper": False, "docker_mount_cwd_to_workspace": True,
            "docker_snap_compat": True, "docker_shared_container_key": " team ",
        })  # fmt: skip
        self.assertEqual((got.keep, got.reap, got.mount_cwd, got.snap_compat, got.shared_key), (False, False, True, True, "team"))

    def test_an_empty_size_is_the_daemons_own(self):
        for value in ("", "0", 0):
            self.assertEqual(wanted({"docker_shm_size": value}).config["shm_bytes"], 0)

    def test_the_backends_own_section(self):
        got = wanted({"backends": {"dockerbox": {"image": "mine:1", "user": 1000, "pids": "4k"}}})
        self.assertEqual([got.config[k] for k in ("image", "user", "pids")], ["mine:1", "1000", "4k"])
        self.assertEqual(got.config["given"], ["image", "mounts", "pids", "user"])
        self.assertEqual(got.keys["pids"], "terminal.backends.dockerbox.pids")

    def test_security(self):
        got = wanted({"backends": {"dockerbox": {"security": "hardened"}}})
        self.assertEqual((got.config["security"], got.keys["security"]), ("hardened", "terminal.backends.dockerbox.security"))
        self.assertEqual(got.config["given"], ["mounts", "security"], "the network is left to dockerbox")
        asked = wanted({"docker_network": True, "backends": {"dockerbox": {"security": "hardened"}}})
        self.assertEqual(asked.config["given"], ["mounts", "network", "security"])
        self.assertNotIn("security", wanted({"backends": {"dockerbox": {"security": ""}}}).config)

    def test_run_as_host_user(self):
        mine = f"{os.getuid()}:{os.getgid()}"
        got = wanted({"docker_run_as_host_user": True})
        self.assertEqual((got.config["user"], got.keys["user"]), (mine, "terminal.docker_run_as_host_user"))
        self.assertIn("user", got.config["given"])
        named = wanted({"docker_run_as_host_user": True, "backends": {"dockerbox": {"user": "pn"}}})
        self.assertEqual((named.config["user"], named.keys["user"]), ("pn", "terminal.backends.dockerbox.user"))

    def test_keys_are_those_the_user_wrote(self):
        keys = wanted({"container_memory": 1}, environ={"TERMINAL_DOCKER_VOLUMES": '["x"]'}).keys
        self.assertEqual(
            (keys["memory_mb"], keys["mounts"], keys["name"], keys["network"]),
            ("terminal.container_memory", "TERMINAL_DOCKER_VOLUMES", "terminal.backends.dockerbox.sandbox", "terminal.docker_network"),
        )
        config = wanted().config
        self.assertEqual(set(config) - set(keys), {"given", "adapt"}, "every setting can be named")


class FaultsTest(unittest.TestCase):
    def faults(self, written=None, passed=None, **others):
        return [f"{key}: {problem}" for key, problem in wanted(written, passed, **others).faults]

    def test_what_never_reaches_dockerbox_is_judged_here(self):
        got = self.faults({
            "docker_network": "no way", "docker_run_as_host_user": 1, "docker_persist_across_processes": "yes", "docker_orphan_reaper": [],
            "docker_mount_cwd_to_workspace": "x" * 60, "docker_snap_compat": {}, "docker_shared_container_key": ["k"],
        })  # fmt: skip
        self.assertCountEqual(got, [
            'terminal.docker_network: "no way" must be true or false',
            "terminal.docker_run_as_host_user: 1 must be true or false",
            'terminal.docker_persist_across_processes: "yes" must be true or false',
            "terminal.docker_orphan_reaper: [] must be true or false",
            f'terminal.docker_mount_cwd_to_workspace: "{"x" * 39}… must be true or false',
            "terminal.docker_snap_compat: {} must be true or false",
            'terminal.docker_shared_container_key: ["k"] must be text',
        ])  # fmt: skip

    def test_a_variable_is_named_as_one(self):
        got = self.faults(environ={"TERMINAL_DOCKER_NETWORK": "perhaps"})
        self.assertEqual(got, ['TERMINAL_DOCKER_NETWORK: "perhaps" must be true or false'])

    def test_the_backends_own_section(self):
        got = self.faults({"backends": {"dockerbox": {"imge": "x", "user": ["a"], "sandbox": True, "host": 5, "pids": [], "image": None}}})
        self.assertEqual(got, [
            "terminal.backends.dockerbox.imge: is no setting; there are image, user, pids, security, sandbox, binary, host, context",
            'terminal.backends.dockerbox.user: ["a"] must be text',
            "terminal.backends.dockerbox.sandbox: true must be text",
        ])  # fmt: skip
        self.assertEqual(self.faults({"backends": {"dockerbox": "x"}}), ['terminal.backends.dockerbox: "x" must be a map'])
        self.assertEqual(self.faults({"backends": ["dockerbox"]}), ['terminal.backends: ["dockerbox"] must be a map'])
        self.assertEqual(self.faults(passed={"wrong": 1})[0][:33], "terminal.backends.dockerbox.wrong")
        self.assertEqual(self.faults({"backends": {"other": 5}}), [])

    def test_the_hint_names_the_command_that_corrects_it(self):
        wrong = plugin_modules.load("faults").wrong_settings
        one = wrong([("terminal.a", "x"), ("terminal.a", "y")])
        self.assertEqual(one.reason, "terminal.a: x; terminal.a: y")
        self.assertIn("hermes config set terminal.a VALUE", one.hint)
        self.assertIn("hermes config edit", wrong([("terminal.a", "x"), ("terminal.b", "y")]).hint)
        mixed = wrong([("terminal.a", "x"), ("TERMINAL_B", "y")]).hint
        self.assertIn("TERMINAL_B", mixed)
        self.assertIn("hermes config set terminal.a", mixed)


class NotHonouredTest(unittest.TestCase):
    def said(self, written, *, tells_workspace=True):
        return settings.not_honoured(at(written), tells_workspace=tells_workspace)

    def test_nothing_to_say_when_all_is_carried_out(self):
        on = {"docker_volumes": ["/a:/b"], "docker_extra_args": ["--ulimit=x"], "docker_run_as_host_user": True, "container_disk": 1}
        self.assertEqual(self.said(on | {"docker_mount_cwd_to_workspace": True}), [])
        self.assertEqual(self.said(on, tells_workspace=False), [])

    def test_a_host_that_does_not_tell_the_working_directory(self):
        (line,) = self.said({"docker_mount_cwd_to_workspace": True}, tells_workspace=False)
        for part in ("terminal.docker_mount_cwd_to_workspace", "after 0.22.2", "terminal.docker_volumes"):
            self.assertIn(part, line)

    def test_a_host_without_user_numbers(self):
        with mock.patch.object(settings, "_numbers", return_value=""):
            (line,) = self.said({"docker_run_as_host_user": True})
            self.assertIn("Windows", line)
            self.assertNotIn("user", wanted({"docker_run_as_host_user": True}).config)
            self.assertEqual(self.said({"docker_run_as_host_user": True, "backends": {"dockerbox": {"user": "pn"}}}), [])


class ExposureTest(unittest.TestCase):
    def test_only_what_cannot_be_written_to_keeps_the_host_out_of_reach(self):
        for volumes, exposed in [
            ([], False),
            (["/a:/b:ro"], False),
            (["/a:/b:ro", " data:/d:ro "], False),
            (["/a:/b"], True),
            (["/a:/bro", "/a:/b/ro"], True),
            (["/a:/b:ro", "/c:/d:rw"], True),
            (["data:/d"], True),
            (["/a:/b:ro", 5], True),
            ("/a:/b:ro", True),
            ({}, True),
        ]:
            with self.subTest(volumes=volumes):
                self.assertIs(settings.exposes_host(at({"docker_volumes": volumes})), exposed)

    def test_the_working_directory(self):
        for value in (True, "yes", 1):
            self.assertTrue(settings.exposes_host(at({"docker_mount_cwd_to_workspace": value})))
        self.assertFalse(settings.exposes_host(at({"docker_mount_cwd_to_workspace": False})))

    def test_flags_that_lead_out(self):
        for flags, exposed in [
            (["--ulimit", "nofile=1"], False),
            (["--device=/dev/sda"], True),
            (["--cap-add", "SYS_ADMIN"], True),
            ("x", True),
        ]:
            with self.subTest(flags=flags):
                self.assertIs(settings.exposes_host(at({"docker_extra_args": flags})), exposed)

    def test_variables_count(self):
        self.assertTrue(settings.exposes_host(at(environ={"TERMINAL_DOCKER_VOLUMES": '["/a:/b"]'})))
        self.assertTrue(settings.exposes_host(at(environ={"TERMINAL_DOCKER_VOLUMES": "nonsense"})))


class BackendSettingsTest(unittest.TestCase):
    def test_the_files_section(self):
        terminal = {"backends": {"dockerbox": {"image": " i ", "user": 1000, "host": None, "unknown": 1, "context": ["x"], "pids": 5}}}
        self.assertEqual(settings.backend_settings(terminal), settings.Settings(image="i", user="1000", pids=5))

    def test_what_a_newer_host_passes_wins(self):
        terminal = {"backends": {"dockerbox": {"image": "a"}}}
        self.assertEqual(settings.backend_settings(terminal, {"image": "b"}).image, "b")

    def test_broken_sections_are_empty(self):
        for terminal in ({}, {"backends": None}, {"backends": []}, {"backends": {"dockerbox": "x"}}):
            with self.subTest(terminal=terminal):
                self.assertEqual(settings.backend_settings(terminal), settings.Settings())

    def test_serve_argv_carries_the_endpoint(self):
        self.assertEqual(settings.serve_argv("/b", settings.Settings()), ["/b", "serve", "--stdio"])
        chosen = settings.Settings(host="ssh://me@server", context="c")
        self.assertEqual(settings.serve_argv("/b", chosen), ["/b", "--host", "ssh://me@server", "--context", "c", "serve", "--stdio"])

    def test_schema_is_what_hermes_accepts(self):
        for key, field in settings.SCHEMA.items():
            self.assertRegex(key, r"^[A-Za-z0-9_-]+$")
            self.assertIn(field["type"], {"boolean", "list", "number", "secret", "select", "string", "text"})
        self.assertEqual(tuple(settings.SCHEMA), settings.Settings._fields)


class TableTest(unittest.TestCase):
    """The documented settings are those that are read, and no others."""

    def setUp(self):
        row = re.compile(r"^\| `(terminal\.[^`]+)`(?:<br>`([^`]+)`)? \| [^|]* \| (\w+)[^|]* \| ([^|]*) \|", re.MULTILINE)
        rows = row.findall(TABLE.read_text())
        self.rows = {key: (variable, kind, default) for key, variable, kind, default in rows}

    def test_the_backends_own(self):
        prefix = "terminal.backends.dockerbox."
        documented = {key.removeprefix(prefix): kind for key, (_, kind, _) in self.rows.items() if key.startswith(prefix)}
        self.assertEqual(documented, {key: field["type"] for key, field in settings.SCHEMA.items()})

    def test_hermess(self):
        kinds = {bool: "boolean", int: "number", list: "list", dict: "map", str: "string"}
        expected = {}
        for key, default in sources.DEFAULTS.items():
            expected[f"terminal.{key}"] = (f"TERMINAL_{key.upper()}", kinds[type(default)])
        expected["terminal.docker_shm_size"] = ("TERMINAL_DOCKER_SHM_SIZE", "size")
        expected["terminal.docker_network"] = ("TERMINAL_DOCKER_NETWORK", "string")
        documented = {key: row[:2] for key, row in self.rows.items() if not key.startswith("terminal.backends.")}
        self.assertEqual(documented, expected)

    def test_defaults(self):
        texts = {True: "true", False: "false"}
        for key, default in sources.DEFAULTS.items():
            if key != "docker_network":
                text = texts[default] if isinstance(default, bool) else str(default)
                self.assertEqual(self.rows[f"terminal.{key}"][2].strip(), text, key)


class VersionTest(unittest.TestCase):
    def test_manifest_and_module_agree(self):
        manifest = (plugin_modules.PLUGIN / "plugin.yaml").read_text()
        self.assertEqual(re.search(r"^version: (.+)$", manifest, re.MULTILINE)[1], version.VERSION)


if __name__ == "__main__":
    unittest.main()
