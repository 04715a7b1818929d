"""Where a setting's value comes from, and under which name it is found."""

import unittest

import plugin_modules

sources = plugin_modules.load("sources")
DEFAULTS = sources.DEFAULTS


def read(key, *, written=None, merged=None, container=None, environ=None):
    """A setting as a host of 0.22.2 has it: its defaults merged into the file, all of them passed and copied to the environment."""
    written = written or {}
    found = sources.Sources(DEFAULTS | written | (merged or {}), written, DEFAULTS, DEFAULTS | (container or {}), environ or {})
    return tuple(found.read(key))


class PrecedenceTest(unittest.TestCase):
    def test_nobody_chose(self):
        for key, value in DEFAULTS.items():
            self.assertEqual(read(key), (value, f"terminal.{key}", False))

    def test_the_file_wins_over_what_came_from_an_older_state_of_it(self):
        older = {"container": {"container_memory": 256}, "environ": {"TERMINAL_CONTAINER_MEMORY": "256"}}
        got = read("container_memory", written={"container_memory": 512}, **older)
        self.assertEqual(got, (512, "terminal.container_memory", True))

    def test_a_default_that_the_user_wrote_is_chosen(self):
        got = read("container_memory", written={"container_memory": 5120}, environ={"TERMINAL_CONTAINER_MEMORY": "256"})
        self.assertEqual(got, (5120, "terminal.container_memory", True))
        self.assertTrue(read("docker_volumes", written={"docker_volumes": []})[2])

    def test_an_administrators_overlay_counts_as_the_file(self):
        self.assertEqual(read("docker_network", merged={"docker_network": False}), (False, "terminal.docker_network", True))

    def test_a_key_without_a_value_says_nothing(self):
        got = read("docker_env", written={"docker_env": None}, environ={"TERMINAL_DOCKER_ENV": '{"A": "1"}'})
        self.assertEqual(got, ({"A": "1"}, "TERMINAL_DOCKER_ENV", True))

    def test_what_the_host_passes_wins_over_the_environment(self):
        got = read("docker_volumes", container={"docker_volumes": ["/a:/b"]}, environ={"TERMINAL_DOCKER_VOLUMES": '["/c:/d"]'})
        self.assertEqual(got, (["/a:/b"], "terminal.docker_volumes", True))
        environ = {"TERMINAL_CONTAINER_PERSISTENT": "True"}
        self.assertEqual(read("container_persistent", container={"container_persistent": False}, environ=environ)[0], False)

    def test_hermess_own_default_is_no_choice(self):
        theirs = {"container_memory": 8192}
        found = sources.Sources(theirs, {}, theirs, theirs, {"TERMINAL_CONTAINER_MEMORY": "8192"})
        self.assertEqual(tuple(found.read("container_memory")), (8192, "terminal.container_memory", False))

    def test_a_host_that_passes_nothing(self):
        self.assertEqual(tuple(sources.Sources({}).read("docker_shm_size")), ("1g", "terminal.docker_shm_size", False))


class EnvironmentTest(unittest.TestCase):
    def read(self, key, text):
        return read(key, environ={f"TERMINAL_{key.upper()}": text})

    def test_defaults_that_hermes_copied_there_are_no_choice(self):
        for key, value in DEFAULTS.items():
            text = str(value) if not isinstance(value, (list, dict)) else {"[]": "[]", "{}": "{}"}[str(value)]
            with self.subTest(key=key):
                self.assertEqual(self.read(key, text), (value, f"terminal.{key}", False))

    def test_lists_and_maps_are_json(self):
        self.assertEqual(self.read("docker_volumes", '["/a:/b"]'), (["/a:/b"], "TERMINAL_DOCKER_VOLUMES", True))
        self.assertEqual(self.read("docker_env", '{"A": 1}')[0], {"A": 1})

    def test_booleans_are_hermess_words(self):
        for text, value in [("false", False), ("0", False), ("No", False), ("off", False)]:
            self.assertIs(self.read("docker_network", text)[0], value)
        for text, value in [("true", True), ("1", True), ("YES", True)]:
            self.assertIs(self.read("docker_snap_compat", text)[0], value)

    def test_what_cannot_be_understood_stays_as_it_is_written(self):
        for key, text in [("docker_volumes", "/a:/b"), ("docker_network", "perhaps"), ("container_memory", "12x"), ("docker_env", "A=1")]:
            with self.subTest(key=key):
                self.assertEqual(self.read(key, text), (text, f"TERMINAL_{key.upper()}", True))

    def test_numbers_stay_text(self):
        self.assertEqual(self.read("container_memory", "256"), ("256", "TERMINAL_CONTAINER_MEMORY", True))


if __name__ == "__main__":
    unittest.main()
