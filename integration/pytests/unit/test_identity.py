"""Which sandbox a task uses, and that no two tasks meet by their names."""

import re
import unittest

import plugin_modules

identity = plugin_modules.load("identity")
identify = identity.identify

# contract.ValidName in Go.
VALID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


class SharedTest(unittest.TestCase):
    def test_the_plain_case_is_the_sandbox_of_dockerbox_up(self):
        self.assertEqual(identify("default", "", persistent=True), ("default", "", ""))

    def test_what_hermes_shares_uses_the_profiles_one_sandbox(self):
        for task in (
            "default",
            "",
            None,
            "prompt-backend-probe",
            "session:telegram:1234",
            "profile:work",
            "profile:work:session:a b",
            "default:session:x",
            "home:/srv/hermes",
            "home:/srv/hermes:session:x",
        ):
            with self.subTest(task=task):
                self.assertEqual(identify(task, "work", persistent=True), ("default", "work", ""))

    def test_the_setting_names_the_shared_sandbox(self):
        self.assertEqual(identify("session:x", "", persistent=True, main="mine"), ("mine", "", ""))

    def test_a_shared_key_joins_profiles(self):
        one = identify("default", "a", persistent=True, shared_key="team")
        self.assertEqual(one, identify("default", "b", persistent=True, shared_key="team"))
        self.assertNotEqual(one, identify("default", "b", persistent=True))


class OwnTest(unittest.TestCase):
    def test_a_task_of_its_own_has_a_sandbox_of_its_own(self):
        self.assertEqual(identify("rollout-7", "", persistent=True), ("task:rollout-7", "", "rollout-7"))
        self.assertEqual(identify("profile:work:rollout", "work", persistent=True).task, "profile:work:rollout")

    def test_a_task_that_is_called_like_the_shared_sandbox_is_another(self):
        shared = identify("default", "", persistent=True, main="mine")
        for task in ("mine", "shared:mine"):
            self.assertNotEqual(identify(task, "", persistent=True, main="mine")[:2], shared[:2])
        self.assertNotEqual(identify("shared:k", "", persistent=True).name, identify("default", "", persistent=True, shared_key="k").name)

    def test_names_are_valid_and_never_meet(self):
        tasks = ["a", "a b", "a-b", "a/b", "a\\b", "-a", "ä", "ö", "x" * 128, "x" * 129, "x" * 130, " ", "a\n", "a\udcff", "日本"]
        names = [identity.valid_name(task) for task in tasks]
        self.assertEqual(len(set(names)), len(tasks))
        for name in names:
            self.assertRegex(name, VALID)
            self.assertTrue(VALID.fullmatch(name), name)
        self.assertEqual(names, [identity.valid_name(task) for task in tasks], "names must not change from run to run")


class EphemeralTest(unittest.TestCase):
    def test_each_session_has_its_own_and_no_other_process_has_it(self):
        one, two = (identify(task, "", persistent=False) for task in ("20261130_a", "20261130_b"))
        self.assertNotEqual(one.name, two.name)
        self.assertEqual(one, identify("20261130_a", "", persistent=False))
        self.assertNotEqual(one.name, "task:20261130_a")

    def test_the_persistent_sandbox_is_never_taken(self):
        for task in ("default", "prompt-backend-probe", "session:x"):
            with self.subTest(task=task):
                self.assertNotEqual(identify(task, "", persistent=False).name, "default")


class ProfileTest(unittest.TestCase):
    def test_profiles_never_meet(self):
        self.assertEqual(identity.profile_id("default", "/home/me/.hermes"), "")
        self.assertEqual(identity.profile_id("work", "/home/me/.hermes/profiles/work"), "work")
        one, two = identity.profile_id(None, "/srv/a"), identity.profile_id(None, "/srv/b")
        self.assertNotEqual(one, two)
        self.assertTrue(VALID.fullmatch(one))

    def test_session_key(self):
        self.assertEqual(identity.session_key("session:a:b"), "a:b")
        self.assertEqual(identity.session_key("profile:p:session:a"), "a")
        self.assertEqual(identity.session_key("default"), "")


if __name__ == "__main__":
    unittest.main()
