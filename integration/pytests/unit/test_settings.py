"""Translation of Hermes's settings, and that nothing which cannot be honoured passes in silence."""

import re
import unittest

import plugin_modules

settings = plugin_modules.load("settings")
identity = plugin_modules.load("identity")
version = plugin_modules.load("version")
Fault = plugin_modules.load("faults").Fault

MAIN = identity.Identity("default", "", "")

# What a host of 0.22.2 passes to a plugin when nothing is configured.
CONTAINER = {
    "container_cpu": 1.0,
    "container_memory": 5120,
    "container_disk": 51200,
    "container_persistent": True,
    "docker_volumes": [],
    "docker_mount_cwd_to_workspace": False,
    "docker_forward_env": [],
    "docker_env": {},
    "docker_run_as_host_user": False,
    "docker_extra_args": [],
    "docker_shm_size": "1g",
    "docker_network": True,
}
TERMINAL = {"docker_volumes": [], "docker_env": {}, "docker_forward_env": [], "docker_shm_size": "1g", "docker_extra_args": []}


def config(terminal=None, container=None, chosen=None, who=MAIN):
    return settings.sandbox_config(who, chosen or settings.Settings(), TERMINAL | (terminal or {}), CONTAINER | (container or {}))


class ConfigTest(unittest.TestCase):
    def test_the_plain_case_asks_for_what_dockerbox_up_makes(self):
        self.assertEqual(
            config(),
            {
                "name": "default",
                "cpus": 1.0,
                "memory_mb": 5120,
                "shm_bytes": 1 << 30,
                "network": "bridge",
                "persistent": True,
                "adapt": True,
            },
        )

    def test_limits_come_from_the_host(self):
        got = config(container={"container_cpu": 2.5, "container_memory": 0, "container_persistent": False, "docker_network": False})
        self.assertEqual((got["cpus"], got["memory_mb"], got["persistent"], got["network"]), (2.5, 0, False, "none"))

    def test_docker_settings_come_from_the_file(self):
        got = config({"docker_env": {"A": 1, "B": "x y"}, "docker_shm_size": "256m"})
        self.assertEqual((got["env"], got["shm_bytes"]), ({"A": "1", "B": "x y"}, 256 << 20))

    def test_a_newer_hosts_values_are_taken_when_the_file_has_none(self):
        self.assertEqual(config(container={"docker_env": {"A": "1"}, "docker_shm_size": "2g"})["env"], {"A": "1"})
        self.assertEqual(config(container={"docker_shm_size": "2g"})["shm_bytes"], 2 << 30)
        self.assertEqual(settings.forwarded_names(TERMINAL, {"docker_forward_env": ["T"]}), ("T",))
        self.assertEqual(settings.forwarded_names({"docker_forward_env": ["U", "V"]}, CONTAINER), ("U", "V"))
        self.assertEqual(settings.forwarded_names({"docker_forward_env": "U"}, CONTAINER), ())

    def test_identity_and_own_settings(self):
        chosen = settings.Settings(image="mine:1", user="root")
        got = config(chosen=chosen, who=identity.Identity("n", "work", "t"))
        self.assertEqual([got[k] for k in ("name", "profile", "task", "image", "user")], ["n", "work", "t", "mine:1", "root"])

    def test_sizes(self):
        for text, size in [
            ("1g", 1 << 30),
            ("512m", 512 << 20),
            ("64MB", 64 << 20),
            ("1.5GiB", 3 << 29),
            ("4096", 4096),
            (0, 0),
            ("", 0),
            (None, 0),
        ]:
            with self.subTest(text=text):
                self.assertEqual(settings.size_in_bytes("key", text), size)
        for text in ("big", "1x", "-1g", "g", "1 g g"):
            with self.subTest(text=text), self.assertRaises(Fault) as caught:
                settings.size_in_bytes("terminal.docker_shm_size", text)
            self.assertIn("terminal.docker_shm_size", caught.exception.reason)


class NotHonouredTest(unittest.TestCase):
    def test_nothing_to_say_in_the_plain_case(self):
        self.assertEqual(settings.not_honoured(TERMINAL, CONTAINER), [])

    def test_every_setting_that_is_not_carried_out_is_named(self):
        on = {
            "docker_volumes": ["/a:/b"],
            "docker_extra_args": ["--gpus=all"],
            "docker_mount_cwd_to_workspace": True,
            "docker_run_as_host_user": True,
        }
        for source in ("file", "host"):
            with self.subTest(source=source):
                terminal, container = (TERMINAL | on, CONTAINER) if source == "file" else (TERMINAL, CONTAINER | on)
                said = settings.not_honoured(terminal, container | {"container_disk": 1000})
                self.assertEqual(len(said), 5)
                for key in (*on, "container_disk"):
                    self.assertTrue(any(f"terminal.{key}:" in line for line in said), key)

    def test_host_directories_are_known_by_both_settings(self):
        self.assertFalse(settings.mounts_host_paths(TERMINAL))
        self.assertTrue(settings.mounts_host_paths({"docker_volumes": ["/a:/b"]}))
        self.assertTrue(settings.mounts_host_paths({"docker_mount_cwd_to_workspace": True}))


class BackendSettingsTest(unittest.TestCase):
    def test_the_files_section(self):
        terminal = {"backends": {"dockerbox": {"image": " i ", "user": 1000, "host": None, "unknown": 1}}}
        self.assertEqual(settings.backend_settings(terminal), settings.Settings(image="i", user="1000"))

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


class VersionTest(unittest.TestCase):
    def test_manifest_and_module_agree(self):
        manifest = (plugin_modules.PLUGIN / "plugin.yaml").read_text()
        self.assertEqual(re.search(r"^version: (.+)$", manifest, re.MULTILINE)[1], version.VERSION)


if __name__ == "__main__":
    unittest.main()
